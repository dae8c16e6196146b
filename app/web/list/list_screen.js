/** The first screen: new recordings, and all transcripts. */

import { t } from "../core/text.js";
import { html, useLayoutEffect } from "../vendor/ui.js";
import { History } from "./history.js";
import { Intake, isCompact } from "./intake.js";

/** How far the list was scrolled when it was left (px). */
export let listTop = 0;

export function ListScreen() {
  useLayoutEffect(
    () => () => {
      listTop = scrollY;
    },
    [],
  );
  return html`<div class=${isCompact.value ? "list-screen" : "list-screen first"}>
    <h1 class="visually-hidden">${t("nav.transcripts")}</h1>
    <${Intake} />
    <${History} />
  </div>`;
}
