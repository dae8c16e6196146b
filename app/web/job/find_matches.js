/** Search in a transcript. Without DOM. */

import { isUnspaced } from "./edits_words.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./edits.js").Match} Match */
/** @typedef {{matchCase?: boolean, wholeWord?: boolean}} FindOptions False by default. Accents never matter. */
/** @typedef {{text: string, offsets: Uint32Array | null}} Folded `offsets`: where each character was; null: at the same place. */

const MARKS = /[\u0300-\u036f]+/g;
const CHANGES_LENGTH = /[\u0300-\u036f\ud800-\udfff]/;
const WORD_CHARACTER = /[\p{L}\p{N}\p{M}_]/u;

/** Texts as they are compared: with their case, and without. @type {[WeakMap<Segment, Folded>, WeakMap<Segment, Folded>]} */
const known = [new WeakMap(), new WeakMap()];

/**
 * All places of a text in the segments, in order, none overlapping.
 * @param {readonly Segment[]} segments
 * @param {string} query
 * @param {FindOptions} [options]
 * @returns {Match[]} Each within one segment.
 */
export function findMatches(segments, query, options = {}) {
  const isExact = options.matchCase ?? false;
  const wanted = folded(query, isExact).text;
  if (!wanted) return [];
  /** @type {Match[]} */
  const matches = [];
  for (const segment of segments) {
    const { text, offsets } = foldedText(segment, isExact);
    for (let at = text.indexOf(wanted); at >= 0; ) {
      const end = at + wanted.length;
      const isWhole = !offsets || (isBorder(offsets, at) && isBorder(offsets, end));
      const match = { id: segment.id, start: offsets?.[at] ?? at, end: offsets?.[end] ?? end };
      const isMatch = isWhole && (!options.wholeWord || isWord(segment.text, match.start, match.end));
      if (isMatch) matches.push(match);
      at = text.indexOf(wanted, isMatch ? end : at + 1);
    }
  }
  return matches;
}

/**
 * @param {Segment} segment
 * @param {boolean} isExact
 */
function foldedText(segment, isExact) {
  const texts = known[Number(isExact)];
  const found = texts.get(segment) ?? folded(segment.text, isExact);
  texts.set(segment, found);
  return found;
}

/**
 * @param {string} text
 * @param {boolean} isExact
 * @returns {Folded}
 */
function folded(text, isExact) {
  const whole = fold(text, isExact);
  // Most texts keep their length, character by character. Only the others need the slow way.
  if (whole.length === text.length && !CHANGES_LENGTH.test(text)) return { text: whole, offsets: null };
  let [result, at] = ["", 0];
  /** @type {number[]} */
  const offsets = [];
  for (const character of graphemes(text)) {
    const simple = fold(character, isExact);
    for (let index = 0; index < simple.length; index++) offsets.push(at);
    result += simple;
    at += character.length;
  }
  return { text: result, offsets: Uint32Array.from([...offsets, at]) };
}

/** Whether a character begins or ends there, and not only a part of it. @param {Uint32Array} offsets @param {number} at */
function isBorder(offsets, at) {
  return at === 0 || offsets[at] !== offsets[at - 1];
}

/** Letters with the marks that follow them. @param {string} text */
function graphemes(text) {
  return text.match(/.[\u0300-\u036f]*/gsu) ?? [];
}

/**
 * @param {string} text
 * @param {boolean} isExact
 */
function fold(text, isExact) {
  const plain = text.normalize("NFD").replace(MARKS, "").normalize("NFC");
  return isExact ? plain : plain.toLowerCase();
}

/**
 * @param {string} text
 * @param {number} start
 * @param {number} end
 */
function isWord(text, start, end) {
  const [before] = [...text.slice(Math.max(0, start - 2), start)].slice(-1);
  const [after] = [...text.slice(end, end + 2)];
  return !continuesWord(before) && !continuesWord(after);
}

/** @param {string | undefined} character */
function continuesWord(character) {
  return character !== undefined && WORD_CHARACTER.test(character) && !isUnspaced(character);
}
