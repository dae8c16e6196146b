/** The subtitles of a transcript: the service makes them, in the format and style that are chosen, of what is not saved, too. */

import { requestJson } from "../core/api.js";
import { computed, effect, signal } from "../vendor/ui.js";
import { carried, movedRow, replaced, rowOfCue, spanOf } from "./cue_rows.js";
import { changesBetween, isSame } from "./edits_rules.js";
import { chosen, optionsOf } from "./file_choice.js";
import { mayPassLater } from "./saving_request.js";

/** @typedef {import("./cue_rows.js").CueRow} CueRow */
/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {{start: number, end: number}} Span Seconds. */
/** @typedef {Record<"max_line_chars" | "max_lines" | "max_cps" | "min_cue_s" | "max_cue_s" | "min_gap_s", number>} Limits */
/** @typedef {ReturnType<typeof createCues>} Cues */

const TYPED_MS = 250; // without a change
const REACH_S = 30; // words that far away decide where a cue ends
const AGAIN_MS = 3000;
const ALL = { start: -Infinity, end: Infinity };

/**
 * @param {import("./types.js").Session} session
 * @param {import("../vendor/ui.js").ReadonlySignal<boolean>} isWanted
 * @param {import("../vendor/ui.js").ReadonlySignal<unknown>} editing Changes when the editing of a row begins or ends.
 * @param {() => string | undefined} edited The key of the row that is edited.
 */
export function createCues(session, isWanted, editing, edited) {
  const rows = signal(/** @type {readonly CueRow[]} */ ([]));
  const limits = signal(/** @type {Limits | null} */ (null));
  const failure = signal(/** @type {Error | null} */ (null));
  /** What the rows are of. @type {readonly Segment[]} */
  let known = [];
  /** What the service has to make anew. @type {Span | null} */
  let stale = ALL;
  let isAsking = false;
  const ending = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const query = computed(() => {
    const format = chosen.value.subtitles ?? "srt";
    return String(new URLSearchParams({ format, ...optionsOf(format) }));
  });
  /** Those that have text of a segment. @param {string} id */
  const rowsOf = (id) => rows.peek().filter(({ parts }) => parts.some(({ segment }) => segment.id === id));

  /** @param {readonly Span[]} spans */
  function outdate(spans) {
    stale = spanOf(stale ? [stale, ...spans] : spans);
    schedule();
  }

  function schedule(ms = edited() ? TYPED_MS : 0) {
    clearTimeout(timer);
    if (stale && session.complete.peek() && isWanted.peek()) timer = setTimeout(ask, ms);
  }

  const stops = [
    effect(() => {
      const segments = session.segments.value;
      const changes = changesBetween(known, segments, isSame).flatMap(({ before, after }) => [before, after]);
      rows.value = carried(rows.peek(), segments, edited());
      known = segments;
      if (changes.length) outdate(changes.filter((segment) => segment !== null));
    }),
    effect(() => {
      void query.value;
      stale = ALL;
    }),
    effect(() => {
      void [query.value, session.complete.value, isWanted.value, editing.value];
      schedule(0);
    }),
  ];

  async function ask() {
    const row = rows.peek().find(({ key }) => key === edited());
    const isBlank = row?.parts.every(({ segment, from, to }) => !segment.text.slice(from, to).trim());
    if (isAsking || isBlank || !stale) return; // a row whose text is yet to be written stays
    const span = { start: stale.start - REACH_S, end: stale.end + REACH_S };
    const asked = query.peek();
    [isAsking, stale] = [true, null];
    try {
      const made = await make(span, asked);
      failure.value = null;
      if (asked === query.peek()) take(made, span);
      schedule();
    } catch (error) {
      if (ending.signal.aborted) return;
      outdate([span]);
      clearTimeout(timer);
      if (mayPassLater(error)) timer = setTimeout(ask, AGAIN_MS);
      else [failure.value, rows.value] = [/** @type {Error} */ (error), carried([], session.segments.peek())];
    } finally {
      isAsking = false;
    }
  }

  /** @param {Span} span @param {string} parameters @returns {Promise<{cues: CueRow[], limits: Limits}>} */
  async function make(span, parameters) {
    const of = span.start === -Infinity ? "" : `&start=${Math.max(0, span.start)}&end=${span.end}`;
    const { signal } = ending;
    const path = `/v1/jobs/${session.id}/cues?${parameters}${of}`;
    const isSaved = !session.dirty.peek();
    // What is farther away decides nothing, so it is not sent.
    const isNear = (/** @type {Segment} */ { start, end }) =>
      end > span.start - REACH_S && start < span.end + REACH_S;
    const written = session.segments.peek().filter(({ text }) => text.trim());
    const sources = isSaved ? written : written.filter(isNear);
    const revision = session.revision.peek();
    const json = { segments: sources.map(session.bodyOf) };
    const answer = isSaved
      ? await requestJson(path, { cache: "no-store", signal })
      : await session.alone(() => requestJson(path, { method: "POST", json, signal }));
    if (isSaved && answer.revision !== revision) {
      await session.reload(); // others have corrected it
      throw new Error("Another revision is made into subtitles.");
    }
    return {
      ...answer,
      cues: answer.cues.map((/** @type {import("./cue_rows.js").Cue} */ cue) => rowOfCue(cue, sources)),
    };
  }

  /** @param {{cues: CueRow[], limits: Limits}} made @param {Span} span */
  function take(made, span) {
    const segments = session.segments.peek();
    const now = new Map(segments.map((segment) => [segment.id, segment]));
    const cues = made.cues.map((row) => movedRow(row, now)).filter((row) => row !== null);
    const all = replaced(rows.peek(), cues, span);
    limits.value = made.limits;
    if (all) rows.value = carried(all, segments, edited());
    else outdate([ALL]);
  }

  return {
    rows,
    limits,
    failure,
    rowsOf,
    /** The row that has a place of a segment's text. @param {string} id @param {number} [at] @returns {CueRow | undefined} */
    rowAt(id, at = 0) {
      const found = rowsOf(id);
      return (
        found.findLast(({ parts }) => parts.some(({ segment, from }) => segment.id === id && from <= at)) ??
        found[0]
      );
    },
    /** @param {string | null} key */
    row: (key) => rows.peek().find((row) => row.key === key),
    close() {
      ending.abort();
      clearTimeout(timer);
      for (const stop of stops) stop();
    },
  };
}
