/**
 * The rows of the subtitles: the cues that the service made, carried along with corrections until it has made them
 * anew, and a row for each segment that has no cue yet. Without DOM.
 */

import { joinedText } from "./edits.js";
import { charactersOf, cleanText, shiftOf, withText } from "./edits_rules.js";
import { lastSpeaker } from "./speakers.js";
import { spaceBetween, unitsOf } from "./words.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./types.js").MarkKind} MarkKind */
/** @typedef {{segment: Segment, from: number, to: number}} Part Offsets in the text of the segment. */
/** @typedef {"shorten" | "split" | "join" | "start" | "end"} Cure */
/**
 * @typedef {object} Problem
 * @property {"max_line_chars" | "max_lines" | "max_cps" | "min_cue_s" | "max_cue_s" | "min_gap_s" | "join"} limit
 * @property {number | null} value
 * @property {number | null} allowed
 * @property {Cure[]} cures The best one first.
 */
/**
 * @typedef {object} Cue As the service describes it. Offsets are characters, not the units of JavaScript.
 * @property {number} start seconds
 * @property {number} end seconds
 * @property {string[]} lines As viewers read them: with dashes and names that the file adds.
 * @property {number} cps
 * @property {{index: number, from: number, to: number}[]} segments
 * @property {Problem[]} problems
 */
/**
 * @typedef {object} CueRow
 * @property {string} key The id of the segment that it begins in, with `#1`, `#2`, … if it is not the first to begin there.
 * @property {readonly Part[]} parts At least one.
 * @property {number} start seconds
 * @property {number} end seconds
 * @property {readonly string[]} lines Empty: the service has not made it yet.
 * @property {number} cps
 * @property {readonly Problem[]} problems
 * @property {string | null} heading The speaker, where another one spoke before.
 * @property {number} position Among the rows, from 0.
 */

