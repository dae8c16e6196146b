/** How the subtitles will be written: in which format, and in which style. */

import { t } from "../core/text.js";
import { CHOICES } from "../list/options.js";
import { html } from "../vendor/ui.js";
import { formatName } from "./exports.js";
import { choose, chosen, cueFormats } from "./file_choice.js";

/** Downloaded, they are the same. @param {{view: import("./transcript_view.js").View}} props */
export function CueChoice({ view }) {
  if (view.layout.value !== "subtitles") return null;
  const failure = view.cues.failure.value;
  return html`<span class="cue-choice"><select class="input" aria-label=${t("preview.format")} title=${t("preview.format")}
    onChange=${(/** @type {Event} */ event) => choose({ subtitles: chosenIn(event) })}>
    ${cueFormats().map((name) => html`<option value=${name} selected=${name === chosen.value.subtitles}>${formatName(name)}</option>`)}
  </select><${ProfileChoice} />${failure && html`<span class="cue-failure" role="alert" dir="auto">${failure.message}</span>`}</span>`;
}

/** @param {Event} event */
export function chosenIn({ currentTarget }) {
  return /** @type {HTMLInputElement | HTMLSelectElement} */ (currentTarget).value;
}

/** The style of subtitles. */
export function ProfileChoice() {
  return html`<select class="input" aria-label=${t("option.profile")} title=${t("option.profile")} onChange=${(/** @type {Event} */ event) => choose({ profile: chosenIn(event) })}>
    <option value="">${t("option.profile.default")}</option>
    ${CHOICES.profile.map((name) => html`<option value=${name} selected=${name === chosen.value.profile}>${t(/** @type {import("../core/text.js").TextKey} */ (`option.profile.${name}`))}</option>`)}
  </select>`;
}
