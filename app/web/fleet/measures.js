/** Figures made of blocks. */

import { SPAN_S } from "./fleet_state.js";

/** @typedef {import("./fleet_state.js").Fleet} Fleet */
/** @typedef {import("./types.js").Block} Block */

/** The name under which the screen counts all direct requests together. */
export const DIRECT = "request";

/** @param {import("./types.js").Share} share */
export function jobKey(share) {
  return share.kind === "request" ? DIRECT : share.job;
}

/**
 * The clips of a block by job. Direct requests count as one.
 * @param {Block} block
 * @returns {Map<string, number>}
 */
export function clipsByJob({ jobs }) {
  /** @type {Map<string, number>} */
  const clips = new Map();
  for (const share of jobs) clips.set(jobKey(share), (clips.get(jobKey(share)) ?? 0) + share.clips);
  return clips;
}

/**
 * Seconds of audio transcribed per second, for equal parts of a span. A block counts evenly over its time.
 * @param {Fleet} fleet
 * @param {number} from Unix seconds.
 * @param {number} to
 * @param {number} [parts]
 * @returns {number[]} Oldest part first.
 */
export function speeds(fleet, from, to, parts = 1) {
  const width = (to - from) / parts;
  const sums = new Array(parts).fill(0);
  for (const blocks of fleet.blocks.values()) {
    for (const block of blocks) {
      if (block.outcome === "ok" && block.end > from && block.start < to) spread(block, from, width, sums);
    }
  }
  return sums.map((sum) => sum / width);
}

/**
 * @param {Block} block
 * @param {number} from
 * @param {number} width
 * @param {number[]} sums
 */
function spread(block, from, width, sums) {
  const length = Math.max(block.end - block.start, 1e-3);
  const last = Math.min(sums.length - 1, Math.floor((block.end - from) / width));
  for (let index = Math.max(0, Math.floor((block.start - from) / width)); index <= last; index++) {
    const begin = from + index * width;
    const shared = Math.min(block.start + length, begin + width) - Math.max(block.start, begin);
    sums[index] += (block.audio_s * Math.max(0, shared)) / length;
  }
}

/**
 * The utilisation of a GPU lately. It is known when it changes, and holds until the next change.
 * @param {{at: number, value: number}[]} loads In order.
 * @param {number} now
 * @param {number} span (s)
 * @returns {[number, number][]} From when on (0 to 1: of the span) it had which value.
 */
export function loadSteps(loads, now, span) {
  const first = loads.findLastIndex((load) => load.at <= now - span);
  return loads.slice(Math.max(0, first)).map(({ at, value }) => [Math.max(0, 1 - (now - at) / span), value]);
}

/**
 * @typedef {object} JobWork What the fleet did for a job lately.
 * @property {string} key Of the job, or DIRECT.
 * @property {number} clips
 * @property {number} lastAt When a block of it ended; Infinity if one is under way.
 */

/**
 * The jobs of the timelines: those under way first, then the latest ones.
 * @param {Fleet} fleet
 * @param {number} now
 * @returns {JobWork[]}
 */
export function jobsShown(fleet, now) {
  /** @type {Map<string, JobWork>} */
  const jobs = new Map();
  /** @param {import("./types.js").Share} share @param {number} at @param {number} clips */
  const count = (share, at, clips) => {
    const key = jobKey(share);
    const job = jobs.get(key) ?? { key, clips: 0, lastAt: 0 };
    job.clips += clips;
    job.lastAt = Math.max(job.lastAt, at);
    jobs.set(key, job);
  };
  for (const blocks of fleet.blocks.values()) {
    for (const block of blocks) {
      if (block.end < now - SPAN_S) continue;
      for (const share of block.jobs) count(share, block.end, block.outcome === "ok" ? share.clips : 0);
    }
  }
  for (const worker of fleet.workers) for (const share of worker.working) count(share, Infinity, 0);
  // The order of jobs under way must not change with every block.
  return [...jobs.values()].sort((one, other) =>
    one.lastAt === other.lastAt ? (one.key < other.key ? -1 : 1) : other.lastAt - one.lastAt,
  );
}

/**
 * What became of a worker's latest blocks. `speed`: seconds of audio per second of work; null before any.
 * @param {Block[]} blocks
 */
export function outcomes(blocks) {
  const result = { ok: 0, failed: 0, requeued: 0, clips: 0 };
  let [audio, time] = [0, 0];
  for (const block of blocks) {
    result[block.outcome] += 1;
    if (block.outcome !== "ok") continue;
    result.clips += block.clips;
    audio += block.audio_s;
    time += block.end - block.start;
  }
  return { ...result, speed: time > 0 ? audio / time : null };
}
