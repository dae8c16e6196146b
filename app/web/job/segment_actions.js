/** Corrections of one segment, from keys, buttons and menus: each also says where the keyboard goes on. */

import { announce } from "../core/announcer.js";
import { t } from "../core/text.js";
import { toast } from "../core/toasts.js";
import { caretIn } from "./carets.js";
import { fieldOf, idOf, setMark } from "./cue_rows.js";
import { cutOut, insert, join, joinAll, remove, setSpeakers, split } from "./edits.js";
import { nextUnsure } from "./words.js";

/** @typedef {import("./types.js").Segment} Segment */

/**
 * @typedef {object} Screen What the parts of the transcript share.
 * @property {import("./types.js").Session} session
 * @property {import("./playback.js").Playback} playback
 * @property {import("./transcript_view.js").View} view
 * @property {import("./again.js").Again} again
 */

const SPARE_PX = 100; // below what is edited: what comes next is read, too
const INSERTED_S = 2; // at most, where there is space
const FRAME_S = 0.021; // half of one: times are on frames

/**
 * @param {Screen} screen
 * @param {string} key
 */
function find({ session }, key) {
  const id = idOf(key);
  const segments = session.segments.peek();
  const index = segments.findIndex((segment) => segment.id === id);
  return { segments, index, segment: segments[index] };
}

/**
 * Split a segment; of subtitles, a mark says that one begins there.
 * @param {Screen} screen
 * @param {string} id
 * @param {number} at Offset in the segment's text.
 */
export function splitAt(screen, id, at) {
  const { view, session } = screen;
  const { segment, index } = find(screen, id);
  const isEditing = view.editing.peek() !== null;
  const isText = view.layout.peek() === "text";
  const change = (/** @type {readonly Segment[]} */ all) =>
    isText ? split(all, id, at) : setMark(all, id, at, "break");
  if (!segment?.text.slice(at).trim() || !session.edit(isText ? "split" : "mark", change, id)) {
    toast(t("edit.noSplit"));
    return;
  }
  const second = isText ? session.segments.peek()[index + 1].id : id;
  const start = isText ? 0 : at + segment.text.slice(at).search(/\S/);
  if (isEditing) view.edit(second, { start, end: start });
  else view.go(second, true, isText ? null : { start, end: start });
}

/**
 * A segment or a subtitle, and what is selected with it. `part`: what of the first and the last segment it is.
 * @param {Screen} screen
 * @param {string} key
 * @returns {{ids: ReadonlySet<string>, part: {start: number, end: number} | null}}
 */
function chosenWith({ view }, key) {
  const { ids, part } = view.selection;
  if (ids.peek().has(idOf(key))) return { ids: ids.peek(), part: part.peek() };
  const parts = view.placeOf(key)?.parts ?? [];
  const [first, last] = [parts[0], parts.at(-1)];
  return {
    ids: new Set(parts.map(({ segment }) => segment.id)),
    part: first && last ? { start: first.from, end: last.to } : null,
  };
}

/**
 * Join the selected segments.
 * @param {Screen} screen
 */
export function joinSelected(screen) {
  const { selection } = screen.view;
  const ids = selection.ids.peek();
  const [first] = ids;
  if (!screen.session.edit("join", (segments) => joinAll(segments, ids), first))
    return toast(t("edit.tooLong"));
  selection.end();
  screen.view.go(first);
  toastStep(screen, t("edit.joined", { count: ids.size }));
}

/**
 * Join a segment with the next one, or a subtitle: a mark says that none ends between them. At times that someone has
 * set, all do, so the segments are joined there.
 * @param {Screen} screen
 * @param {string} key
 * @param {boolean} [isForced] The segments are, whatever their times.
 */
