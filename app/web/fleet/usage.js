/** How much was transcribed this month. */

import { request, requestJson } from "../core/api.js";
import { saveBlob } from "../core/downloads.js";
import { t } from "../core/text.js";
import { toastError } from "../core/toasts.js";
import { html, useState } from "../vendor/ui.js";
import { number } from "./numbers.js";

/** @typedef {{owner: string, model: string, jobs: number, minutes: number}} Entry */

export function Usage() {
  const [entries, setEntries] = useState(/** @type {Entry[]} */ ([]));
  const load = async () => {
    const { data } = await requestJson("/v1/usage?by=owner,model");
    setEntries(
      data.sort((/** @type {Entry} */ one, /** @type {Entry} */ other) => other.minutes - one.minutes),
    );
  };
  return html`<details class="card fleet-table" onToggle=${() => load().catch(toastError)}>
    <summary>${t("usage.title")}</summary>
    <table>
      <thead><tr>
        <th scope="col">${t("usage.owner")}</th><th scope="col">${t("fleet.column.model")}</th>
        <th scope="col">${t("usage.jobs")}</th><th scope="col">${t("usage.minutes")}</th>
      </tr></thead>
      <tbody>${entries.map(
        ({ owner, model, jobs, minutes }) => html`<tr>
          <th scope="row" dir="auto">${owner || "–"}</th><td dir="auto">${model}</td>
          <td class="numbers">${number(jobs)}</td><td class="numbers">${number(minutes, 1)}</td>
        </tr>`,
      )}</tbody>
    </table>
    <button class="button" onClick=${() => download().catch(toastError)}>${t("usage.csv")}</button>
  </details>`;
}

async function download() {
  saveBlob(await (await request("/v1/usage?format=csv")).blob(), "usage.csv");
}
