/** The steps that can be undone and redone. A step has only the segments that it changed. Without DOM. */

import { applyChanges, changesBetween } from "./edits_changes.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {readonly Segment[]} Segments */
/** @typedef {import("./edits_changes.js").Change} Change */
/** @typedef {import("./session_types.js").EditName} EditName */
/** @typedef {{name: EditName, focusId: string | null, changes: readonly Change[], at: number}} Step `at`: in ms. */
/** @typedef {{past: readonly Step[], future: readonly Step[]}} History The newest step of each list is its last. */

export const MOST_STEPS = 500;
const ONE_STEP_MS = 1000; // between key presses that are undone together
const CONTINUED = new Set(["text", "times"]);

/** @type {History} */
export const EMPTY_HISTORY = { past: [], future: [] };

/**
 * @param {History} history
 * @param {{name: EditName, focusId: string | null, at: number}} step
 * @param {Segments} before
 * @param {Segments} after
 * @returns {History}
 */
export function recorded(history, step, before, after) {
  const changes = changesBetween(before, after);
  const last = history.past.at(-1);
  const continues =
    last &&
    CONTINUED.has(step.name) &&
    last.name === step.name &&
    last.focusId === step.focusId &&
    step.at - last.at < ONE_STEP_MS &&
    !history.future.length;
  const added = { ...step, changes: continues ? combined(last.changes, changes) : changes };
  const past = continues ? history.past.slice(0, -1) : history.past;
  return { past: [...past, added].slice(-MOST_STEPS), future: [] };
}

/**
 * @param {readonly Change[]} earlier
 * @param {readonly Change[]} later
 * @returns {Change[]}
 */
function combined(earlier, later) {
  const all = new Map(earlier.map((change) => [change.id, change]));
  for (const change of later)
    all.set(change.id, { ...change, before: (all.get(change.id) ?? change).before });
  return [...all.values()];
}

/**
 * @param {History} history
 * @param {Segments} segments
 * @returns {{history: History, segments: Segments, step: Step} | null} null: there is nothing to undo.
 */
export function undone({ past, future }, segments) {
  const step = past.at(-1);
  if (!step) return null;
  const history = { past: past.slice(0, -1), future: [...future, { ...step, at: 0 }] };
  return { history, segments: applyChanges(segments, step.changes, "before"), step };
}

/**
 * @param {History} history
 * @param {Segments} segments
 * @returns {{history: History, segments: Segments, step: Step} | null} null: there is nothing to redo.
 */
export function redone({ past, future }, segments) {
  const step = future.at(-1);
  if (!step) return null;
  const history = { past: [...past, step], future: future.slice(0, -1) };
  return { history, segments: applyChanges(segments, step.changes, "after"), step };
}