/** The segment of a key. @param {string} key */
export function idOf(key) {
  return key.replace(/#\d+$/, "");
}

/**
 * @param {Cue} cue
 * @param {readonly Segment[]} segments Those that the service made it of.
 * @returns {CueRow}
 */
export function rowOfCue({ start, end, lines, cps, problems, segments: sources }, segments) {
  const parts = sources.map(({ index, from, to }) => {
    const segment = segments[index];
    const text = segment.text.trimStart(); // as it was sent
    const lead = segment.text.length - text.length;
    return { segment, from: lead + unitsOf(text, from), to: lead + unitsOf(text, to) };
  });
  return { key: "", parts, start, end, lines, cps, problems, heading: null, position: 0 };
}

/** @param {CueRow} row */
function textOf({ parts }) {
  return parts.map(({ segment, from, to }) => segment.text.slice(from, to).trim()).join(" ");
}

/** @param {Segment} segment @param {CueRow} [row] That had this text before. @returns {CueRow} */
function rowOfSegment(segment, row) {
  if (row?.parts[0].segment === segment) return row;
  const { start, end, text } = segment;
  const bare = { key: "", lines: [], cps: 0, problems: [], heading: null, position: 0 };
  return { ...(row ?? bare), parts: [{ segment, from: 0, to: text.length }], start, end };
}

/**
 * The rows after corrections.
 * @param {readonly CueRow[]} rows
 * @param {readonly Segment[]} segments In order, as they are now.
 * @param {string} [edited] The key of the row that is edited: what is written at its edges is of its text.
 * @returns {CueRow[]} A row stays the same object while nothing of it changes.
 */
export function carried(rows, segments, edited) {
  const now = new Map(segments.map((segment) => [segment.id, segment]));
  const covered = new Set();
  /** @type {CueRow[]} */
  const kept = [];
  /** Those whose text may be that of a new segment, such as a half of another one. @type {Map<string, CueRow>} */
  const left = new Map();
  for (const row of rows) {
    const next = row.lines.length ? movedRow(row, now, row.key === edited) : null;
    if (next) kept.push(next);
    else left.set(textOf(row), row);
    for (const { segment } of next?.parts ?? []) covered.add(segment.id);
  }
  const added = segments.filter(({ id }) => !covered.has(id));
  const all = [...kept, ...added.map((segment) => rowOfSegment(segment, left.get(segment.text.trim())))];
  return placed(added.length && kept.length ? all.sort((one, other) => one.start - other.start) : all);
}

/**
 * @param {CueRow} row
 * @param {ReadonlyMap<string, Segment>} now
 * @param {boolean} [isEdited]
 * @returns {CueRow | null} null: its segments are gone.
 */
export function movedRow(row, now, isEdited = false) {
  if (row.parts.every(({ segment }) => now.get(segment.id) === segment)) return row;
  /** @type {Part[]} */
  const parts = [];
  for (const { segment, from, to } of row.parts) {
    const next = now.get(segment.id);
    if (!next) continue;
    const shift = shiftOf(segment.text, next.text);
    const part = { segment: next, from: shift(from, !isEdited), to: shift(to, isEdited) };
    if (part.to > part.from || isEdited) parts.push(part);
  }
  if (!parts.length) return null;
  const [{ segment: old }] = row.parts;
  const [{ segment, from, to }] = parts;
  const isWhole = parts.length === 1 && !segment.text.slice(0, from).trim() && !segment.text.slice(to).trim();
  const isRetimed = isWhole && (old.start !== segment.start || old.end !== segment.end);
  return { ...row, parts, ...(isRetimed && { start: segment.start, end: segment.end }) };
}

/** Rows in order, with their keys, places and headings. @param {CueRow[]} rows */
function placed(rows) {
  const begun = new Map();
  return rows.map((row, position) => {
    const [{ segment }] = row.parts;
    const count = begun.get(segment.id) ?? 0;
    begun.set(segment.id, count + 1);
    const key = count ? `${segment.id}#${count}` : segment.id;
    const before = rows[position - 1]?.parts.at(-1)?.segment;
    const isOther = segment.speaker !== lastSpeaker(before) && segment !== before;
    const heading = isOther ? segment.speaker : null;
    const isSameRow = row.key === key && row.position === position && row.heading === heading;
    return isSameRow ? row : { ...row, key, position, heading };
  });
}

/**
 * The rows with the cues that the service made of a span.
 * @param {readonly CueRow[]} rows
 * @param {readonly CueRow[]} made In order.
 * @param {{start: number, end: number}} span Of which `made` has all cues, those across its edges, too.
 * @returns {CueRow[] | null} null: the cues do not fit among the others. More of them have changed.
 */
export function replaced(rows, made, { start, end }) {
  const from = Math.min(start, made[0]?.start ?? start);
  const to = Math.max(end, made.at(-1)?.end ?? end);
  const before = rows.filter((row) => row.end <= from);
  const after = rows.filter((row) => row.start >= to && row.end > from);
  const all = [...before, ...made, ...after];
  const seams = [before.length, before.length + made.length];
  return seams.every((at) => follows(all[at - 1], all[at])) ? all : null;
}

/** Whether no text of a segment is missing between two rows, or doubled. @param {CueRow | undefined} row @param {CueRow | undefined} next */
function follows(row, next) {
  const [last, first] = [row?.parts.at(-1), next?.parts[0]];
  if (!last || !first || !row?.lines.length || !next?.lines.length) return true;
  if (last.segment.id === first.segment.id)
    return last.to <= first.from && !first.segment.text.slice(last.to, first.from).trim();
  return !last.segment.text.slice(last.to).trim() && !first.segment.text.slice(0, first.from).trim();
}

/**
 * @typedef {object} LineStart
 * @property {number} part
 * @property {number} at In the text of the part's segment.
 * @property {string} lead What the file adds before it.
 * @property {boolean} isFirst
 */

/**
 * Where the lines of a cue begin in the texts that it is made of.
 * @param {Pick<CueRow, "parts" | "lines">} row
 * @returns {LineStart[] | null} null: the file has other characters, or the service has not made it yet.
 */
export function lineStarts({ parts, lines }) {
  const places = parts.flatMap(({ segment, from, to }, part) =>
    [...segment.text.slice(from, to).matchAll(/\S/gu)].map(({ 0: text, index }) => ({
      part,
      at: from + index,
      text,
    })),
  );
  /** @type {LineStart[]} */
  const starts = [];
  let done = 0;
  for (const line of lines) {
    const letters = [...line.matchAll(/\S/gu)];
    const lead = letters.findIndex((_, first) =>
      letters.slice(first).every(({ 0: text }, index) => places[done + index]?.text === text),
    );
    if (lead < 0) return null;
    const { part, at } = places[done];
    starts.push({ part, at, lead: line.slice(0, letters[lead].index), isFirst: done === 0 });
    done += letters.length - lead;
  }
  return lines.length && done === places.length ? starts : null;
}

/**
 * The text of a row, as its field has it, and where it comes from.
 * @param {Pick<CueRow, "parts" | "lines">} row
 */
export function fieldOf(row) {
  const starts = lineStarts(row) ?? [];
  let text = "";
  const begins = row.parts.map(({ segment, from, to }, part) => {
    const slice = segment.text.slice(from, to);
    if (part) text += spaceBetween(text, slice);
    const begin = text.length;
    text += slice;
    for (const { at } of starts.filter((start) => start.part === part && !start.isFirst)) {
      const before = begin + at - from - 1;
      if (/\s/.test(text[before] ?? "")) text = `${text.slice(0, before)}\n${text.slice(before + 1)}`;
    }
    return begin;
  });
  /** @param {string} id @param {number} offset In the text of the segment. @returns {number} In that of the field. */
  const offsetOf = (id, offset) => {
    const part = row.parts.findIndex(({ segment }) => segment.id === id);
    if (part < 0) return 0;
    const { from, to } = row.parts[part];
    return begins[part] + Math.max(0, Math.min(offset, to) - from);
  };
  /** @param {number} offset In the field. */
  const placeOf = (offset) => {
    const part = Math.max(
      0,
      begins.findLastIndex((begin) => begin <= offset),
    );
    const { segment, from, to } = row.parts[part];
    return { id: segment.id, at: Math.min(to, from + offset - begins[part]) };
  };
  return { text, begins, offsetOf, placeOf };
}

/**
 * Another text for a cue. What is written across the edge of two segments is of the first one.
 * @param {readonly Segment[]} segments
 * @param {CueRow} row
 * @param {string} value
 * @returns {readonly Segment[]}
 */
export function setCueText(segments, row, value) {
  const { text, begins } = fieldOf(row);
  const [old, next] = [text.replaceAll("\n", " "), cleanText(value).trim()];
  const shift = shiftOf(old, next);
  const ends = row.parts.map((_, part) =>
    part + 1 < begins.length ? shift(begins[part + 1], true) : next.length,
  );
  for (let part = ends.length - 1; part > 0; part--)
    if (!/[\p{L}\p{N}]/u.test(next.slice(ends[part - 1], ends[part]))) ends[part - 1] = ends[part]; // no mark alone
  const texts = new Map(
    row.parts.map(({ segment, from, to }, part) => {
      const slice = next.slice(part ? ends[part - 1] : 0, ends[part]).trim();
      const [left, right] = [segment.text.slice(0, from), segment.text.slice(to)];
      return [segment.id, slice ? left + slice + right : joinedText(left, right)];
    }),
  );
  const isEmpty = [...texts.values()].every((left) => !left.trim());
  const [first] = texts.keys();
  const changed = segments
    .map((segment) => (texts.has(segment.id) ? withText(segment, texts.get(segment.id) ?? "") : segment))
    .filter(({ id, text: left }) => !texts.has(id) || left.trim() || (isEmpty && id === first));
  return changed.length === segments.length && changed.every((segment, index) => segment === segments[index])
    ? segments
    : changed;
}

/**
 * The mark at a place of a text: before its first character, it is at the edge of two segments.
 * @param {Segment} segment
 * @param {number} at Offset in its text.
 * @returns {MarkKind | null}
 */
export function markAt({ text, marks = [] }, at) {
  const place = charactersOf(text.slice(0, at));
  return marks.find((mark) => mark.at === place)?.kind ?? null;
}

/**
 * @param {readonly Segment[]} segments
 * @param {string} id
 * @param {number} at Offset in the text of the segment.
 * @param {MarkKind | null} kind null: none, the profile decides.
 * @returns {readonly Segment[]}
 */
export function setMark(segments, id, at, kind) {
  const segment = segments.find((other) => other.id === id);
  if (!segment || markAt(segment, at) === kind) return segments;
  const place = charactersOf(segment.text.slice(0, at));
  const others = (segment.marks ?? []).filter((mark) => mark.at !== place);
  const marks = kind ? [...others, { at: place, kind }].sort((one, other) => one.at - other.at) : others;
  return segments.map((other) => (other === segment ? { ...segment, marks } : other));
}

/**
 * The times that cure a problem, as far as the neighbours leave them free.
 * @param {CueRow} row
 * @param {Problem} problem
 * @param {"start" | "end"} edge That moves.
 * @param {{after: number, before: number}} free The time between the neighbours, without the gaps.
 */
export function curedTimes({ start, end }, { limit, value, allowed }, edge, { after, before }) {
  const length = limit === "max_cps" ? ((end - start) * (value ?? 1)) / (allowed ?? 1) : (allowed ?? 0);
  if (edge === "start") return { start: Math.max(after, end - Math.ceil(length * 1000) / 1000), end };
  const wanted = limit === "min_gap_s" ? before : start + Math.ceil(length * 1000) / 1000;
  return { start, end: Math.min(before, wanted) };
}

/** The shortest span that has them all. @param {readonly {start: number, end: number}[]} spans Seconds. */
export function spanOf(spans) {
  const start = spans.reduce((least, span) => Math.min(least, span.start), Infinity);
  return { start, end: spans.reduce((most, span) => Math.max(most, span.end), -Infinity) };
}
