/** What corrections do with one segment. Without DOM. */

import { inOrder } from "./edits_order.js";
import { keptWords, plainWords } from "./edits_words.js";

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
    : { ...segment, text: clean, words: plainWords(keptWords(segment, clean)) };
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
