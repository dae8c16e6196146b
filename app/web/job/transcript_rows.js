/** The rows of a transcript: its subtitles or paragraphs, and what could not be transcribed between them. */

import { lastSpeaker } from "./speakers.js";
import { otherLanguage } from "./types.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./types.js").Job} Job */
/** @typedef {{start: number, end: number}} Span seconds */
/** @typedef {{key: string, cue: import("./cue_rows.js").CueRow, segments?: undefined, span?: undefined}} CueRow */
/**
 * @typedef {object} Paragraph
 * @property {string} key
 * @property {readonly Segment[]} segments At least one. Of one speaker, as far as the first words say it, and one language.
 * @property {string | null} heading
 * @property {number} position Among the paragraphs, from 0.
 * @property {undefined} [cue]
 * @property {undefined} [span]
 */
/** @typedef {{key: string, cue?: undefined, segments?: undefined, span: Span}} FailedRow */
/** @typedef {CueRow | Paragraph | FailedRow} Row */

/**
 * @param {readonly import("./cue_rows.js").CueRow[]} cues
 * @param {readonly Span[]} failed In order.
 * @returns {Row[]}
 */
export function rowsOf(cues, failed) {
  const rows = cues.map((cue) => ({ key: cue.key, cue }));
  return failed.length ? [...rows, ...failed.map(failedRow)].sort((a, b) => startOf(a) - startOf(b)) : rows;
}

/** @param {CueRow | FailedRow} row */
function startOf({ cue, span }) {
  return (cue ?? span).start;
}

const PAUSE_S = 2;
const [LONG_CHARACTERS, MOST_CHARACTERS] = [500, 1000]; // a long paragraph ends with its sentence, or at once
const SENTENCE_END = /[.!?…。！？।۔؟]["'”’»)]*\s*$/u;

/** The paragraphs that begin with each segment. @type {WeakMap<Segment, Paragraph>} */
const knownParagraphs = new WeakMap();

/**
 * The segments as paragraphs: a new one begins with another speaker or language, after a pause, and where one is long.
 * @param {readonly Segment[]} segments
 * @param {readonly Span[]} failed In order.
 * @param {Job | null} [job]
 * @returns {Row[]} A paragraph stays the same object while nothing of it changes.
 */
export function paragraphsOf(segments, failed, job = null) {
  /** @type {Row[]} */
  const rows = [];
  /** @type {Segment[]} */
  let run = [];
  let [length, position] = [0, 0];
  const left = [...failed];
  const end = () => {
    if (run.length) rows.push(paragraphOf(run, position++));
    [run, length] = [[], 0];
  };
  for (const segment of segments) {
    const before = run.at(-1);
    const hasGap = left.length > 0 && left[0].start <= segment.start;
    const isLong = length > MOST_CHARACTERS;
    if (hasGap || (before && (isLong || endsParagraph(before, segment, length, job)))) end();
    while (left.length && left[0].start <= segment.start)
      rows.push(failedRow(/** @type {Span} */ (left.shift())));
    run.push(segment);
    length += segment.text.length;
  }
  end();
  return [...rows, ...left.map(failedRow)];
}

/** @param {Segment} before @param {Segment} after @param {number} length Characters so far. @param {Job | null} job */
function endsParagraph(before, after, length, job) {
  return (
    after.speaker !== lastSpeaker(before) ||
    otherLanguage(job, after) !== otherLanguage(job, before) ||
    after.start - before.end >= PAUSE_S ||
    (length > LONG_CHARACTERS && SENTENCE_END.test(before.text))
  );
}

/** @param {Segment[]} segments @param {number} position */
function paragraphOf(segments, position) {
  const known = knownParagraphs.get(segments[0]);
  const isSame =
    known?.position === position &&
    known.segments.length === segments.length &&
    known.segments.every((segment, index) => segment === segments[index]);
  if (known && isSame) return known;
  const [{ id, speaker }] = segments;
  const paragraph = { key: `paragraph-${id}`, segments, heading: speaker, position };
  knownParagraphs.set(segments[0], paragraph);
  return paragraph;
}

/** @param {Span} span */
function failedRow(span) {
  return { key: `failed-${span.start}`, span };
}

const WIDE = /[\u1100-\u11ff\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef]/;

/**
 * The height of a row, before it is drawn.
 * @param {Row} row
 * @param {number} width Of the list, in CSS pixels.
 */
export function estimatedHeight(row, width) {
  if (row.segments) return estimatedParagraph(row, width);
  if (!row.cue) return 64;
  const { lines, parts, heading, problems } = row.cue;
  const length = parts.reduce((sum, { from, to }) => sum + to - from, 0);
  const wide = WIDE.test(parts[0].segment.text) ? 17 : 8;
  const broken = Math.ceil((length * wide) / Math.max(120, width - (width < 700 ? 150 : 300)));
  return Math.max(2, lines.length || broken) * 24 + 16 + (heading ? 24 : 0) + 32 * problems.length;
}

/** @param {Paragraph} paragraph @param {number} width */
function estimatedParagraph({ segments, heading }, width) {
  const length = segments.reduce((sum, { text }) => sum + text.length + 1, 0);
  const textWidth = Math.min(600, Math.max(120, width - (width < 700 ? 0 : 176)));
  const lines = Math.ceil((length * (WIDE.test(segments[0].text) ? 19 : 8.6)) / textWidth);
  return lines * 30 + 20 + (heading || width < 700 ? 28 : 0);
}

const RIGHT_TO_LEFT = /^(ar|arc|ckb|dv|fa|he|iw|ks|ku|nqo|ps|sd|syr|ug|ur|yi)\b/;

/**
 * The direction of a transcript's layout. Each text finds its own.
 * @param {string | null | undefined} language
 */
export function directionOf(language) {
  return RIGHT_TO_LEFT.test(language ?? "") ? "rtl" : "ltr";
}
