/** The words of a segment: where they are in its text, and in time. Without DOM. */

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

/** What stands between two parts of a text. @param {string} left @param {string} right */
export function spaceBetween(left, right) {
  return isUnspaced([...left.slice(-2)].at(-1) ?? "") || isUnspaced(right) ? "" : " ";
}

/** An offset in a text as JavaScript counts: the service counts characters. @param {string} text @param {number} characters */
export function unitsOf(text, characters) {
  if (!/[\ud800-\udfff]/.test(text)) return characters;
  return [...text].slice(0, characters).join("").length;
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
export function tokensOf(text) {
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

const MOST_COMPARED = 250_000; // pairs of tokens; of texts that differ in more, no word in between is kept

/**
 * For each token of the first list its place in the second one, or -1: a longest common subsequence.
 * @param {readonly string[]} before
 * @param {readonly string[]} after
 * @returns {number[]}
 */
export function keptTokens(before, after) {
  const kept = before.map(() => -1);
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start])
    kept[start] = start++;
  let [end, newEnd] = [before.length, after.length];
  while (end > start && newEnd > start && before[end - 1] === after[newEnd - 1]) kept[--end] = --newEnd;
  const [rows, columns] = [end - start, newEnd - start];
  if (!rows || !columns || rows * columns > MOST_COMPARED) return kept;
  const best = new Uint16Array((rows + 1) * (columns + 1));
  for (let row = rows - 1; row >= 0; row--) {
    for (let column = columns - 1; column >= 0; column--) {
      const [here, below] = [row * (columns + 1) + column, (row + 1) * (columns + 1) + column];
      best[here] =
        before[start + row] === after[start + column]
          ? best[below + 1] + 1
          : Math.max(best[below], best[here + 1]);
    }
  }
  for (let row = 0, column = 0; row < rows && column < columns; ) {
    const [here, below] = [row * (columns + 1) + column, (row + 1) * (columns + 1) + column];
    if (before[start + row] === after[start + column]) kept[start + row++] = start + column++;
    else if (best[below] >= best[here + 1]) row++;
    else column++;
  }
  return kept;
}

/**
 * @typedef {{text: string, start: number, word: PlacedWord | null}} Piece
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

/** Where terms have replaced something in a text, as far as it is there now. @param {Segment} segment */
export function termsIn({ id, text, terms = [] }) {
  const placed = terms.map((term) => ({ ...term, id, start: unitsOf(text, term.at) }));
  const present = placed.filter(({ start, write }) => text.startsWith(write, start));
  return present.map((term) => ({ ...term, end: term.start + term.write.length }));
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
 * Where the caret belongs after a text was changed by something else than typing: behind the change.
 * @param {string} before
 * @param {string} after
 */
export function caretAfterChange(before, after) {
  let same = 0;
  const most = Math.min(before.length, after.length);
  while (same < most && before[before.length - 1 - same] === after[after.length - 1 - same]) same++;
  return after.length - same;
}
