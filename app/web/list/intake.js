/** New recordings: files, folders, a URL or the microphone. */

import { html } from "../vendor/ui.js";

export function Intake() {
  return html`<section></section>`;
}
