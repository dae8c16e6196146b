/** The words of a segment: where they are in its text, and in time. */

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {{text: string, start: number, word: number | null}} Piece `start`: in the text. `word`: its number. */

const UNSURE_BELOW = 0.5;

/**
 * A segment's text in pieces: its words, and what is between them.
 * @param {Segment} segment
 * @returns {Piece[]}
 */
export function piecesOf({ text, words }) {
  /** @type {Piece[]} */
  const pieces = [];
  let end = 0;
  for (const [word, { word: spoken }] of words.entries()) {
    const start = spoken ? text.indexOf(spoken, end) : -1;
    if (start < 0) continue;
    if (start > end) pieces.push({ text: text.slice(end, start), start: end, word: null });
    pieces.push({ text: spoken, start, word });
    end = start + spoken.length;
  }
  if (end < text.length) pieces.push({ text: text.slice(end), start: end, word: null });
  return pieces;
}

/**
 * The last entry that starts at a time or earlier; -1 before the first one.
 * @param {readonly {start: number}[]} entries In order.
 * @param {number} time seconds
 */
export function lastStarted(entries, time) {
  let [low, high] = [0, entries.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (entries[middle].start <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
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
  const found = Math.max(0, segments.findIndex(({ id }) => id === from.id));
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
  if (!segment) return [];
  return piecesOf(segment)
    .filter(({ word }) => word !== null && isUnsure(segment.words[word]))
    .map(({ text, start }) => ({ id: segment.id, start, end: start + text.length, text }));
}

/**
 * Where to split a text: before the word that plays, if it is in the segment; else near the middle.
 * @param {Segment} segment
 * @param {number} time Of the player, in seconds.
 * @returns {number} 0 or the length of the text: it has one word only.
 */
export function splitPoint(segment, time) {
  const pieces = piecesOf(segment).filter(({ word }) => word !== null);
  const playing = pieces.filter(({ word }) => segment.words[/** @type {number} */ (word)].start <= time).at(-1);
  if (playing && playing.start > 0 && time < segment.end) return playing.start;
  const middle = segment.text.length / 2;
  const starts = [...segment.text.matchAll(/\s+(?=\S)/g)].map(({ index, 0: { length } }) => index + length);
  const candidates = starts.length ? starts : pieces.map(({ start }) => start).filter(Boolean);
  return candidates.reduce((best, at) => (Math.abs(at - middle) < Math.abs(best - middle) ? at : best), candidates[0] ?? 0);
}
