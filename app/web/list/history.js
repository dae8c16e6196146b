/** All jobs of the service: search, state, downloads. */

import { html } from "../vendor/ui.js";

export function History() {
  return html`<section></section>`;
}
