/** What is done with a subtitle: its edges, where it ends and begins, and what cures it where it breaks a limit. */

import { announce } from "../core/announcer.js";
import { preciseClock } from "../core/format.js";
import { t } from "../core/text.js";
import { toast } from "../core/toasts.js";
import { curedTimes, fieldOf, lineStarts } from "./cue_rows.js";
import { setCueTimes } from "./edits.js";
import { joinWithNext, joinWithPrevious, splitAt } from "./segment_actions.js";
import { piecesOf } from "./words.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */
/** @typedef {{start: number, end: number}} Span Seconds. */

export const NUDGE_S = 0.04; // a frame of European television
const SHORTEST_S = 0.05;

/** The subtitle that is edited, or has the keyboard. @param {Screen} screen */
function currentKey({ view }) {
  return view.editedKey() ?? view.current.peek() ?? undefined;
}

/** @param {Screen} screen @param {string} key */
function neighbours({ view }, key) {
  const places = view.places();
  const at = places.findIndex((place) => place.key === key);
  return { before: places[at - 1], after: at < 0 ? undefined : places[at + 1] };
}

/**
 * The times of the subtitles that are made of the same segments.
 * @param {Screen} screen
 * @param {import("./transcript_view.js").Place} place
 */
function leftBeside(screen, { key, parts }) {
  const { before, after } = neighbours(screen, key);
  const [first, last] = [parts[0].segment, parts[parts.length - 1].segment];
  const head = screen.view.cues.rowsOf(first.id).find((row) => row.parts[0].segment === first);
  const tail = screen.view.cues.rowsOf(last.id).findLast((row) => row.parts.at(-1)?.segment === last);
  return {
    before: { ...(head && { start: head.start }), ...(before && { end: before.end }) },
    after: { ...(after && { start: after.start }), ...(tail && { end: tail.end }) },
  };
}

/**
 * The nearest times that the neighbours leave free.
 * @param {Screen} screen
 * @param {string} key
 * @param {Span} span
 * @returns {Span}
 */
export function allowedSpan(screen, key, { start, end }) {
  const { before, after } = neighbours(screen, key);
  const from = Math.max(before?.end ?? 0, start);
  const to = Math.min(after?.start ?? Infinity, end);
  return { start: Math.min(from, to - SHORTEST_S), end: Math.max(to, from + SHORTEST_S) };
}

/**
 * Give a subtitle, or in the text a segment, other times.
 * @param {Screen} screen
 * @param {string} key
 * @param {Span} times
 * @returns {Span | undefined} Those that it has then.
 */
export function retime(screen, key, times) {
  const { view, session, playback } = screen;
  const place = view.placeOf(key);
  if (!place) return;
  const limit = playback.duration.peek() || session.job.peek()?.duration || undefined;
  let { id } = place.parts[0].segment;
  const isEdited = view.editedKey() === key;
  session.edit(
    "times",
    (segments) => {
      const timed = setCueTimes(segments, place, times, { ...leftBeside(screen, place), limit });
      id = timed.id;
      return timed.segments;
    },
    id,
  );
  const own = view.keyAt(id);
  if (own !== key && isEdited) view.edit(own, null, "start");
  else if (own !== key) view.go(own);
  return view.placeOf(own);
}

/**
 * Move an edge of the current subtitle.
 * @param {Screen} screen
 * @param {"start" | "end"} edge
 * @param {(seconds: number) => number} where From where it is.
 */
export function moveEdge(screen, edge, where) {
  const key = currentKey(screen);
  const place = key === undefined ? undefined : screen.view.placeOf(key);
  if (key === undefined || !place) return;
  const wanted = { start: place.start, end: place.end, [edge]: where(place[edge]) };
  const isEmpty = wanted.end <= wanted.start;
  const times = isEmpty ? null : retime(screen, key, allowedSpan(screen, key, wanted));
  if (times) announce(`${t(`edit.${edge}`)} ${preciseClock(times[edge])}`);
  else toast(t("cue.noTimes"));
}

