/** What is to be said about a worker's state. */

/** @typedef {import("./types.js").Worker} Worker */
/** @typedef {"idle" | "busy" | "loading" | "asleep" | "draining" | "restarting" | "quarantined" | "failed"} Condition */

/** The classes of the badges of their states. */
export const TONES = /** @type {const} */ ({
  busy: "accent",
  idle: "success",
  loading: "warning",
  asleep: "",
  draining: "",
  restarting: "danger",
  failed: "danger",
});

/**
 * @param {Worker} worker
 * @returns {Condition}
 */
export function conditionOf({ state, error }) {
  return state === "failed" && error?.startsWith("quarantined") ? "quarantined" : state;
}

/**
 * Whether it is out of service and somebody may have to act.
 * @param {Worker} worker
 */
export function isDown({ state }) {
  return state === "restarting" || state === "failed";
}

/**
 * Its device: `GPU 3`, `GPU 8f1d2c3b`, `CPU`, or the name that the engine gives it. The node of a cluster comes first.
 * @param {Worker} worker
 */
export function deviceOf({ node_name, device, visible_devices }) {
  const name = device.replace("cuda", "GPU").replace("cpu", "CPU");
  const visible = device === "cuda" && visible_devices?.replace(/^GPU-/, "").slice(0, 8);
  return `${node_name ? `${node_name} · ` : ""}${visible ? `GPU ${visible}` : name}`;
}

/**
 * How many workers serve, and how many of those are busy.
 * @param {Worker[]} workers
 */
export function counts(workers) {
  const busy = workers.filter((worker) => worker.state === "busy").length;
  const ready =
    busy + workers.filter((worker) => worker.state === "idle" || worker.state === "asleep").length;
  return { busy, ready, down: workers.filter(isDown).length, all: workers.length };
}
