/** Why a worker is out of service, and what happens next. */

import { Icon } from "../core/icons.js";
import { t } from "../core/text.js";
import { html } from "../vendor/ui.js";
import { conditionOf } from "./condition.js";

/** @param {{worker: import("./types.js").Worker}} props */
export function Reason({ worker }) {
  return html`<p class="reason small">
    <${Icon} name="warning" />
    <span><span dir="auto">${worker.error ?? t("fleet.noReason")}</span> <strong>${nextStep(worker)}</strong></span>
  </p>`;
}

/** @param {import("./types.js").Worker} worker */
export function nextStep(worker) {
  const condition = conditionOf(worker);
  if (condition === "restarting") return t("fleet.nextRestarting");
  return condition === "quarantined" ? t("fleet.nextQuarantined") : t("fleet.nextFailed");
}
