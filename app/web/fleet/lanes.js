/** One lane per worker: who it is, and what it did in the last minutes. */

import { t } from "../core/text.js";
import { html } from "../vendor/ui.js";
import { isDown } from "./condition.js";
import { workers } from "./fleet_store.js";
import { Reason } from "./reason.js";
import { currentSlot } from "./stage.js";
import { Timeline } from "./timeline.js";
import { WorkerHeader } from "./worker_header.js";

const MINUTES = [5, 4, 3, 2, 1];
const MANY = 12; // more lanes are lower

export function Lanes() {
  const slots = workers.value.map((worker) => worker.slot);
  const reached = slots.includes(currentSlot.value) ? currentSlot.value : slots[0];
  const isCompact = slots.length > MANY;
  const hasGpus = workers.value.some((worker) => worker.gpu);
  const classes = ["lanes", isCompact && "compact", hasGpus && "with-gpus"].filter(Boolean).join(" ");
  return html`<section class=${classes} aria-label=${t("fleet.lanes")}>
    <ul class="card">
      ${workers.value.map(
        (worker) =>
          html`<${Lane} key=${worker.slot} worker=${worker} isReached=${worker.slot === reached} />`,
      )}
    </ul>
    <${Axis} />
  </section>`;
}

/** @param {{worker: import("./types.js").Worker, isReached: boolean}} props */
function Lane({ worker, isReached }) {
  const classes = isDown(worker) ? "lane down" : "lane";
  return html`<li class=${classes} data-slot=${worker.slot}>
    <${WorkerHeader} worker=${worker} />
    <${Timeline} slot=${worker.slot} isReached=${isReached} />
    ${worker.state === "failed" && html`<${Reason} worker=${worker} />`}
  </li>`;
}

function Axis() {
  return html`<div class="axis small numbers" aria-hidden="true">
    <span></span>
    <div>
      ${MINUTES.map((count) => html`<span>${t("fleet.minutesAgo", { count })}</span>`)}
      <span class="now">${t("fleet.now")}</span>
    </div>
  </div>`;
}