export function joinWithNext(screen, key, isForced = false) {
  const { view, session } = screen;
  const keys = view.keys();
  const [place, next] = [key, keys[keys.indexOf(key) + 1]].map((of) => view.placeOf(of));
  if (!place || !next || place === next) return;
  const [{ segment: before }] = place.parts.slice(-1);
  const [{ segment: after, from }] = next.parts;
  const isOne = before.id === after.id;
  const isExact = Math.abs(place.end - before.end) < FRAME_S || Math.abs(next.start - after.start) < FRAME_S;
  const isText = view.layout.peek() === "text";
  const isEditing = view.editing.peek() !== null;
  const id = before.id;
  let border = { id: after.id, at: from };
  /** @param {readonly Segment[]} segments */
  const joined = (segments) => {
    const one = join(segments, id);
    if (one === segments) return segments;
    const { length } = one.find((segment) => segment.id === id)?.text ?? "";
    border = { id, at: length - after.text.trimStart().length };
    return isText ? one : setMark(one, id, border.at, "join");
  };
  const isMark = isOne || !(isText || isForced || isExact);
  const change = isMark
    ? (/** @type {readonly Segment[]} */ all) => setMark(all, after.id, from, "join")
    : joined;
  if (!session.edit(isMark ? "mark" : "join", change, id)) return;
  if (isEditing) view.edit(border.id, { start: border.at, end: border.at });
  else view.go(key);
}

/**
 * @param {Screen} screen
 * @param {string} key
 */
export function joinWithPrevious(screen, key) {
  const keys = screen.view.keys();
  const before = keys[keys.indexOf(key) - 1];
  if (before !== undefined) joinWithNext(screen, before);
}

/**
 * @param {Screen} screen
 * @param {string} key
 */
export function insertAfter(screen, key) {
  const id = screen.view.placeOf(key)?.parts.at(-1)?.segment.id ?? key;
  const { segments, index, segment } = find(screen, id);
  if (!segment) return;
  const end = Math.min(segment.end + INSERTED_S, segments[index + 1]?.start ?? Infinity);
  const limit = screen.playback.duration.peek() || screen.session.job.peek()?.duration || Infinity;
  const known = new Set(segments.map((other) => other.id));
  if (!screen.session.edit("insert", (old) => insert(old, index + 1, segment.end, end, limit), id)) {
    toast(t("edit.noSpace"));
    return;
  }
  const added = screen.session.segments.peek().find((other) => !known.has(other.id));
  if (added) screen.view.edit(added.id);
}

/**
 * Delete a segment or a subtitle, and what is selected with it.
 * @param {Screen} screen
 * @param {string} key
 */
export function removeSegments(screen, key) {
  const { ids, part } = chosenWith(screen, key);
  const [first] = ids;
  const keys = screen.view.keys();
  const last = screen.view.keyAt([...ids].at(-1) ?? key, part?.start);
  const neighbour = keys[keys.indexOf(ids.size > 1 ? last : key) + 1] ?? keys[keys.indexOf(key) - 1];
  /** @param {readonly Segment[]} segments */
  const removed = (segments) => {
    const cut = part ? cutOut(segments, ids, part.start, part.end) : { segments, ids };
    return remove(cut.segments, cut.ids);
  };
  if (!screen.session.edit("remove", removed, first)) return;
  if (ids.size === 1) announce(t("edit.removed"));
  else toastStep(screen, t("edit.removedSeveral", { count: ids.size }));
  screen.view.editing.value = null;
  screen.view.selection.end();
  if (neighbour) screen.view.go(neighbour);
}

/**
 * Give a segment a speaker, and the others that are selected with it.
 * @param {Screen} screen
 * @param {string} id
 * @param {string} name
 */
export function assignSpeaker(screen, id, name) {
  const { ids, part } = chosenWith(screen, id);
  giveSpeaker(screen, ids, name, part);
  screen.view.selection.end();
  screen.view.go(id);
}

/**
 * @param {Screen} screen
 * @param {ReadonlySet<string>} ids
 * @param {string} name
 * @param {{start: number, end: number} | null} [part] Of the texts of the first and the last one.
 */
