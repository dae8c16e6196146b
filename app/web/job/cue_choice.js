/** How the subtitles will be written: in which format, and in which style. */

import { Select } from "../core/controls.js";
import { t, textIfAny } from "../core/text.js";
import { CHOICES } from "../list/options.js";
import { html } from "../vendor/ui.js";
import { formatName } from "./exports.js";
import { choose, chosen, cueFormats } from "./file_choice.js";

/** Downloaded, they are the same. @param {{view: import("./transcript_view.js").View}} props */
export function CueChoice({ view }) {
  if (view.layout.value !== "subtitles") return null;
  const failure = view.cues.failure.value;
  return html`<span class="toolbar cue-choice"><${FormatChoice} formats=${cueFormats()} value=${chosen.value.subtitles} name="subtitles" /><${ProfileChoice} />
    ${failure && html`<span class="small wrong" role="alert" dir="auto">${failure.message}</span>`}</span>`;
}

/** @param {{formats: string[], value: string, name: "format" | "subtitles"}} props `name`: of what is chosen. */
export function FormatChoice({ formats, value, name }) {
  const choices = formats.map((format) => [format, formatName(format)]);
  return html`<${Select} class="input" aria-label=${t("preview.format")} title=${t("preview.format")} value=${value} choices=${choices}
    choose=${(/** @type {string} */ format) => choose({ [name]: format })} />`;
}

/** The style of subtitles. */
export function ProfileChoice() {
  const choices = ["default", ...CHOICES.profile].map((name) => [
    name === "default" ? "" : name,
    textIfAny(`option.profile.${name}`),
  ]);
  return html`<${Select} class="input" aria-label=${t("option.profile")} title=${t("option.profile")} value=${chosen.value.profile} choices=${choices}
    choose=${(/** @type {string} */ profile) => choose({ profile })} />`;
}
