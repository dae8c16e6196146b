/**
 * Corrections of a transcript, without DOM. Each function takes the segments of a document in order, and returns
 * those after the correction, in order; the segments that it leaves alone are the same objects. Where a correction
 * is impossible or changes nothing, it returns the same array. Times are in seconds.
 */

import { freeTime, inOrder, SHORTEST_S, toMs } from "./edits_order.js";
import { isUnspaced, keptWords, placedWords } from "./edits_words.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {readonly Segment[]} Segments */
/** @typedef {{id: string, start: number, end: number}} Match Offsets in the text of the segment `id`. */

export const MOST_TEXT_CHARS = 10_000; // of a segment
export const MOST_SPEAKER_CHARS = 100;

const HALF_CHARACTER = /\p{Surrogate}/gu; // the service refuses these

let newIds = 0;

/** An id of this page; the service gives its own when the segment is saved. */
export function newId() {
  return `new-${Date.now().toString(36)}-${++newIds}`;
}

/**
 * Text in one line, as the service stores it, with the spaces at its ends.
 * @param {string} text
 */
export function cleanText(text) {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it removes
  return text.replace(/[\t-\r\x1c-\x1f\x85\u2028\u2029]+/g, " ").replace(/[\x00-\x1f\x7f-\x9f]/g, "").replace(HALF_CHARACTER, "\ufffd");
}

/**
 * A segment without text is not stored: the service has it no longer after the next save.
 * @param {Segments} segments
 * @param {string} id
 * @param {string} text Line breaks become spaces.
 * @returns {Segments}
 */
export function setText(segments, id, text) {
  return change(segments, id, (segment) => withText(segment, text));
}

/**
 * @param {Segment} segment
 * @param {string} text
 */
function withText(segment, text) {
  const clean = cleanText(cleanText(text).slice(0, MOST_TEXT_CHARS));
  return clean === segment.text ? segment : { ...segment, text: clean, words: keptWords(segment, clean) };
}

/**
 * The segment at the nearest times that its neighbours of the same speaker leave free.
 * @param {Segments} segments
 * @param {string} id
 * @param {number} start
 * @param {number} end
 * @param {number} [limit] The length of the recording.
 * @returns {Segments}
 */
export function setTimes(segments, id, start, end, limit = Infinity) {
  const index = segments.findIndex((segment) => segment.id === id);
  if (index < 0) return segments;
  const segment = segments[index];
  const { after, before } = freeTime(segments, index, Math.max(limit, segment.end));
  const times = fitted(start, end, after, before);
  if (!times || (times.start === segment.start && times.end === segment.end)) return segments;
  return change(segments, id, (old) => ({ ...old, ...times }));
}

/**
 * @param {number} start
 * @param {number} end
 * @param {number} after
 * @param {number} before
 * @returns {{start: number, end: number} | null} The nearest times within; null if there is no space.
 */
function fitted(start, end, after, before) {
  const shortest = Math.min(SHORTEST_S, toMs(before - after));
  if (shortest < 0.001 || Number.isNaN(start) || Number.isNaN(end)) return null;
  const from = toMs(Math.max(after, Math.min(start, before - shortest)));
  return { start: from, end: toMs(Math.min(before, Math.max(end, from + shortest))) };
}

/**
 * Where the speaker has a segment at the same time, the earlier one of the two ends where the later one begins.
 * @param {Segments} segments
 * @param {string} id
 * @param {string | null} speaker
 * @returns {Segments}
 */
export function setSpeaker(segments, id, speaker) {
  const name = cleanText(speaker ?? "").slice(0, MOST_SPEAKER_CHARS).trim() || null;
  const segment = segments.find((other) => other.id === id);
  if (!segment || segment.speaker === name) return segments;
  const others = segments.filter((other) => other.speaker === name);
  const next = others.find((other) => other.start > segment.start);
  const moved = { ...segment, speaker: name, end: Math.min(segment.end, next?.start ?? segment.end) };
  const before = others.findLast((other) => other.start <= segment.start && other.end > segment.start);
  if (before && toMs(segment.start - before.start) < 0.001) return segments;
  const changed = before ? change(segments, before.id, (other) => ({ ...other, end: segment.start })) : segments;
  return change(changed, id, () => moved);
}

/**
 * The second part gets a new id. The border lies between the words around the offset, or, where the times of the
 * words are unknown, at the offset's share of the text.
 * @param {Segments} segments
 * @param {string} id
 * @param {number} offset In the text. Both parts must have some.
 * @returns {Segments}
 */
export function split(segments, id, offset) {
  const segment = segments.find((other) => other.id === id);
  if (!segment) return segments;
  const [text, rest] = [segment.text.slice(0, offset).trimEnd(), segment.text.slice(offset).trimStart()];
  const length = toMs(segment.end - segment.start);
  if (!text.trim() || !rest.trim() || length < 0.002) return segments;
  const shortest = Math.min(SHORTEST_S, length / 2);
  const between = Math.max(segment.start + shortest, Math.min(timeAt(segment, offset), segment.end - shortest));
  const border = toMs(Math.min(Math.max(between, segment.start + 0.001), segment.end - 0.001));
  const words = placedWords(segment);
  const first = { ...segment, end: border, text: cleanText(text), words: wordsOf(words.filter((word) => word.to <= offset)) };
  const second = {
    ...segment,
    id: newId(),
    start: border,
    text: cleanText(rest),
    words: wordsOf(words.filter((word) => word.from >= offset)),
  };
  return inOrder(segments.flatMap((other) => (other === segment ? [first, second] : [other])));
}