/**
 * Where it played when a key was pressed, in seconds: a letter is a command some time later.
 * @param {import("./playback.js").Playback} playback
 * @param {{timeStamp: number}} event
 */
export function playedAt({ time, playing, rate }, { timeStamp }) {
  return time.peek() - (playing.peek() ? ((performance.now() - timeStamp) / 1000) * rate.peek() : 0);
}

/** Hear it from its start. @param {Screen} screen */
export function playCue(screen) {
  const place = screen.view.placeOf(currentKey(screen) ?? "");
  if (place) screen.playback.play(place.start);
}

/**
 * Let a subtitle end, and another one begin: at the word that plays, else at a line's end, else near the middle.
 * @param {Screen} screen
 * @param {string} [key]
 */
export function splitCue(screen, key = currentKey(screen)) {
  const row = key === undefined ? undefined : screen.view.cues.row(key);
  if (!row) return;
  const time = screen.playback.time.peek();
  const words = row.parts.flatMap(({ segment, from, to }) =>
    piecesOf(segment)
      .filter(({ text, start }) => text.trim() && start > from && start < to)
      .map(({ start, word }) => ({ id: segment.id, at: start, time: word?.word.start ?? Infinity })),
  );
  const lines = (lineStarts(row) ?? [])
    .filter(({ isFirst }) => !isFirst)
    .map(({ part, at }) => ({ id: row.parts[part].segment.id, at }));
  const { text, offsetOf } = fieldOf(row);
  /** @param {{id: string, at: number}} place */
  const distance = ({ id, at }) => Math.abs(offsetOf(id, at) - text.length / 2);
  const playing = time < row.end && words.findLast((word) => word.time <= time);
  const [best] = playing
    ? [playing]
    : (lines.length ? lines : words).sort((a, b) => distance(a) - distance(b));
  if (best) splitAt(screen, best.id, best.at);
  else toast(t("edit.noSplit"));
}

/** @param {Screen} screen */
export function joinCue(screen) {
  const key = currentKey(screen);
  if (key !== undefined) joinWithNext(screen, key);
}

/**
 * @param {Screen} screen
 * @param {import("./cue_rows.js").CueRow} row
 * @param {import("./cue_rows.js").Problem} problem
 * @param {import("./cue_rows.js").Cure} cure
 */
export function applyCure(screen, row, problem, cure) {
  const { before, after } = neighbours(screen, row.key);
  if (cure === "shorten") return screen.view.edit(row.key);
  if (cure === "split") return splitCue(screen, row.key);
  if (cure === "join") {
    if (problem.limit === "join" && before) return joinWithNext(screen, before.key, true);
    const isNextNearer = !before || (after && after.start - row.end <= row.start - before.end);
    return isNextNearer ? joinWithNext(screen, row.key) : joinWithPrevious(screen, row.key);
  }
  const gap = screen.view.cues.limits.peek()?.min_gap_s ?? 0;
  const free = { after: before ? before.end + gap : 0, before: after ? after.start - gap : Infinity };
  retime(screen, row.key, curedTimes(row, problem, cure, free));
}

/**
 * Go to the next or the previous subtitle that breaks a limit.
 * @param {Screen} screen
 * @param {1 | -1} direction
 */
export function goToProblem(screen, direction) {
  const rows = screen.view.cues.rows.peek();
  const at = rows.findIndex(({ key }) => key === currentKey(screen));
  const around = [...rows.slice(at + 1), ...rows.slice(0, Math.max(at, 0))];
  const found = direction > 0 ? around.find(hasProblems) : around.findLast(hasProblems);
  if (!found) return toast(t("cue.noProblem"));
  screen.view.go(found.key);
  announce(found.problems.map((problem) => problemText(problem)).join(" "));
}

/** @param {import("./cue_rows.js").CueRow} row */
function hasProblems({ problems }) {
  return problems.length > 0;
}

/** @param {import("./cue_rows.js").Problem} problem */
export function problemText({ limit, value, allowed }) {
  const shown = (/** @type {number | null} */ number) => String(Math.round((number ?? 0) * 100) / 100);
  return t(`cue.problem.${limit}`, { value: shown(value), allowed: shown(allowed) });
}
