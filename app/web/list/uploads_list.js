/** The rows of recordings on their way to the service. */

import { t } from "../core/text.js";
import { html, useState } from "../vendor/ui.js";
import { uploads } from "./upload_store.js";
import { UploadRowView } from "./uploads_row.js";

const MOST_SHOWN = 30;

export function UploadList() {
  const [isAllShown, showAll] = useState(false);
  const rows = uploads.value;
  if (!rows.length) return null;
  const shown = isAllShown ? rows : rows.slice(0, MOST_SHOWN);
  const hidden = rows.length - shown.length;
  return html`<div class="card uploads">
    <h3 class="visually-hidden">${t("upload.list")}</h3>
    <ul>${shown.map((row) => html`<${UploadRowView} key=${row.stored.id} row=${row} />`)}</ul>
    ${
      hidden > 0 &&
      html`<button class="button quiet" onClick=${() => showAll(true)}>${t("upload.more", { count: hidden })}</button>`
    }
  </div>`;
}
