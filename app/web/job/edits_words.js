/** The words of a segment, and where its text has them. Without DOM. */

import { keptTokens } from "./kept_tokens.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./types.js").Word} Word */
/** @typedef {{word: Word, from: number, to: number}} PlacedWord `from` and `to` are offsets in the segment's text. */
/** @typedef {{text: string, from: number, to: number}} Token */

/** Scripts without spaces between words, and their punctuation: as the service sees them. */
const UNSPACED =
  "\\u0e00-\\u0eff\\u1000-\\u109f\\uaa60-\\uaa7f\\ua9e0-\\ua9ff\\u1780-\\u17ff\\u19e0-\\u19ff\\u2e80-\\u2fdf" +
  "\\u3000-\\u31ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\uff00-\\uff9f\\u{20000}-\\u{3ffff}";
const TOKEN = new RegExp(`[${UNSPACED}]\\p{M}*|[^\\s${UNSPACED}]+`, "gu");
const UNSPACED_CHARACTER = new RegExp(`^[${UNSPACED}]`, "u");

/** Whether texts in the script of this character have no spaces. @param {string} character */
export function isUnspaced(character) {
  return UNSPACED_CHARACTER.test(character);
}

/** @type {WeakMap<Segment, readonly PlacedWord[]>} */
const placed = new WeakMap();

/**
 * The words that are in the segment's text, in order.
 * @param {Segment} segment
 * @returns {readonly PlacedWord[]} The same array each time for the same segment.
 */
export function placedWords(segment) {
  const known = placed.get(segment) ?? placeWords(segment.text, segment.words);
  placed.set(segment, known);
  return known;
}

/**
 * @param {string} text
 * @param {readonly Word[]} words
 */
function placeWords(text, words) {
  const found = [];
  let at = 0;
  for (const word of words) {
    const from = word.word ? text.indexOf(word.word, at) : -1;
    if (from < 0) continue;
    at = from + word.word.length;
    found.push({ word, from, to: at });
  }
  return found;
}

/**
 * The words that stay when a segment gets another text. New words have no times until the service gives them some.
 * @param {Segment} segment
 * @param {string} text
 * @returns {readonly Word[]}
 */
export function keptWords(segment, text) {
  if (!segment.words.length) return segment.words;
  const [before, after] = [tokensOf(segment.text), tokensOf(text)];
  const kept = keptTokens(
    before.map((token) => token.text),
    after.map((token) => token.text),
  );
  let first = 0;
  const words = placedWords(segment).filter((word) => {
    while (first < before.length && before[first].to <= word.from) first++;
    let count = 0;
    while (first + count < before.length && before[first + count].from < word.to) count++;
    if (!count) return false;
    // A word of several tokens stays if these are still neighbours.
    for (let step = 0; step < count; step++) {
      if (kept[first + step] < 0 || kept[first + step] !== kept[first] + step) return false;
    }
    const now = text.slice(after[kept[first]].from, after[kept[first] + count - 1].to);
    return now.includes(word.word.word);
  });
  return words.map(({ word }) => word);
}

/** @param {string} text @returns {Token[]} */
function tokensOf(text) {
  return [...text.matchAll(TOKEN)].map((match) => ({
    text: match[0],
    from: match.index,
    to: match.index + match[0].length,
  }));
}

/**
 * The words without speakers of their own: the segment's speaker says all of them, as it does after a correction.
 * @param {readonly Word[]} words
 * @returns {readonly Word[]}
 */
export function plainWords(words) {
  if (words.every(({ speaker }) => speaker === undefined)) return words;
  return words.map(({ speaker: _, ...word }) => word);
}
