/** What a first visit shows: what is possible, and a sample to try. */

import { request, requestJson } from "../core/api.js";
import { Icon } from "../core/icons.js";
import { go } from "../core/router.js";
import { t } from "../core/text.js";
import { toastError } from "../core/toasts.js";
import { html, useState } from "../vendor/ui.js";

const STEPS = /** @type {const} */ ({ add: "microphone", read: "edit", take: "download" });

export function Welcome() {
  return html`<ol class="welcome" aria-label=${t("welcome.label")}>
    ${Object.entries(STEPS).map(
      ([step, icon]) => html`<li>
        <${Icon} name=${icon} />
        <h3>${t(/** @type {import("../core/text.js").TextKey} */ (`welcome.${step}`))}</h3>
        <p class="muted">${t(/** @type {import("../core/text.js").TextKey} */ (`welcome.${step}.how`))}</p>
      </li>`,
    )}
  </ol>`;
}

/** Transcribes a talk of some seconds, which comes with the page, and shows its transcript. */
export function SampleButton() {
  const [isBusy, setBusy] = useState(false);
  const start = async () => {
    setBusy(true);
    try {
      const body = new FormData();
      body.append("file", await (await request("/web/sample.ogg")).blob(), `${t("welcome.sampleName")}.ogg`);
      const job = await requestJson("/v1/jobs", { method: "POST", body });
      go(`#/jobs/${job.id}`);
    } catch (error) {
      toastError(error);
      setBusy(false);
    }
  };
  return html`<p class="toolbar sample muted">
    <span>${t("welcome.sampleHint")}</span>
    <button class="button" disabled=${isBusy} onClick=${start}><${Icon} name="play" />${t("welcome.sample")}</button>
  </p>`;
}
