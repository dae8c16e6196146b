/** The rows of recordings on their way to the service. */

import { FilesButton, IconButton } from "../core/controls.js";
import { bytes, clock } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { language, t } from "../core/text.js";
import { toast } from "../core/toasts.js";
import { html, useLayoutEffect, useRef, useState } from "../vendor/ui.js";
import { attach, isSameFile, pause, remove, resume, uploads } from "./upload_store.js";

/** @import { UploadRow } from "./upload_rows.js" */

const SHOWN = 30; // at first
const ROW_PX = 60;
const MORE = 100; // with each click: all rows of a folder of thousands would take seconds

export function UploadList() {
  const [most, showMore] = useState(SHOWN);
  const rows = uploads.value;
  useNews(rows.length);
  if (!rows.length) return null;
  const shown = rows.slice(0, most);
  const hidden = Math.min(rows.length - shown.length, MORE);
  return html`<div class="card uploads">
    <h3 class="visually-hidden">${t("upload.list")}</h3>
    <ul>${shown.map((row) => html`<${UploadRowView} key=${row.stored.id} row=${row} />`)}</ul>
    ${
      hidden > 0 &&
      html`<button class="button quiet" onClick=${() => showMore(most + MORE)}>${t("upload.more", { count: hidden })}</button>`
    }
  </div>`;
}

/** Say how many were added, where their rows are out of sight. @param {number} count */
function useNews(count) {
  const before = useRef(count);
  useLayoutEffect(() => {
    const added = count - before.current;
    before.current = count;
    const list = () => document.querySelector(".uploads, .history");
    if (added <= 0 || (list()?.getBoundingClientRect().top ?? 0) < innerHeight - ROW_PX) return;
    const run = () => list()?.scrollIntoView({ block: "center" });
    toast(t("upload.added", { count: added }), { action: { label: t("intake.show"), run } });
  }, [count]);
}

/** @param {{row: UploadRow}} props */
function UploadRowView({ row }) {
  const { stored, state, message } = row;
  const hasFailed = state === "failed";
  return html`<li class=${`upload ${state}`}>
    <${Icon} name=${hasFailed || state === "fileNeeded" ? "warning" : stored.source ? "link" : "file"} />
    <div class="upload-text">
      <p class="upload-name one-line" dir="auto" title=${stored.name}>${stored.name}</p>
      <p class="small muted numbers one-line"><${Situation} row=${row} /></p>
    </div>
    <${Actions} row=${row} />
    ${!hasFailed && !stored.source && html`<div class="upload-bar"><${Bar} row=${row} /></div>`}
    ${message && html`<p class=${hasFailed ? "small upload-message wrong" : "small upload-message"} dir="auto">${hasFailed ? message : firstSentence(message)}</p>`}
    ${row.isRestarted && !hasFailed && html`<p class="small muted upload-message">${t("upload.restarted")}</p>`}
  </li>`;
}

/** What happened, without what to do: the upload goes on by itself. @param {string} message */
function firstSentence(message) {
  return message.replace(/([.;!?])\s.*/s, "$1");
}

/** @param {{row: UploadRow}} props */
function Situation({ row }) {
  const { stored, state } = row;
  const size = bytes(stored.size, language.value);
  const { sent, rate } = row.progress.value;
  if (state === "sending" && sent > 0) {
    const parts = [t("upload.sent", { sent: bytes(sent, language.value), size })];
    if (rate) parts.push(t("upload.left", { time: clock((stored.size - sent) / rate) }));
    if (rate) parts.push(t("upload.rate", { rate: bytes(rate, language.value) }));
    return parts.join(" · ");
  }
  return stored.source ? t(`upload.${state}`) : `${size} · ${t(`upload.${state}`)}`;
}

/** @param {{row: UploadRow}} props */
function Bar({ row }) {
  const { stored, state, progress } = row;
  const part = stored.size ? progress.value.sent / stored.size : 0;
  return html`<progress class="progress" max="1" value=${state === "submitting" ? 1 : part}
    aria-label=${t("upload.progress", { name: stored.name })}></progress>`;
}

/** @param {{row: UploadRow}} props */
function Actions({ row }) {
  const { stored, state } = row;
  const main = mainAction(row);
  return html`<div class="toolbar upload-actions">
    ${state === "fileNeeded" && html`<${FileButton} row=${row} />`}
    ${main && html`<${Action} name=${main} row=${row} run=${() => (main === "pause" ? pause(stored.id) : resume(row))} />`}
    ${state !== "submitting" && html`<${Action} name="remove" row=${row} run=${() => remove(stored.id)} />`}
  </div>`;
}

const ICONS = /** @type {const} */ ({ pause: "pause", resume: "play", retry: "retry", remove: "close" });

/**
 * What the first button does. One button for all, so that it keeps the focus.
 * @param {UploadRow} row
 * @returns {"pause" | "resume" | "retry" | null}
 */
function mainAction({ stored, state, isRefused }) {
  if (state === "paused") return "resume";
  if (state === "delayed" || (state === "failed" && !isRefused)) return "retry";
  return (state === "sending" || state === "waiting") && !stored.source ? "pause" : null;
}

/** @param {{name: keyof typeof ICONS, row: UploadRow, run: () => void}} props */
function Action({ name, row, run }) {
  const label = t(`upload.do.${name}`);
  /** @param {Event} event */
  const act = (event) => {
    if (name === "remove") leaveRow(/** @type {HTMLElement} */ (event.currentTarget));
    run();
  };
  return html`<${IconButton} icon=${ICONS[name]} label=${`${label}: ${row.stored.name}`} title=${label} onClick=${act} />`;
}

/** The keyboard goes on in the next row when one goes. @param {HTMLElement} button */
function leaveRow(button) {
  const row = button.closest("li");
  const next = row?.nextElementSibling ?? row?.previousElementSibling ?? button.closest(".intake");
  /** @type {HTMLElement | null | undefined} */ (next?.querySelector("button:last-of-type"))?.focus();
}

/** @param {{row: UploadRow}} props */
function FileButton({ row }) {
  const { name, size } = row.stored;
  /** @param {File[]} files */
  const take = ([file]) => {
    if (!file) return;
    if (isSameFile(row, file)) attach(row, file);
    else toast(t("upload.otherFile", { name, size: bytes(size, language.value) }), { isError: true });
  };
  return html`<${FilesButton} label=${t("upload.chooseAgain")} take=${take} />`;
}
