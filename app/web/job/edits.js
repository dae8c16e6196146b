/**
 * Corrections of a transcript, without DOM. Each function takes the segments of a document in order, and returns
 * those after the correction, in order; the segments that it leaves alone are the same objects. Where a correction
 * is impossible or changes nothing, it returns the same array. Times are in seconds.
 */

import {
  change,
  charactersOf,
  cleanSpeaker,
  cleanText,
  freeTime,
  inOrder,
  MOST_TEXT_CHARS,
  marksIn,
  newId,
  SHORTEST_S,
  separated,
  toMs,
  withSpeaker,
  withText,
} from "./edits_rules.js";
import { placedWords, plainWords, spaceBetween, timeAt } from "./words.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {readonly Segment[]} Segments */
/** @typedef {{start: number, end: number}} Span Seconds. */
/** @typedef {{id: string, start: number, end: number}} Match Offsets in the text of the segment `id`. */

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
 * @param {ReadonlySet<string>} ids
 * @param {string | null} speaker
 * @returns {Segments}
 */
export function setSpeakers(segments, ids, speaker) {
  const name = cleanSpeaker(speaker);
  const isOther = (/** @type {Segment} */ segment) => ids.has(segment.id) && segment.speaker !== name;
  if (!segments.some(isOther)) return segments;
  return separated(segments.map((segment) => (isOther(segment) ? withSpeaker(segment, name) : segment)));
}

/**
 * Insert an empty segment, of the speaker before it and in the same language.
 * @param {Segments} segments
 * @param {number} at Index of the segment that comes after it.
 * @param {number} start
 * @param {number} end It is moved into the free time between its neighbours.
 * @param {number} [limit] The length of the recording.
 * @returns {Segments} The same array if there is no time between the neighbours.
 */
export function insert(segments, at, start, end, limit = Infinity) {
  const { speaker = null, language } = segments[at - 1] ?? segments[at] ?? {};
  const earlier = segments.slice(0, at).findLast((segment) => segment.speaker === speaker);
  const later = segments.slice(at).find((segment) => segment.speaker === speaker);
  const times = fitted(start, end, earlier?.end ?? 0, later?.start ?? limit);
  if (!times) return segments;
  return inOrder([
    ...segments.slice(0, at),
    { id: newId(), ...times, text: "", speaker, ...(language && { language }), words: [] },
    ...segments.slice(at),
  ]);
}

/**
 * @param {Segments} segments
 * @param {ReadonlySet<string>} ids
 * @returns {Segments}
 */
export function remove(segments, ids) {
  return segments.some(({ id }) => ids.has(id)) ? segments.filter(({ id }) => !ids.has(id)) : segments;
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
    ...marksIn(segment, (at) => at, charactersOf(text)),
    words: wordsOf(words.filter((word) => word.to <= offset)),
  };
  const second = {
    ...segment,
    id: newId(),
    start: border,
    text: cleanText(rest),
    ...marksIn(
      segment,
      (at) => at - charactersOf(segment.text.slice(0, segment.text.length - rest.length)),
      charactersOf(rest),
    ),
    speaker: words.find((word) => word.from >= offset)?.word.speaker ?? segment.speaker,
    words: wordsOf(words.filter((word) => word.from >= offset)),
  };
  const parted = inOrder(segments.flatMap((other) => (other === segment ? [first, second] : [other])));
  return second.speaker === segment.speaker ? parted : separated(parted);
}

/**
 * Split the first and the last of some neighbours, so that segments begin and end there.
 * @param {Segments} segments
 * @param {ReadonlySet<string>} ids In order.
 * @param {number} start Offset in the text of the first one.
 * @param {number} end In that of the last one.
 * @returns {{segments: Segments, ids: ReadonlySet<string>}} With the ids of what is between.
 */
export function cutOut(segments, ids, start, end) {
  const [first, last] = [[...ids][0], [...ids].at(-1) ?? ""];
  const ended = split(segments, last, end);
  const begun = split(ended, first, start);
  if (begun === ended) return { segments: ended, ids };
  const known = new Set(ended.map(({ id }) => id));
  const added = begun.filter(({ id }) => !known.has(id)).map(({ id }) => id);
  return { segments: begun, ids: new Set([...added, ...[...ids].filter((id) => id !== first)]) };
}

/**
 * Other times for a subtitle. It becomes a segment of its own, and what is left of its segments stays as it is shown.
 * @param {Segments} segments
 * @param {import("./transcript_view.js").Place} place
 * @param {{start: number, end: number}} times
 * @param {{before: Partial<Span>, after: Partial<Span>, limit?: number}} around How what is left before and after it is shown, and the length of the recording.
 * @returns {{segments: Segments, id: string}} `id`: of that segment. The same array if it is impossible.
 */
export function setCueTimes(segments, { parts, start, end }, times, { before, after, limit }) {
  const [first, last] = [parts[0], parts[parts.length - 1]];
  const ids = new Set(parts.map(({ segment }) => segment.id));
  const cut = cutOut(segments, ids, first.from, last.to);
  const whole = joinAll(cut.segments, cut.ids);
  const [id] = cut.ids;
  const index = whole.findIndex((segment) => segment.id === id);
  if (cut.ids.size > 1 && whole === cut.segments) return { segments, id };
  const known = new Set(segments.map((segment) => segment.id));
  const shown = whole.map((segment, place) => {
    const isShown = segment.start === start && segment.end === end;
    if (place === index) return isShown ? segment : { ...segment, start, end };
    const isLeft = cut.segments !== segments && (segment.id === first.segment.id || !known.has(segment.id));
    return isLeft ? { ...segment, ...(place < index ? before : after) } : segment;
  });
  const timed = setTimes(separated(inOrder(shown)), id, times.start, times.end, limit);
  const isSame = timed.every(
    (segment, place) => segment === segments[place] && timed.length === segments.length,
  );
  return { segments: isSame ? segments : timed, id };
}

/** @param {readonly import("./words.js").PlacedWord[]} words */
function wordsOf(words) {
  return plainWords(words.map(({ word }) => word));
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
  const length = charactersOf(text);
  const border = length - charactersOf(next.text.trimStart());
  const of = [marksIn(segment, (at) => at, border), marksIn(next, (at) => at + border, length)];
  const marks = of.some(Boolean) && { marks: of.flatMap((part) => part?.marks ?? []) };
  return change(rest, id, (old) => ({ ...old, end, text, ...marks, words }));
}

/**
 * Join neighbouring segments. The first one keeps its id and its speaker.
 * @param {Segments} segments
 * @param {ReadonlySet<string>} ids
 * @returns {Segments} The same array if the text would be too long.
 */
export function joinAll(segments, ids) {
  const chosen = segments.filter(({ id }) => ids.has(id));
  let joined = segments;
  for (let count = 1; count < chosen.length; count++) {
    const next = join(joined, chosen[0].id);
    if (next === joined) return segments;
    joined = next;
  }
  return joined;
}

/**
 * @param {string} first
 * @param {string} second
 */
export function joinedText(first, second) {
  const [left, right] = [first.trimEnd(), second.trimStart()];
  return left && right ? left + spaceBetween(left, right) + right : left || right;
}
