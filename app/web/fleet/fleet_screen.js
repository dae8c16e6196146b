/** What the workers do. */

import { remembered } from "../core/storage.js";
import { t } from "../core/text.js";
import { html, useEffect } from "../vendor/ui.js";
import { connection, hasWorkers, isKnown, openFleet, refusal } from "./fleet_store.js";
import { FleetTable } from "./fleet_table.js";
import { Lanes } from "./lanes.js";
import { Legend } from "./legend.js";
import { openStage } from "./stage.js";
import { Summary } from "./summary.js";
import { Usage } from "./usage.js";

const isTable = remembered("fleet.table", false);

export function FleetScreen() {
  useEffect(() => {
    const [closeStage, closeFleet] = [openStage(), openFleet()];
    return () => {
      closeFleet();
      closeStage();
    };
  }, []);
  const isStale = connection.value !== "live";
  return html`<div class=${isStale ? "fleet stale" : "fleet"}>
    <div class="toolbar">
      <h1>${t("nav.fleet")}</h1>
      <${Connection} />
      <span class="space"></span>
      <button class="button" aria-pressed=${String(isTable.value)} onClick=${() => (isTable.value = !isTable.value)}>${t("fleet.asTable")}</button>
    </div>
    ${isKnown.value && html`<${Summary} />`}
    ${hasWorkers.value && (isTable.value ? html`<${FleetTable} />` : html`<${Legend} /><${Lanes} />`)}
    ${!hasWorkers.value && connection.value !== "refused" && html`<p class="card empty">${t(nothingText())}</p>`}
    <${Usage} />
  </div>`;
}

function nothingText() {
  if (connection.value === "connecting") return "loading";
  return connection.value === "live" ? "fleet.none" : "fleet.unknown";
}

function Connection() {
  const state = connection.value;
  if (state === "refused") return html`<span class="badge danger" role="alert">${refusal}</span>`;
  const text = { live: t("fleet.live"), lost: t("fleet.lost"), connecting: t("fleet.connecting") }[state];
  const tone = { live: "success", lost: "danger", connecting: "" }[state];
  return html`<span class=${`badge ${tone}`} role="status">${text}</span>`;
}
