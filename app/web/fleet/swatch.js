/** The colour of a job or of a speaker, on the page. */

import { html } from "../vendor/ui.js";

/** @typedef {import("./colours.js").Colour} Colour */

/** @param {{colour: Colour}} props */
export function Swatch({ colour }) {
  return html`<span class=${`swatch ${colour.pattern}`} style=${hueOf(colour)} aria-hidden="true"></span>`;
}

/** What styles know it by. @param {Colour} colour */
export function hueOf({ hue }) {
  return { "--hue": `var(--job-${hue})` };
}
