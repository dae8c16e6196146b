/** The state of the fleet while its screen is open. */

import { follow } from "../core/events.js";
import { isReachable } from "../core/health.js";
import { batch, computed, effect, signal } from "../vendor/ui.js";
import { colourBook } from "./colours.js";
import { applyEvent, forget, newFleet } from "./fleet_state.js";
import { jobsShown } from "./measures.js";
import { startTicker } from "./ticker.js";

/** Blocks and changes. It is read with every beat, and not observed: a large fleet has a hundred events a second. */
export let fleet = newFleet();
export const colours = colourBook();

/** @type {import("../vendor/ui.js").Signal<import("./types.js").Worker[]>} */
export const workers = signal([]);
export const hasWorkers = computed(() => workers.value.length > 0);
/** @type {import("../vendor/ui.js").Signal<import("./types.js").Queue>} */
export const queue = signal(fleet.queue);
/** Why the service refuses the stream. */
export const refusal = signal("");
const isStreaming = signal(false);
/** Whether anything is known of the fleet since its screen was opened. */
export const isKnown = signal(false);
export const connection = computed(() => {
  if (refusal.value) return "refused";
  if (!isReachable.value) return "lost";
  return isStreaming.value ? "live" : isKnown.value ? "lost" : "connecting";
});
/** The server's time at the last beat (Unix seconds). */
export const now = signal(0);
/** The same in whole seconds, for what need not move smoothly. */
export const second = computed(() => Math.floor(now.value));
/** Since when nothing is known; null while connected. @type {import("../vendor/ui.js").Signal<number | null>} */
export const lostAt = signal(null);
/** @type {import("../vendor/ui.js").Signal<import("./measures.js").JobWork[]>} */
export const jobs = signal([]);

const localTime = () => Date.now() / 1000;

/**
 * Follow the fleet.
 * @returns {() => void} Ends it.
 */
export function openFleet() {
  const controller = new AbortController();
  fleet = newFleet();
  batch(() => {
    [workers.value, queue.value, refusal.value] = [[], fleet.queue, ""];
    isStreaming.value = isKnown.value = false;
  });
  const onConnection = (/** @type {boolean} */ isConnected) => {
    // A connection counts from its first event on: only then is everything known again.
    if (!isConnected) isStreaming.value = false;
  };
  follow("/v1/workers/events", { onEvent, onConnection, signal: controller.signal }).catch((error) => {
    onConnection(false);
    refusal.value = error.message;
  });
  const stopNoting = effect(() => {
    lostAt.value = connection.value === "lost" ? localTime() + fleet.offset : null;
  });
  const stopTicker = startTicker(beat);
  return () => {
    controller.abort();
    stopNoting();
    stopTicker();
  };
}

/** @param {import("../core/event_parser.js").ServerEvent} event */
function onEvent({ type, data }) {
  applyEvent(fleet, type, JSON.parse(data), localTime());
  batch(() => {
    if (type === "fleet") {
      isStreaming.value = isKnown.value = true;
      listJobs(localTime() + fleet.offset);
    }
    workers.value = fleet.workers;
    queue.value = fleet.queue;
  });
}

function beat() {
  const time = localTime() + fleet.offset;
  if (Math.floor(time) !== second.peek()) {
    forget(fleet, time);
    listJobs(time);
  }
  now.value = time;
}

/** @param {number} time */
function listJobs(time) {
  const shown = jobsShown(fleet, time);
  colours.keep(shown.map((job) => job.key));
  jobs.value = shown;
}
