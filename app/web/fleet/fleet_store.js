/** The state of the fleet while its screen is open. */

import { follow } from "../core/events.js";
import { batch, computed, signal } from "../vendor/ui.js";
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
/** @type {import("../vendor/ui.js").Signal<"connecting" | "live" | "lost" | "refused">} */
export const connection = signal("connecting");
/** Why the service refuses the stream. */
export const refusal = signal("");
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
  connection.value = "connecting";
  lostAt.value = null;
  follow("/v1/workers/events", { onEvent, onConnection, signal: controller.signal }).catch((error) => {
    onConnection(false);
    refusal.value = error.message;
    connection.value = "refused";
  });
  const stopTicker = startTicker(beat);
  return () => {
    controller.abort();
    stopTicker();
  };
}

/** @param {import("../core/event_parser.js").ServerEvent} event */
function onEvent({ type, data }) {
  applyEvent(fleet, type, JSON.parse(data), localTime());
  batch(() => {
    if (type === "fleet") {
      connection.value = "live";
      lostAt.value = null;
      listJobs(localTime() + fleet.offset);
    }
    workers.value = fleet.workers;
    queue.value = fleet.queue;
  });
}

/** @param {boolean} isConnected */
function onConnection(isConnected) {
  // A connection counts from its first event on: only then is everything known again.
  if (isConnected || connection.value !== "live") return;
  connection.value = "lost";
  lostAt.value = localTime() + fleet.offset;
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
