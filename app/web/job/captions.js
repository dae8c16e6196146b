/** The captions of segments: what is shown at one time over the picture. */

import { piecesOf, timeAt } from "./words.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {{start: number, end: number, text: string}} Caption Times in seconds; plain text. */

const LONGEST_S = 7;
const MOST_CHARACTERS = 84; // two lines of subtitles

/**
 * The captions of a segment. One that is long is split before words.
 * @param {Segment} segment
 * @returns {Caption[]}
 */
export function captionsOf(segment) {
  /** @type {Caption[]} */
  const captions = [];
  const { text, end } = segment;
  let [from, start] = [0, segment.start];
  for (const word of spokenPieces(segment)) {
    const isTooLong = word.to - from > MOST_CHARACTERS || word.end - start > LONGEST_S;
    if (!isTooLong || word.from <= from || word.start <= start) continue;
    captions.push({ start, end: word.start, text: text.slice(from, word.from).trim() });
    [from, start] = [word.from, word.start];
  }
  captions.push({ start, end, text: text.slice(from).trim() });
  return captions.filter((caption) => caption.text && caption.end > caption.start);
}

/**
 * The words of a segment, each with its place in the text and its times, as well as they are known.
 * @param {Segment} segment
 */
function spokenPieces(segment) {
  const pieces = piecesOf(segment).filter(({ text }) => text.trim());
  return pieces.map(({ text, start: from, word }) => {
    const to = from + text.length;
    const [start, end] = word
      ? [word.word.start, word.word.end]
      : [timeAt(segment, from), timeAt(segment, to)];
    return { from, to, start, end };
  });
}

/**
 * A text as WebVTT writes it in a cue.
 * @param {string} text
 */
export function escapeCue(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/**
 * What changes from one list of segments to another.
 * @param {ReadonlySet<Segment>} shown
 * @param {readonly Segment[]} segments
 */
export function changes(shown, segments) {
  const wanted = new Set(segments);
  return {
    removed: [...shown].filter((segment) => !wanted.has(segment)),
    added: segments.filter((segment) => !shown.has(segment)),
  };
}
