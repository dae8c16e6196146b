/** Random documents and corrections for the tests, the same in each run. */

import * as edits from "../../app/web/job/edits.js";
import { toMs } from "../../app/web/job/edits_rules.js";
import { placedWords } from "../../app/web/job/words.js";

/** @typedef {import("../../app/web/job/types.js").Segment} Segment */
/** @typedef {readonly Segment[]} Segments */
/** @typedef {() => number} Random From 0 to 1. */

export const LENGTH_S = 600;
const WORDS = "the quick brown fox jumps over 狐狸 跳 это don't über naïve สวัสดี 🦊 a a a".split(" ");

/** @param {number} seed @returns {Random} mulberry32 */
export function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/**
 * @template T
 * @param {Random} random
 * @param {readonly T[]} list
 */
export function oneOf(random, list) {
  return list[Math.floor(random() * list.length)];
}

/** @param {Random} random @param {number} count */
export function randomText(random, count) {
  return Array.from({ length: count }, () => oneOf(random, WORDS)).join(" ");
}

/**
 * Speech of two speakers, who interrupt each other.
 * @param {Random} random
 * @param {number} [count]
 * @returns {Segments}
 */
export function randomDocument(random, count = 30) {
  /** @type {Segment[]} */
  const segments = [];
  const free = new Map();
  for (let index = 0; index < count; index++) {
    const speaker = oneOf(random, [null, "Ada"]);
    const start =
      Math.max(segments.at(-1)?.start ?? 0, free.get(speaker) ?? 0) + Math.round(random() * 1500) / 1000;
    const text = randomText(random, 1 + Math.floor(random() * 8));
    const words = text.split(" ").map((word, place, all) => ({
      word,
      start: toMs(start + (4 * place) / all.length),
      end: toMs(start + (4 * (place + 0.8)) / all.length),
      probability: random(),
    }));
    segments.push({
      id: `${index}-0`,
      start: toMs(start),
      end: toMs(start + 4),
      text,
      speaker,
      words,
    });
    free.set(speaker, start + 4);
  }
  return segments;
}

/**
 * Any correction, with senseless values now and then.
 * @param {Random} random
 * @param {Segments} segments
 * @returns {{name: import("../../app/web/job/types.js").EditName, segments: Segments, id: string}}
 */
export function randomEdit(random, segments) {
  const segment = oneOf(random, segments);
  const id = segment?.id ?? "gone";
  const time = () => random() * (LENGTH_S + 50) - 25;
  const near = () => (segment?.start ?? 0) + random() * 8 - 4;
  /** @type {[import("../../app/web/job/types.js").EditName, () => Segments][]} */
  const all = [
    ["text", () => edits.setText(segments, id, `${segment?.text} ${randomText(random, 1)}\n\u0007`)],
    [
      "text",
      () => edits.setText(segments, id, oneOf(random, ["", "\ud83e", "  new text  ", "x".repeat(20_000)])),
    ],
    ["times", () => edits.setTimes(segments, id, near(), near() + 2, LENGTH_S)],
    ["times", () => edits.setTimes(segments, id, time(), time(), LENGTH_S)],
    ["speaker", () => edits.setSpeakers(segments, new Set([id]), oneOf(random, ["Ada", "Bob", " ", null]))],
    ["split", () => edits.split(segments, id, Math.floor(random() * ((segment?.text.length ?? 0) + 2)))],
    ["join", () => edits.join(segments, id)],
    [
      "insert",
      () =>
        withText(
          edits.insert(segments, Math.floor(random() * segments.length), near(), near() + 1, LENGTH_S),
          segments,
        ),
    ],
    ["remove", () => edits.remove(segments, new Set([id]))],
    ["replace", () => edits.replaceAll(segments, matchesOf(segments, "a"), oneOf(random, ["", "b", "ä ö"]))],
  ];
  const [name, act] = oneOf(random, all);
  return { name, segments: act(), id };
}

/** @param {Segments} inserted @param {Segments} before */
function withText(inserted, before) {
  const added = inserted.find((segment) => !before.includes(segment));
  return added ? edits.setText(inserted, added.id, "inserted") : inserted;
}

/** @param {Segments} segments @param {string} text */
function matchesOf(segments, text) {
  return segments.flatMap(({ id, text: whole }) =>
    [...whole.matchAll(new RegExp(text, "g"))].map((match) => ({
      id,
      start: match.index,
      end: match.index + text.length,
    })),
  );
}

/**
 * What the service would refuse: see `app/api/transcripts/correction_bodies.py` and `app/transcript/corrections/edits.py`.
 * @param {Segments} segments
 * @param {number} [length]
 * @returns {string[]}
 */
export function faults(segments, length = LENGTH_S) {
  const last = new Map();
  /** @type {string[]} */
  const found = [];
  const ids = new Set(segments.map((segment) => segment.id));
  if (ids.size !== segments.length) found.push("an id comes twice");
  segments.forEach(({ id, start, end, text, speaker }, index) => {
    const ms = (/** @type {number} */ time) => Math.round(time * 1000);
    if (index && ms(start) < ms(segments[index - 1].start)) found.push(`${id} is not in order`);
    if (ms(start) < ms(last.get(speaker) ?? 0))
      found.push(`${id} overlaps its speaker: ${start} ${last.get(speaker)}`);
    if (ms(start) >= ms(end) || ms(start) < 0 || ms(end) > ms(length))
      found.push(`${id}: ${start} to ${end}`);
    if (text.length > 10_000 || /\p{Surrogate}/u.test(text) || /[\n\p{Cc}]/u.test(text))
      found.push(`${id}: bad text`);
    if (speaker !== null && (!speaker.trim() || speaker.length > 100))
      found.push(`${id}: speaker ${speaker}`);
    last.set(speaker, end);
  });
  for (const segment of segments) {
    if (segment.words.length !== placedWords(segment).length)
      found.push(`${segment.id}: words that are not in the text`);
  }
  return found;
}
