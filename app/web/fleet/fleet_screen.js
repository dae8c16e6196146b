/** What the workers do. */

import { html } from "../vendor/ui.js";
import { t } from "../core/text.js";

export function FleetScreen() {
  return html`<h1>${t("nav.fleet")}</h1>`;
}
