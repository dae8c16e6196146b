/** Why a worker is out of service, and what happens next. */

import { Icon } from "../core/icons.js";
import { t } from "../core/text.js";
import { html } from "../vendor/ui.js";
import { conditionOf, counts } from "./condition.js";
import { workers } from "./fleet_store.js";

/** @param {{worker: import("./types.js").Worker}} props */
export function Reason({ worker }) {
  return html`<p class="reason small">
    <${Icon} name="warning" />
    <span><span dir="auto">${reasonOf(worker)}</span> <strong>${nextStep(worker)}</strong></span>
  </p>`;
}

/**
 * Why it is out of service, as a sentence.
 * @param {import("./types.js").Worker} worker
 */
export function reasonOf({ error }) {
  const text = error || t("fleet.noReason");
  return `${text[0].toUpperCase()}${text.slice(1)}${/[.!?)]$/.test(text) ? "" : "."}`;
}

/** @param {import("./types.js").Worker} worker */
export function nextStep(worker) {
  const condition = conditionOf(worker);
  if (condition === "restarting") return t("fleet.nextRestarting");
  const next = condition === "quarantined" ? t("fleet.nextQuarantined") : t("fleet.nextFailed");
  return `${next} ${counts(workers.value).ready ? t("fleet.othersWork") : t("fleet.noneWorks")}`;
}
