/** How long a job still takes: an estimate that counts down instead of jumping with each answer. */

const TOLERANCE = 0.15; // of the time left: smaller differences are noise
const TOLERANCE_S = 3;
const STEP = 0.35; // of a larger difference, with each answer

/** @typedef {{left: number, at: number}} Estimate Seconds left at a time in s. */

/**
 * @param {import("../job/types.js").Progress} progress
 * @returns {number | null} Seconds by the speed so far; null while there is none.
 */
export function secondsLeft({ done_s, total_s, realtime_factor }) {
  if (!total_s || !realtime_factor) return null;
  return Math.max(0, total_s - done_s) / realtime_factor;
}

/**
 * The next estimate. It follows the old one while that is about right, and approaches the new value otherwise.
 * @param {Estimate | null} old
 * @param {number} left seconds, as `secondsLeft` gives them
 * @param {number} now s
 * @returns {Estimate}
 */
export function nextEstimate(old, left, now) {
  if (!old) return { left, at: now };
  const expected = Math.max(0, old.left - (now - old.at));
  const difference = left - expected;
  if (Math.abs(difference) <= expected * TOLERANCE + TOLERANCE_S) return { left: expected, at: now };
  return { left: expected + difference * STEP, at: now };
}

/**
 * Whole units as people say them.
 * @param {number} seconds
 * @returns {{unit: "seconds" | "minutes", count: number} | {unit: "hours", count: number, minutes: number}}
 */
export function roughly(seconds) {
  if (seconds <= 55) return { unit: "seconds", count: Math.max(5, Math.ceil(seconds / 5) * 5) };
  const minutes = Math.ceil(seconds / 60 - 0.1);
  if (minutes < 60) return { unit: "minutes", count: minutes };
  return { unit: "hours", count: Math.floor(minutes / 60), minutes: minutes % 60 };
}
