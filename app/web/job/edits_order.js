/** Where segments may be: ordered by their start, and those of one speaker apart. Without DOM. */

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {readonly Segment[]} Segments */

/** The shortest time of a segment that is set by hand, in seconds, where there is space for it. */
export const SHORTEST_S = 0.05;

/** To whole milliseconds, as the service keeps times. @param {number} seconds */
export function toMs(seconds) {
  return Math.round(seconds * 1000) / 1000;
}

/**
 * The order of a document. The ids make it the same however it came about.
 * @param {Segment} one
 * @param {Segment} other
 */
export function byTime(one, other) {
  return (
    one.start - other.start || one.end - other.end || (one.id < other.id ? -1 : Number(one.id > other.id))
  );
}

/**
 * @param {Segments} segments
 * @returns {Segments} The same array if it is in order.
 */
export function inOrder(segments) {
  const isOrdered = segments.every(
    (segment, index) => index === 0 || byTime(segments[index - 1], segment) <= 0,
  );
  return isOrdered ? segments : [...segments].sort(byTime);
}

/**
 * The end of the segment of the same speaker before it, and the start of the one after it, in seconds.
 * @param {Segments} segments
 * @param {number} index
 * @param {number} limit The end of the recording.
 * @returns {{after: number, before: number}}
 */
export function freeTime(segments, index, limit) {
  const { speaker } = segments[index];
  const earlier = segments.slice(0, index).findLast((segment) => segment.speaker === speaker);
  const later = segments.slice(index + 1).find((segment) => segment.speaker === speaker);
  return { after: earlier?.end ?? 0, before: later?.start ?? limit };
}

/**
 * The segments with no two of one speaker at the same time: the earlier one ends where the next begins.
 * @param {Segments} segments In order.
 * @returns {Segments} The same array if nothing overlaps.
 */
export function separated(segments) {
  /** @type {Map<string | null, number>} */
  const last = new Map();
  const result = [...segments];
  let isChanged = false;
  for (let index = 0; index < result.length; index++) {
    const segment = result[index];
    const before = last.get(segment.speaker);
    if (before !== undefined && result[before].end > segment.start) {
      [result[before], result[index]] = apart(result[before], segment);
      isChanged = true;
    }
    last.set(segment.speaker, index);
  }
  return isChanged ? inOrder(result) : segments;
}

/**
 * Two overlapping segments, parted where the second begins; in the middle if both begin at once.
 * @param {Segment} first
 * @param {Segment} second
 * @returns {[Segment, Segment]}
 */
function apart(first, second) {
  if (second.start - first.start >= 0.001) return [{ ...first, end: second.start }, second];
  const border = Math.max(
    toMs((first.start + Math.min(first.end, second.end)) / 2),
    toMs(first.start + 0.001),
  );
  return [
    { ...first, end: border },
    { ...second, start: border, end: Math.max(second.end, toMs(border + 0.001)) },
  ];
}
