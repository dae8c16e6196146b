/** The rows of recordings on their way to the service. */

import { t } from "../core/text.js";
import { html, useState } from "../vendor/ui.js";
import { uploads } from "./upload_store.js";
import { UploadRowView } from "./uploads_row.js";

const SHOWN = 30; // at first
const MORE = 100; // with each click: all rows of a folder of thousands would take seconds

export function UploadList() {
  const [most, showMore] = useState(SHOWN);
  const rows = uploads.value;
  if (!rows.length) return null;
  const shown = rows.slice(0, most);
  const hidden = Math.min(rows.length - shown.length, MORE);
  return html`<div class="card uploads">
    <h3 class="visually-hidden">${t("upload.list")}</h3>
    <ul>${shown.map((row) => html`<${UploadRowView} key=${row.stored.id} row=${row} />`)}</ul>
    ${
      hidden > 0 &&
      html`<button class="button quiet" onClick=${() => showMore(most + MORE)}>${t("upload.more", { count: hidden })}</button>`
    }
  </div>`;
}
