/** The rows of a transcript: its segments, and what could not be transcribed between them. */

import { lastSpeaker } from "./speakers.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {{start: number, end: number}} Span seconds */
/**
 * @typedef {object} SegmentRow
 * @property {string} key
 * @property {Segment} segment
 * @property {string | null} heading The speaker, where another one spoke before.
 * @property {number} position Among the segments, from 0.
 * @property {undefined} [span]
 */
/** @typedef {SegmentRow | {key: string, segment?: undefined, span: Span}} Row */

/** @type {WeakMap<Segment, SegmentRow>} */
const known = new WeakMap();

/**
 * @param {readonly Segment[]} segments
 * @param {readonly Span[]} failed In order.
 * @returns {Row[]} The row of a segment stays the same object while nothing of it changes: it is not drawn anew then.
 */
export function rowsOf(segments, failed) {
  /** @type {Row[]} */
  const rows = [];
  const left = [...failed];
  for (const [position, segment] of segments.entries()) {
    while (left.length && left[0].start <= segment.start)
      rows.push(failedRow(/** @type {Span} */ (left.shift())));
    rows.push(segmentRow(segment, segments[position - 1], position));
  }
  return [...rows, ...left.map(failedRow)];
}

/**
 * @param {Segment} segment
 * @param {Segment | undefined} before
 * @param {number} position
 */
function segmentRow(segment, before, position) {
  const heading = segment.speaker === lastSpeaker(before) ? null : segment.speaker;
  const row = known.get(segment);
  if (row?.position === position && row.heading === heading) return row;
  const next = { key: segment.id, segment, heading, position };
  known.set(segment, next);
  return next;
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
  if (!row.segment) return 64;
  const { text } = row.segment;
  const isWide = WIDE.test(text);
  const textWidth = Math.max(120, width - (width < 600 ? 112 : 176));
  const lines = Math.max(1, Math.ceil((text.length * (isWide ? 17 : 8)) / textWidth));
  return lines * 26 + 16 + (row.heading ? 24 : 0);
}

const RIGHT_TO_LEFT = /^(ar|arc|ckb|dv|fa|he|iw|ks|ku|nqo|ps|sd|syr|ug|ur|yi)\b/;

/**
 * The direction of a transcript's layout. Each text finds its own.
 * @param {string | null | undefined} language
 */
export function directionOf(language) {
  return RIGHT_TO_LEFT.test(language ?? "") ? "rtl" : "ltr";
}
