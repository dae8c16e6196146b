/** Who a worker is, how it is, and how full and busy its GPU is. */

import { percent, t } from "../core/text.js";
import { html } from "../vendor/ui.js";
import { conditionOf, deviceOf, TONES } from "./condition.js";
import { fleet, second } from "./fleet_store.js";
import { loadSteps } from "./measures.js";
import { memory } from "./numbers.js";
import { nextStep, reasonOf } from "./reason.js";

const SPARK_S = 120;

/** @typedef {import("./types.js").Worker} Worker */

/** @param {{worker: Worker}} props */
export function WorkerHeader({ worker }) {
  return html`<div class="worker">
    <div class="toolbar who">
      <h3>${t("fleet.worker", { slot: worker.slot })}</h3>
      <${StateBadge} worker=${worker} />
    </div>
    <${Details} worker=${worker} />
    ${worker.gpu && html`<${Gpu} slot=${worker.slot} gpu=${worker.gpu} />`}
  </div>`;
}

/** @param {{worker: Worker}} props */
export function StateBadge({ worker }) {
  return html`<span class=${`badge ${TONES[worker.state]}`}>${t(`fleet.state.${conditionOf(worker)}`)}</span>`;
}

/** @param {{worker: Worker}} props */
function Details({ worker }) {
  // A worker that restarts is back soon, so its reason takes the place of a line that is there anyway.
  if (worker.state === "restarting") {
    const text = [worker.error && reasonOf(worker), nextStep(worker)].filter(Boolean).join(" ");
    return html`<p class="worker-facts small one-line wrong" title=${text} dir="auto">${text}</p>`;
  }
  const { model, compute_type, restarts, state, error } = worker;
  const facts = [deviceOf(worker), model].filter(Boolean).join(" · ");
  const note = state === "failed" ? null : error;
  return html`<p class="worker-facts small muted one-line" title=${note ?? [facts, compute_type].filter(Boolean).join(" · ")}>
    <span dir="auto">${facts}</span>
    ${restarts > 0 && html`<span class="restarts"> · ${t("fleet.restarts", { count: restarts })}</span>`}
    ${note && html`<span class="doubtful"> · ${t("fleet.limited")}</span>`}
  </p>`;
}

/** @param {{slot: number, gpu: import("./types.js").GpuFigures}} props */
function Gpu({ slot, gpu }) {
  const { memory_used: used, memory_total: total, utilisation } = gpu;
  return html`<dl class="gpu small numbers">
    ${
      used !== null &&
      total !== null &&
      html`<div>
        <dt class="visually-hidden">${t("fleet.memory")}</dt>
        <dd title=${t("fleet.memory")}>
          <progress class="progress" aria-label=${t("fleet.memory")} max=${total} value=${used}></progress>
          <span class="amount">${memory(used, total)}</span>
        </dd>
      </div>`
    }
    ${
      utilisation !== null &&
      html`<div>
        <dt class="visually-hidden">${t("fleet.utilisation")}</dt>
        <dd title=${t("fleet.utilisation")}><${Spark} slot=${slot} /><span class="load">${percent(utilisation)}</span></dd>
      </div>`
    }
  </dl>`;
}

/** The utilisation of the last minutes. @param {{slot: number}} props */
function Spark({ slot }) {
  const steps = loadSteps(fleet.loads.get(slot) ?? [], second.value, SPARK_S);
  const points = steps.map(([x, y]) => [(100 * x).toFixed(1), (20 - 19 * y).toFixed(1)]);
  const area = points.length
    ? `M${points[0][0]} 20${points.map(([x, y]) => `H${x}V${y}`).join("")}H100V20Z`
    : "";
  return html`<svg class="spark" viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true"><path d=${area} /></svg>`;
}