export function giveSpeaker(screen, ids, name, part = null) {
  const [first] = ids;
  /** @param {readonly import("./types.js").Segment[]} segments */
  const give = (segments) => {
    const cut = part ? cutOut(segments, ids, part.start, part.end) : { segments, ids };
    const given = setSpeakers(cut.segments, cut.ids, name);
    return given === cut.segments ? segments : given; // who has the name already is not parted
  };
  if (!screen.session.edit("speaker", give, first)) return;
  if (ids.size > 1) toastStep(screen, t("speakers.given", { count: ids.size, name }));
  else announce(`${t("edit.speaker")}: ${name}`);
}

/**
 * Say what the newest step has done, with a button that undoes it, as long as it is the newest.
 * @param {Screen} screen
 * @param {string} text
 */
export function toastStep(screen, text) {
  const { segments } = screen.session;
  const after = segments.peek();
  const action = { label: t("edit.undo"), run: () => travel(screen, "undo") };
  toast(text, { action, holds: () => segments.value === after });
}

/**
 * @param {Screen} screen
 * @param {"undo" | "redo"} direction
 */
export function travel(screen, direction) {
  const step = screen.session[direction]();
  if (!step) return;
  const { view } = screen;
  const exists = (/** @type {string | null | undefined} */ id) =>
    Boolean(id) && find(screen, id ?? "").index >= 0;
  const edited = view.editing.peek();
  if (edited && !exists(edited.id)) view.editing.value = null;
  announce(t(direction === "undo" ? "edit.undone" : "edit.redone"));
  if (step.focusId === null || !exists(step.focusId)) return;
  if (view.editing.peek()?.id === step.focusId) view.list.reveal(view.editedKey() ?? step.focusId);
  else view.go(step.focusId);
}

/**
 * Edit the segment or subtitle after or before another one.
 * @param {Screen} screen
 * @param {string} key
 * @param {1 | -1} direction
 */
export function editNeighbour(screen, key, direction) {
  const { view } = screen;
  const keys = view.keys();
  const next = keys[keys.indexOf(key) + direction];
  const [first] = (next !== undefined && view.placeOf(next)?.parts) || [];
  if (!first) return;
  if (direction > 0) view.edit(first.segment.id, { start: first.from, end: first.from });
  else view.edit(next);
}

/**
 * Go to the next or the previous word of low probability, and select it.
 * @param {Screen} screen
 * @param {1 | -1} direction
 * @param {boolean} [isEdited] What is typed next replaces the word. Else nothing is open for typing: Enter edits it.
 */
export function goToUnsure(screen, direction, isEdited = false) {
  const { view, session } = screen;
  const word = nextUnsure(session.segments.peek(), placeOf(view, direction), direction);
  if (!word) {
    toast(t("edit.noUnsure"));
    return;
  }
  announce(t("edit.unsure", { word: word.text }));
  const key = view.keyAt(word.id, word.start);
  const box = view.list.rowElement(key)?.getBoundingClientRect();
  const isInSight = box && box.top >= view.list.clearTop() && box.bottom < view.list.clearBottom() - SPARE_PX;
  if (isEdited) view.edit(word.id, word);
  else {
    view.stop();
    view.go(word.id, true, word);
  }
  view.word = word;
  if (!isInSight) view.list.reveal(key, "third");
}

/**
 * Where one is: at the caret, else at the word that was shown or clicked last.
 * @param {Screen["view"]} view
 * @param {1 | -1} direction
 */
function placeOf(view, direction) {
  const [key, { word }] = [view.current.peek(), view];
  const place = key === null ? undefined : view.placeOf(key);
  if (!place) return { id: null, offset: -1 };
  const field = /** @type {HTMLElement | null} */ (document.activeElement);
  if (field?.matches(".segment-text")) {
    const { id, at } = fieldOf(place).placeOf(caretIn(field).start);
    return { id, offset: at };
  }
  if (word && view.keyAt(word.id, word.start) === key) return { id: word.id, offset: word.start };
  const [{ segment, from, to }] = place.parts.slice(direction > 0 ? 0 : -1);
  return { id: segment.id, offset: direction > 0 ? from - 1 : to };
}