/** @param {readonly import("./edits_words.js").PlacedWord[]} words */
function wordsOf(words) {
  return words.map(({ word }) => word);
}

/**
 * When the text at the offset is spoken.
 * @param {Segment} segment
 * @param {number} offset
 */
export function timeAt(segment, offset) {
  const words = placedWords(segment);
  const inside = words.find(({ from, to }) => from < offset && offset < to);
  const earlier = words.findLast(({ to }) => to <= offset);
  const later = words.find(({ from }) => from >= offset);
  let before = { at: earlier?.to ?? 0, time: earlier?.word.end ?? segment.start };
  let after = { at: later?.from ?? segment.text.length, time: later?.word.start ?? segment.end };
  if (inside) {
    before = { at: inside.from, time: inside.word.start };
    after = { at: inside.to, time: inside.word.end };
  }
  const isBetween = !segment.text.slice(before.at, after.at).trim();
  const share = isBetween ? 0.5 : (offset - before.at) / (after.at - before.at);
  return before.time + (after.time - before.time) * share;
}

/**
 * Join a segment with the next one. It keeps its id and its speaker.
 * @param {Segments} segments
 * @param {string} id
 * @returns {Segments}
 */
export function join(segments, id) {
  const index = segments.findIndex((segment) => segment.id === id);
  const [segment, next] = segments.slice(index, index + 2);
  if (index < 0 || !next) return segments;
  const text = joinedText(segment.text, next.text);
  if (text.length > MOST_TEXT_CHARS) return segments;
  const rest = segments.filter((other) => other !== next);
  const { before } = freeTime(rest, index, Infinity);
  const end = Math.max(segment.end, Math.min(next.end, before));
  const words = [...wordsOf(placedWords(segment)), ...wordsOf(placedWords(next))];
  return change(rest, id, (old) => ({ ...old, end, text, words }));
}

/**
 * @param {string} first
 * @param {string} second
 */
function joinedText(first, second) {
  const [left, right] = [first.trimEnd(), second.trimStart()];
  if (!left || !right) return left || right;
  const last = /** @type {string} */ ([...left.slice(-2)].at(-1));
  return isUnspaced(last) || isUnspaced(right) ? left + right : `${left} ${right}`;
}

/**
 * Insert an empty segment, of the speaker before it.
 * @param {Segments} segments
 * @param {number} at Index of the segment that comes after it.
 * @param {number} start
 * @param {number} end It is moved into the free time between its neighbours.
 * @param {number} [limit] The length of the recording.
 * @returns {Segments} The same array if there is no time between the neighbours.
 */
export function insert(segments, at, start, end, limit = Infinity) {
  const speaker = (segments[at - 1] ?? segments[at])?.speaker ?? null;
  const earlier = segments.slice(0, at).findLast((segment) => segment.speaker === speaker);
  const later = segments.slice(at).find((segment) => segment.speaker === speaker);
  const times = fitted(start, end, earlier?.end ?? 0, later?.start ?? limit);
  if (!times) return segments;
  return inOrder([...segments.slice(0, at), { id: newId(), ...times, text: "", speaker, words: [] }, ...segments.slice(at)]);
}

/**
 * @param {Segments} segments
 * @param {string} id
 * @returns {Segments}
 */
export function remove(segments, id) {
  return segments.some((segment) => segment.id === id) ? segments.filter((segment) => segment.id !== id) : segments;
}

/**
 * @param {Segments} segments
 * @param {readonly Match[]} matches Not overlapping, in order.
 * @param {string} replacement
 * @returns {Segments}
 */
export function replaceAll(segments, matches, replacement) {
  if (!matches.length) return segments;
  /** @type {Map<string, Match[]>} */
  const bySegment = new Map();
  for (const match of matches) bySegment.set(match.id, [...(bySegment.get(match.id) ?? []), match]);
  const changed = segments.map((segment) => {
    const found = bySegment.get(segment.id);
    return found ? withText(segment, replaced(segment.text, found, replacement)) : segment;
  });
  return changed.some((segment, index) => segment !== segments[index]) ? changed : segments;
}

/**
 * @param {string} text
 * @param {readonly Match[]} matches
 * @param {string} replacement
 */
function replaced(text, matches, replacement) {
  let [result, at] = ["", 0];
  for (const { start, end } of matches) {
    result += text.slice(at, start) + replacement;
    at = end;
  }
  return result + text.slice(at);
}

/**
 * @param {Segments} segments
 * @param {string} id
 * @param {(segment: Segment) => Segment} changed
 * @returns {Segments}
 */
function change(segments, id, changed) {
  const index = segments.findIndex((segment) => segment.id === id);
  const segment = index < 0 ? undefined : changed(segments[index]);
  return !segment || segment === segments[index] ? segments : inOrder(segments.with(index, segment));
}
