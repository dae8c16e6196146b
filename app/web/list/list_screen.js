/** The first screen: new recordings, and all transcripts. */

import { t } from "../core/text.js";
import { html } from "../vendor/ui.js";
import { History } from "./history.js";
import { Intake } from "./intake.js";

export function ListScreen() {
  return html`
    <h1 class="visually-hidden">${t("nav.transcripts")}</h1>
    <${Intake} />
    <${History} />
  `;
}
