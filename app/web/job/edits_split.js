/** Two segments of one, and one of two. Without DOM. */

import { freeTime, inOrder, SHORTEST_S, separated, toMs } from "./edits_order.js";
import { change, cleanText, MOST_TEXT_CHARS, newId } from "./edits_segment.js";
import { isUnspaced, placedWords, plainWords } from "./edits_words.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {readonly Segment[]} Segments */

/**
 * The second part gets a new id, and the speaker of its first word. The border lies between the words around the offset, or, where the times of the
 * words are unknown, at the offset's share of the text.
 * @param {Segments} segments
 * @param {string} id
 * @param {number} offset In the text. Both parts must have some.
 * @returns {Segments}
 */
export function split(segments, id, offset) {
  const segment = segments.find((other) => other.id === id);
  if (!segment || offset < 0) return segments;
  const [text, rest] = [segment.text.slice(0, offset).trimEnd(), segment.text.slice(offset).trimStart()];
  const length = toMs(segment.end - segment.start);
  if (!text.trim() || !rest.trim() || length < 0.002) return segments;
  const shortest = Math.min(SHORTEST_S, length / 2);
  const between = Math.max(
    segment.start + shortest,
    Math.min(timeAt(segment, offset), segment.end - shortest),
  );
  const border = toMs(Math.min(Math.max(between, segment.start + 0.001), segment.end - 0.001));
  const words = placedWords(segment);
  const first = {
    ...segment,
    end: border,
    text: cleanText(text),
    words: wordsOf(words.filter((word) => word.to <= offset)),
  };
  const second = {
    ...segment,
    id: newId(),
    start: border,
    text: cleanText(rest),
    speaker: words.find((word) => word.from >= offset)?.word.speaker ?? segment.speaker,
    words: wordsOf(words.filter((word) => word.from >= offset)),
  };
  const parted = inOrder(segments.flatMap((other) => (other === segment ? [first, second] : [other])));
  return second.speaker === segment.speaker ? parted : separated(parted);
}

/** @param {readonly import("./edits_words.js").PlacedWord[]} words */
function wordsOf(words) {
  return plainWords(words.map(({ word }) => word));
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
