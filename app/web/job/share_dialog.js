/** How others get to a transcript: by links for people without a key, or by its address where nobody needs one. */

import { request, requestJson } from "../core/api.js";
import { onSubmit, Select } from "../core/controls.js";
import { Dialog } from "../core/dialog.js";
import { shortDateTime } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { address } from "../core/service.js";
import { language, t } from "../core/text.js";
import { toast, toastError } from "../core/toasts.js";
import { html, useEffect, useState } from "../vendor/ui.js";
import { copy } from "./exports.js";

/** @typedef {import("../core/me.js").SharedLink} SharedLink */

const DAYS = /** @type {const} */ ([1, 7, 30, 365]);
const DAY_S = 24 * 3600;

/** @param {{job: import("./types.js").Job, onClose: () => void}} props */
export function ShareDialog({ job, onClose }) {
  const path = `/v1/jobs/${job.id}/shared`;
  const [links, setLinks] = useState(/** @type {SharedLink[]} */ ([]));
  const [made, setMade] = useState(""); // its address is seen only now: the service keeps none
  const [failure, setFailure] = useState("");
  const [days, setDays] = useState(30);
  const until = new Date(Date.now() + days * DAY_S * 1000).toISOString();
  /** Do something, and show all links as they are then. @param {() => Promise<unknown>} [act] */
  const run = async (act) => {
    try {
      setFailure("");
      await act?.();
      setLinks((await requestJson(path, { cache: "no-store" })).data);
    } catch (error) {
      setFailure(/** @type {Error} */ (error).message);
    }
  };
  useEffect(() => void run(), []);
  const make = onSubmit((data) => {
    const [correct, expires_in_s] = [data.get("may") === "correct", days * DAY_S];
    const json = { correct, audio: data.has("audio"), revisions: data.has("revisions"), expires_in_s };
    run(async () => setMade(address((await requestJson(path, { method: "POST", json })).path)));
  });
  const revoke = (/** @type {string} */ id) =>
    run(async () => {
      await request(`${path}/${id}`, { method: "DELETE" });
      setMade(""); // it may be this one
    });
  return html`<${Dialog} name="share" onClose=${onClose} failure=${failure}>
    <p class="muted">${t("share.why")}</p>
    <form onSubmit=${make}>
      <label class="field"><span>${t("share.may")}</span><select name="may">
        <option value="read">${t("share.read")}</option><option value="correct">${t("share.correct")}</option>
      </select></label>
      <label class="field"><span>${t("share.for")}</span><${Select} value=${days} choices=${DAYS.map((count) => [count, t(`share.days${count}`)])}
        choose=${(/** @type {string} */ count) => setDays(Number(count))} /></label>
      ${
        job.expires_at &&
        lastOf(job, until) !== until &&
        html`<p class="small muted" role="status">${t("share.goes", { time: shortDateTime(job.expires_at, language.value) })}</p>`
      }
      <label class="check"><input type="checkbox" name="audio" defaultChecked />${t("share.audio")}</label>
      <label class="check"><input type="checkbox" name="revisions" />${t("share.revisions")}</label>
      <div class="toolbar dialog-actions"><button class="button primary"><${Icon} name="link" />${t("share.make")}</button></div>
    </form>
    ${made && html`<${Copyable} label=${t("share.made")} href=${made} />`}
    ${
      links.length > 0 &&
      html`<h3>${t("share.links")}</h3><ul aria-label=${t("share.links")}>
      ${links.map(
        (link) => html`<li class="toolbar" key=${link.id}>
        <span class="small">${aboutLink(link, job)}</span><span class="space"></span>
        <button class="button quiet danger" onClick=${() => revoke(link.id)}>${t("share.revoke")}</button>
      </li>`,
      )}</ul>`
    }
  <//>`;
}

const IS_LOCAL = /^(localhost|127\..*|\[::1\])$/.test(location.hostname);

/** Of a service without keys. @param {{onClose: () => void}} props */
export function AddressDialog({ onClose }) {
  return html`<${Dialog} name="share" onClose=${onClose}>
    <p class="muted">${t("share.everyone")}</p>
    <${Copyable} label=${t("share.address")} href=${location.href} />
    ${IS_LOCAL && html`<p class="small muted">${t("share.local", { host: location.host })}</p>`}
  <//>`;
}

/** @param {{label: string, href: string}} props */
function Copyable({ label, href }) {
  const copyIt = () => copy(Promise.resolve(href)).then(() => toast(t("export.copied")), toastError);
  return html`<div class="notice" role="status">
    <label class="field"><span>${label}</span><input readonly dir="ltr" value=${href}
      onFocus=${(/** @type {Event} */ { currentTarget }) => /** @type {HTMLInputElement} */ (currentTarget).select()} /></label>
    <button class="button" onClick=${copyIt}><${Icon} name="copy" />${t("share.copy")}</button>
  </div>`;
}

/**
 * When a link no longer leads anywhere: it ends, or its transcript goes earlier.
 * @param {import("./types.js").Job} job
 * @param {string} linkEnds ISO 8601
 */
function lastOf({ expires_at }, linkEnds) {
  return expires_at && Date.parse(expires_at) < Date.parse(linkEnds) ? expires_at : linkEnds;
}

/**
 * What a link allows, and until when.
 * @param {SharedLink} link
 * @param {import("./types.js").Job} job
 */
function aboutLink({ correct, audio, revisions, expires_at }, job) {
  const sound = t(audio ? "share.withAudio" : "share.withoutAudio");
  const until = t("share.until", { time: shortDateTime(lastOf(job, expires_at), language.value) });
  const earlier = revisions && !correct ? [t("share.withRevisions")] : [];
  return [t(correct ? "share.correct" : "share.read"), sound, ...earlier, until].join(" · ");
}
