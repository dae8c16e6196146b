/** The fleet in four figures, five while somebody speaks. */

import { t } from "../core/text.js";
import { html, useComputed } from "../vendor/ui.js";
import { counts } from "./condition.js";
import { SPAN_S } from "./fleet_state.js";
import { fleet, lostAt, queue, second, workers } from "./fleet_store.js";
import { speeds } from "./measures.js";
import { duration, factor, number } from "./numbers.js";

const BARS = 30;
const MINUTE_S = 60;

export function Summary() {
  return html`<div class="fleet-cards">
    <${WorkersCard} /><${SpeedCard} /><${QueueCard} /><${AgeCard} /><${LiveCard} />
  </div>`;
}

/** @param {{label: string, value: string, note: string, tone?: string, children?: unknown}} props */
function Card({ label, value, note, tone = "", children }) {
  return html`<section class=${`card fleet-card ${tone}`} aria-label=${label}>
    <h2 class="small muted">${label}</h2>
    <p class="figure numbers">${value}</p>
    <p class="note small muted">${note}</p>
    ${children}
  </section>`;
}

function WorkersCard() {
  const { busy, ready, down, all } = counts(workers.value);
  const note = down ? t("fleet.down", { count: down }) : t("fleet.busyCount", { count: busy });
  const value = t("fleet.readyOf", { ready: number(ready), all: number(all) });
  return html`<${Card} label=${t("fleet.ready")} value=${value} note=${note} tone=${down ? "danger" : ""} />`;
}

function SpeedCard() {
  const measured = useComputed(() => {
    // Nothing is known of the time since the connection was lost.
    const now = lostAt.value ?? second.value;
    const [lastMinute] = speeds(fleet, now - MINUTE_S, now);
    return { lastMinute, bars: speeds(fleet, now - SPAN_S, now, BARS) };
  });
  const { lastMinute, bars } = measured.value;
  const note = t("fleet.audioPerMinute", { time: duration(lastMinute * MINUTE_S) });
  return html`<${Card} label=${t("fleet.speed")} value=${factor(lastMinute)} note=${note}>
    <${Bars} values=${bars} />
  </${Card}>`;
}

/** @param {{values: number[]}} props */
function Bars({ values }) {
  const most = Math.max(...values, 1);
  const path = values.map((value, index) => `M${index + 0.5} 10v${(-10 * value) / most}`).join("");
  return html`<svg class="bars" viewBox=${`0 0 ${values.length} 10`} preserveAspectRatio="none" aria-hidden="true">
    <path d=${path} />
  </svg>`;
}

function QueueCard() {
  const { clips, jobs } = queue.value;
  const nothing = clips ? t("fleet.noJobs") : t("fleet.nothingWaits");
  const note = jobs ? t("fleet.jobs", { count: jobs }) : nothing;
  return html`<${Card} label=${t("fleet.queue")} value=${t("fleet.clips", { count: clips, shown: number(clips) })} note=${note} />`;
}

function AgeCard() {
  const { clips, oldest_s } = queue.value;
  const value = clips ? duration(oldest_s, 1) : "–";
  return html`<${Card} label=${t("fleet.oldest")} value=${value} note=${clips ? t("fleet.oldestNote") : t("fleet.nothingWaits")} />`;
}

function LiveCard() {
  const { streams } = queue.value;
  if (!streams) return null;
  return html`<${Card} label=${t("fleet.streams")} value=${number(streams)} note=${t("fleet.streamsNote")} />`;
}
