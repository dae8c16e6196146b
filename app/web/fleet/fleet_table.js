/** The same facts as a table, for screen readers and for everybody who prefers one. It changes every few seconds. */

import { percent, t } from "../core/text.js";
import { html, useComputed } from "../vendor/ui.js";
import { deviceOf, isDown } from "./condition.js";
import { fleet, second, workers } from "./fleet_store.js";
import { JobName } from "./job_name.js";
import { jobKey, outcomes } from "./measures.js";
import { factor, memory, number } from "./numbers.js";
import { nextStep, reasonOf } from "./reason.js";
import { StateBadge } from "./worker_header.js";

const PERIOD_S = 3;
const COLUMNS = /** @type {const} */ ([
  "worker",
  "device",
  "model",
  "state",
  "working",
  "clips",
  "speed",
  "lost",
  "gpu",
  "restarts",
]);

/** @typedef {import("./types.js").Worker} Worker */

export function FleetTable() {
  const beat = useComputed(() => Math.floor(second.value / PERIOD_S));
  // Not observed: events between beats change nothing here.
  const rows = workers.peek();
  return html`<div class="card fleet-table" role="region" aria-label=${t("fleet.table")} tabindex="0">
    <table>
      <caption class="visually-hidden">${t("fleet.table")}</caption>
      <thead><tr>
        ${COLUMNS.map((name) => html`<th scope="col">${t(`fleet.column.${name}`)}</th>`)}
      </tr></thead>
      <tbody>
        ${rows.map((worker) => [
          html`<${Row} key=${worker.slot} worker=${worker} beat=${beat.value} />`,
          isDown(worker) && html`<${ReasonRow} key=${`why ${worker.slot}`} worker=${worker} />`,
        ])}
      </tbody>
    </table>
  </div>`;
}

/** @param {{worker: Worker, beat: number}} props `beat`: drawn again, since its figures are no signals. */
function Row({ worker }) {
  const { clips, failed, requeued, speed } = outcomes(fleet.blocks.get(worker.slot) ?? []);
  const keys = [...new Set(worker.working.map(jobKey))];
  return html`<tr class=${isDown(worker) ? "down" : ""}>
    <th scope="row" class="numbers">${worker.slot}</th>
    <td dir="auto" title=${worker.actor}>${[deviceOf(worker), worker.actor?.slice(0, 8)].map((text) => html`<p>${text}</p>`)}</td>
    <td class="nowrap" dir="auto">${[...new Set([worker.model, worker.compute_type])].map((text) => html`<p>${text}</p>`)}</td>
    <td><${StateBadge} worker=${worker} /></td>
    <td>${keys.map((key) => html`<${JobName} id=${key} />`)}</td>
    <td class="numbers">${number(clips)}</td>
    <td class="numbers nowrap">${speed === null ? "–" : factor(speed)}</td>
    <td class="numbers">${number(failed)} / ${number(requeued)}</td>
    <td class="numbers nowrap">${gpuTexts(worker.gpu).map((text) => html`<p>${text}</p>`)}</td>
    <td class="numbers">${number(worker.restarts)}</td>
  </tr>`;
}

/** @param {{worker: Worker}} props */
function ReasonRow({ worker }) {
  return html`<tr class="why">
    <th scope="row"><span class="visually-hidden">${worker.slot}</span></th>
    <td colspan=${COLUMNS.length - 1}><span dir="auto">${reasonOf(worker)}</span> ${nextStep(worker)}</td>
  </tr>`;
}

/**
 * @param {import("./types.js").GpuFigures | null} gpu
 * @returns {string[]}
 */
function gpuTexts(gpu) {
  if (!gpu) return ["–"];
  const { memory_used: used, memory_total: total, utilisation } = gpu;
  return [
    ...(used !== null && total !== null ? [memory(used, total)] : []),
    ...(utilisation !== null ? [percent(utilisation)] : []),
  ];
}
