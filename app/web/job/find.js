/** The search in a transcript: what is searched, where it is, and which place is shown. */

import { computed, signal } from "../vendor/ui.js";
import { replaceAll } from "./edits.js";
import { isUnspaced } from "./words.js";

/** @typedef {import("./edits.js").Match} Match */
/** @typedef {import("../vendor/ui.js").ReadonlySignal<readonly Match[]>} Matches */
/** @typedef {import("./types.js").Segment} Segment */

/**
 * @typedef {object} Search
 * @property {import("../vendor/ui.js").Signal<"find" | "replace" | null>} mode What the bar shows; null: it is closed.
 * @property {import("../vendor/ui.js").Signal<string>} query
 * @property {import("../vendor/ui.js").Signal<string>} replacement
 * @property {import("../vendor/ui.js").Signal<boolean>} matchCase
 * @property {import("../vendor/ui.js").Signal<boolean>} wholeWord
 * @property {Matches} matches
 * @property {import("../vendor/ui.js").Signal<number>} at Index of the match that is shown; -1: none.
 * @property {(direction: 1 | -1) => void} move To the next match, or to the previous one.
 * @property {import("../vendor/ui.js").Signal<number>} first Index of the match that `begin` showed.
 * @property {(from: string | null) => void} begin Show the first match in a segment or after it.
 * @property {() => void} replaceOne
 * @property {() => number} replaceEvery Returns how many were replaced.
 */

/**
 * @param {import("./types.js").Session} session
 * @param {import("./transcript_view.js").View} view
 * @returns {Search}
 */
export function createSearch(session, view) {
  const mode = view.search;
  const [query, replacement] = [signal(""), signal("")];
  const [matchCase, wholeWord] = [signal(false), signal(false)];
  const at = signal(-1);
  const first = signal(-1);
  const matches = computed(() =>
    mode.value
      ? findMatches(session.segments.value, query.value, {
          matchCase: matchCase.value,
          wholeWord: wholeWord.value,
        })
      : [],
  );

  /** @param {number} index */
  function show(index) {
    const match = matches.peek()[index];
    at.value = match ? index : -1;
    if (match) view.go(match.id, false, match);
  }

  /** @type {Search["move"]} */
  function move(direction) {
    const count = matches.peek().length;
    if (!count) return;
    const from = at.peek() < 0 && direction < 0 ? 0 : at.peek();
    show((from + direction + count) % count);
  }

  /** @type {Search["begin"]} */
  function begin(from) {
    const positions = new Map(session.segments.peek().map(({ id }, index) => [id, index]));
    const least = (from !== null && positions.get(from)) || 0;
    const index = matches.peek().findIndex(({ id }) => (positions.get(id) ?? 0) >= least);
    show(matches.peek().length && index < 0 ? 0 : index);
    first.value = at.peek();
  }

  function replaceOne() {
    const match = matches.peek()[at.peek()];
    if (!match) return move(1);
    const [before, text] = [at.peek(), replacement.peek()];
    session.edit("replace", (segments) => replaceAll(segments, [match], text), match.id);
    // The replacement may have matches itself: go on behind it.
    const end = match.start + text.length;
    const next = matches
      .peek()
      .findIndex(({ id, start }, index) => index >= before && (id !== match.id || start >= end));
    show(next < 0 && matches.peek().length ? 0 : next);
  }

  function replaceEvery() {
    const found = matches.peek();
    if (!session.edit("replace", (segments) => replaceAll(segments, found, replacement.peek()), found[0]?.id))
      return 0;
    show(-1);
    return found.length;
  }

  return {
    mode,
    query,
    replacement,
    matchCase,
    wholeWord,
    matches,
    at,
    first,
    move,
    begin,
    replaceOne,
    replaceEvery,
  };
}

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
 * Where words begin that are searched, as in the list of all transcripts.
 * @param {string} text
 * @param {string} query
 * @returns {{start: number, end: number}[]} In order. They may overlap.
 */
export function placesOf(text, query) {
  const segment = { id: "", start: 0, end: 0, text, speaker: null, words: [] };
  return query
    .split(/\s+/)
    .flatMap((word) => findMatches([segment], word))
    .filter(
      ({ start }) => start === 0 || isUnspaced(text[start]) || !/[\p{L}\p{N}\p{M}]/u.test(text[start - 1]),
    )
    .sort((one, other) => one.start - other.start);
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
