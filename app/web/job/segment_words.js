/** The words of a segment: where they are in its text, and in time. */

import { timeAt } from "./edits_split.js";
import { placedWords } from "./edits_words.js";

/** @typedef {import("./types.js").Segment} Segment */
/**
 * @typedef {{text: string, start: number, word: import("./edits_words.js").PlacedWord | null}} Piece
 *   `start`: its offset in the segment's text. `word`: null for what is between words whose times are known.
 */

const UNSURE_BELOW = 0.5;
const MOST_SPEAKERS = 20; // who speak at once

/**
 * A segment's text in pieces: its words, and what is between them.
 * @param {Segment} segment
 * @returns {Piece[]}
 */
export function piecesOf(segment) {
  /** @type {Piece[]} */
  const pieces = [];
  let end = 0;
  for (const word of placedWords(segment)) {
    pieces.push(...unknownPieces(segment.text, end, word.from));
    pieces.push({ text: segment.text.slice(word.from, word.to), start: word.from, word });
    end = word.to;
  }
  return [...pieces, ...unknownPieces(segment.text, end, segment.text.length)];
}

/**
 * New words of a correction, and spaces.
 * @param {string} text
 * @param {number} from
 * @param {number} to
 * @returns {Piece[]}
 */
function unknownPieces(text, from, to) {
  const parts = text.slice(from, to).matchAll(/\s+|\S+/g);
  return [...parts].map((part) => ({ text: part[0], start: from + part.index, word: null }));
}

/**
 * When the text at an offset is spoken, in seconds.
 * @param {Segment} segment
 * @param {number} offset
 */
export function spokenAt(segment, offset) {
  const word = placedWords(segment).find(({ from, to }) => from <= offset && offset < to);
  return word ? word.word.start : timeAt(segment, offset);
}

/**
 * The last entry that starts at a time or earlier; -1 before the first one.
 * @template T
 * @param {readonly T[]} entries In order.
 * @param {number} time seconds
 * @param {(entry: T) => number} startOf
 */
export function lastStarted(entries, time, startOf) {
  let [low, high] = [0, entries.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (startOf(entries[middle]) <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * The segment that is spoken at a time; else the last one before it; -1 before the first one.
 * @param {readonly Segment[]} segments In order. Those of different speakers may overlap.
 * @param {number} time seconds
 */
export function spokenNow(segments, time) {
  const last = lastStarted(segments, time, ({ start }) => start);
  for (let index = last; index >= 0 && index > last - MOST_SPEAKERS; index--) {
    if (segments[index].end > time) return index;
  }
  return last;
}

/** @param {{probability: number | null}} word */
export function isUnsure({ probability }) {
  return probability !== null && probability < UNSURE_BELOW;
}

/**
 * @typedef {{id: string, start: number, end: number, text: string}} UnsureWord Its place in the segment's text.
 */

/**
 * The next word of low probability in the order of reading, from the first one again after the last one.
 * @param {readonly Segment[]} segments
 * @param {{id: string | null, offset: number}} from A place in a text. Words that start there do not count.
 * @param {1 | -1} direction
 * @returns {UnsureWord | null}
 */
export function nextUnsure(segments, from, direction) {
  const known = segments.findIndex(({ id }) => id === from.id);
  const found = known < 0 && direction < 0 ? segments.length - 1 : Math.max(0, known);
  for (let step = 0; step <= segments.length; step++) {
    const index = (found + direction * step + segments.length) % segments.length;
    const words = unsureWords(segments[index]);
    const isHere = step === 0 && segments[index]?.id === from.id;
    const ahead = isHere ? words.filter(({ start }) => (start - from.offset) * direction > 0) : words;
    const next = direction > 0 ? ahead[0] : ahead.at(-1);
    if (next) return next;
  }
  return null;
}

/**
 * @param {Segment | undefined} segment
 * @returns {UnsureWord[]}
 */
function unsureWords(segment) {
  if (!segment?.words.some(isUnsure)) return [];
  return placedWords(segment)
    .filter(({ word }) => isUnsure(word))
    .map(({ from, to }) => ({ id: segment.id, start: from, end: to, text: segment.text.slice(from, to) }));
}

/**
 * Where to split a text: before the word that plays, if it is in the segment; else near the middle.
 * @param {Segment} segment
 * @param {number} time Of the player, in seconds.
 * @returns {number} 0 if it has one word only.
 */
export function splitPoint(segment, time) {
  const words = placedWords(segment);
  const playing = words[lastStarted(words, time, ({ word }) => word.start)];
  if (playing && playing.from > 0 && time < segment.end) return playing.from;
  const spaces = [...segment.text.trimEnd().matchAll(/\s+(?=\S)/g)].filter(({ index }) => index > 0);
  const starts = spaces.length
    ? spaces.map(({ index, 0: { length } }) => index + length)
    : words.map(({ from }) => from);
  const middle = segment.text.length / 2;
  return starts.reduce(
    (best, at) => (Math.abs(at - middle) < Math.abs(best - middle) ? at : best),
    starts[0] ?? 0,
  );
}
