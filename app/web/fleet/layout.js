/** Where the blocks of one timeline are, in pixels. Its right edge is now. */

import { SPAN_S } from "./fleet_state.js";
import { clipsByJob } from "./measures.js";

/** @typedef {import("./types.js").Block} Block */

/**
 * @typedef {object} Box A block on the screen.
 * @property {number} x
 * @property {number} width At least a pixel.
 * @property {{key: string, top: number, height: number}[]} bands The jobs of the block; parts of its height.
 * @property {Block["outcome"] | "running"} outcome
 * @property {Block} block For one under way, `end` is now and `id` is 0.
 */

/**
 * @param {number} time Unix seconds.
 * @param {number} now
 * @param {number} width Of the timeline (px).
 */
export function toX(time, now, width) {
  return width - ((now - time) / SPAN_S) * width;
}

/**
 * The block that a worker works on now.
 * @param {import("./types.js").Worker} worker
 * @param {number} until How long its work is known to last: now, or when the connection was lost.
 * @param {number} lastEnd When its last block ended: its start may not be known better than that.
 * @returns {Block | null}
 */
export function runningBlock({ slot, working }, until, lastEnd) {
  if (!working.length) return null;
  const start = Math.max(lastEnd, Math.min(...working.map((share) => share.since)));
  if (start >= until) return null;
  const clips = working.reduce((sum, share) => sum + share.clips, 0);
  return { id: 0, slot, jobs: working, start, end: until, clips, audio_s: 0, outcome: "ok" };
}

/**
 * What work under way has become.
 * @param {Block[]} blocks Of its worker, in order.
 * @param {Block} running Began when the blocks of that time had ended.
 */
export function endedBlock(blocks, running) {
  return blocks.find((block) => block.end > running.start + 0.01);
}

/**
 * @param {Block[]} blocks In order.
 * @param {Block | null} running
 * @param {number} now
 * @param {number} width (px)
 * @returns {Box[]} Those that can be seen, in order.
 */
export function boxes(blocks, running, now, width) {
  const shown = blocks.filter((block) => block.end > now - SPAN_S && block.start < now);
  const result = shown.map((block) => box(block, block.outcome, now, width));
  if (running) result.push(box(running, "running", now, width));
  return result;
}

/**
 * @param {Block} block
 * @param {Box["outcome"]} outcome
 * @param {number} now
 * @param {number} width
 * @returns {Box}
 */
function box(block, outcome, now, width) {
  const [x, end] = [Math.max(0, toX(block.start, now, width)), Math.min(width, toX(block.end, now, width))];
  // A gap between blocks that follow each other, where there are enough pixels for one.
  const gap = end - x > 4 && outcome !== "running" ? 1 : 0;
  return { x, width: Math.max(1, end - x - gap), bands: bands(block), outcome, block };
}

/**
 * @param {Block} block
 * @returns {Box["bands"]}
 */
function bands(block) {
  const clips = clipsByJob(block);
  const all = [...clips.values()].reduce((sum, count) => sum + count, 0) || 1;
  let top = 0;
  return [...clips].map(([key, count]) => {
    const band = { key, top, height: count / all };
    top += band.height;
    return band;
  });
}

/**
 * The box under a point, or the nearest one within 3 pixels.
 * @param {Box[]} shown In order.
 * @param {number} x
 * @returns {Box | null}
 */
export function boxAt(shown, x) {
  let [best, distance] = [/** @type {Box | null} */ (null), 3];
  for (const candidate of shown) {
    const away = Math.max(candidate.x - x, x - candidate.x - candidate.width, 0);
    if (away <= distance && (away < distance || !best)) [best, distance] = [candidate, away];
  }
  return best;
}

/**
 * The spans in which a worker was out of service or loading.
 * @param {{at: number, state: import("./types.js").WorkerState}[]} states Its changes, in order.
 * @param {number} now
 * @param {number} width (px)
 * @returns {{x: number, width: number, state: "failed" | "restarting" | "loading"}[]}
 */
export function outages(states, now, width) {
  return states.flatMap(({ at, state }, index) => {
    if (state !== "failed" && state !== "restarting" && state !== "loading") return [];
    const x = Math.max(0, toX(at, now, width));
    const end = toX(states[index + 1]?.at ?? now, now, width);
    return end > x ? [{ x, width: end - x, state }] : [];
  });
}
