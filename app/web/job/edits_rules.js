/** What a segment may be, where segments may be, and what differs between two states of them. Without DOM. */

import { keptWords, plainWords } from "./words.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {readonly Segment[]} Segments */

export const MOST_TEXT_CHARS = 10_000; // of a segment
export const MOST_SPEAKER_CHARS = 100;

/** What becomes a space. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it finds
const BREAKS = /[\t-\r\x1c-\x1f\x85\u2028\u2029]+/g;
const REFUSED = /\p{Surrogate}/gu; // halves of characters

const PAGE = Math.random().toString(36).slice(2, 10); // tabs that a browser opens again may begin at the same time
let newIds = 0;

/** An id of this page; the service gives its own when the segment is saved. */
export function newId() {
  return `new-${Date.now().toString(36)}-${PAGE}-${++newIds}`;
}

/**
 * Text in one line, as the service stores it, with the spaces at its ends.
 * @param {string} text
 */
export function cleanText(text) {
  return text
    .replace(BREAKS, " ")
    .replace(/\p{Cc}/gu, "")
    .replace(REFUSED, "\ufffd");
}

/**
 * @param {Segment} segment
 * @param {string} text
 */
export function withText(segment, text) {
  const clean = cleanText(cleanText(text).slice(0, MOST_TEXT_CHARS));
  return clean === segment.text
    ? segment
    : {
        ...segment,
        ...marksIn(segment, shiftOf([...segment.text], [...clean]), charactersOf(clean)),
        text: clean,
        words: plainWords(keptWords(segment, clean)),
      };
}

/** How many characters a text has: marks count them, and not the units of JavaScript. @param {string} text */
export function charactersOf(text) {
  return [...text].length;
}

/**
 * The marks of a segment in another text, if it has had some.
 * @param {Segment} segment
 * @param {(at: number, isBehind: boolean) => number} placeOf Their new places.
 * @param {number} length Of the other text, in characters.
 */
export function marksIn({ marks }, placeOf, length) {
  const moved = marks?.map((mark) => ({ ...mark, at: placeOf(mark.at, mark.at > 0) }));
  return moved && { marks: moved.filter(({ at }) => at >= 0 && at < length) };
}

/**
 * Where the places of a text are in another one that differs in one stretch.
 * @param {ArrayLike<string>} before
 * @param {ArrayLike<string>} after
 * @returns {(at: number, isBehind: boolean) => number} `isBehind`: what was inserted there is before the place.
 */
export function shiftOf(before, after) {
  const most = Math.min(before.length, after.length);
  let [start, same] = [0, 0];
  while (start < most && before[start] === after[start]) start++;
  while (same < most - start && before[before.length - 1 - same] === after[after.length - 1 - same]) same++;
  const end = before.length - same;
  return (at, isBehind) => {
    if (at < start || (at === start && (end > start || !isBehind))) return at;
    if (at >= end) return at + after.length - before.length;
    return isBehind ? after.length - same : start;
  };
}

/** The name as the service stores it; null for none. @param {string | null} name */
export function cleanSpeaker(name) {
  return (
    cleanText(name ?? "")
      .slice(0, MOST_SPEAKER_CHARS)
      .trim() || null
  );
}

/**
 * @param {Segment} segment
 * @param {string | null} speaker Of all of its words.
 */
export function withSpeaker(segment, speaker) {
  return { ...segment, speaker, words: plainWords(segment.words) };
}

/**
 * @param {Segments} segments
 * @param {string} id
 * @param {(segment: Segment) => Segment} changed
 * @returns {Segments}
 */
export function change(segments, id, changed) {
  const index = segments.findIndex((segment) => segment.id === id);
  const segment = index < 0 ? undefined : changed(segments[index]);
  return !segment || segment === segments[index] ? segments : inOrder(segments.with(index, segment));
}

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
    first.text.trim() === second.text.trim() &&
    JSON.stringify(first.marks ?? []) === JSON.stringify(second.marks ?? [])
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
