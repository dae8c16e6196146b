/** What differs between two states of a document, segment by segment. Without DOM. */

import { inOrder, separated } from "./edits_order.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {readonly Segment[]} Segments */
/** @typedef {{id: string, before: Segment | null, after: Segment | null}} Change null: there is no such segment. */

/**
 * Whether the service would store the same. It stores no segment without text, and words are its own.
 * @param {Segment | null | undefined} one
 * @param {Segment | null | undefined} other
 */
export function isSame(one, other) {
  if (one === other) return true;
  const [first, second] = [stored(one), stored(other)];
  if (!first || !second) return first === second;
  return (
    first.start === second.start &&
    first.end === second.end &&
    first.speaker === second.speaker &&
    first.text.trim() === second.text.trim()
  );
}

/** @param {Segment | null | undefined} segment */
function stored(segment) {
  return segment?.text.trim() ? segment : null;
}

/**
 * @param {Segments} before
 * @param {Segments} after
 * @param {(one: Segment | null, other: Segment | null) => boolean} [equal] By default identity.
 * @returns {Change[]}
 */
export function changesBetween(before, after, equal = Object.is) {
  let [start, end, afterEnd] = [0, before.length, after.length];
  while (start < end && start < afterEnd && before[start] === after[start]) start++;
  while (end > start && afterEnd > start && before[end - 1] === after[afterEnd - 1])
    [end, afterEnd] = [end - 1, afterEnd - 1];
  const changed = new Map(after.slice(start, afterEnd).map((segment) => [segment.id, segment]));
  /** @type {Change[]} */
  const changes = [];
  for (const old of before.slice(start, end)) {
    const segment = changed.get(old.id) ?? null;
    changed.delete(old.id);
    if (!equal(old, segment)) changes.push({ id: old.id, before: old, after: segment });
  }
  for (const segment of changed.values()) {
    if (!equal(null, segment)) changes.push({ id: segment.id, before: null, after: segment });
  }
  return changes;
}

/**
 * @param {Segments} segments
 * @param {readonly Change[]} changes
 * @param {"before" | "after"} side The state that the segments of the changes get.
 * @returns {Segments}
 */
export function applyChanges(segments, changes, side) {
  if (!changes.length) return segments;
  const wanted = new Map(changes.map((change) => [change.id, change[side]]));
  /** @type {Segment[]} */
  const result = [];
  for (const segment of segments) {
    const changed = wanted.has(segment.id) ? wanted.get(segment.id) : segment;
    wanted.delete(segment.id);
    if (changed) result.push(changed);
  }
  for (const segment of wanted.values()) if (segment) result.push(segment);
  return separated(inOrder(result));
}
