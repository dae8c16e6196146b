/** Corrections of one segment, from keys, buttons and menus: each also says where the keyboard goes on. */

import { announce } from "../core/announcer.js";
import { t } from "../core/text.js";
import { toast } from "../core/toasts.js";
import { caretIn } from "./carets.js";
import { cutOut, insert, join, joinAll, remove, setSpeakers, split } from "./edits.js";
import { nextUnsure, splitPoint } from "./words.js";

/**
 * @typedef {object} Screen What the parts of the transcript share.
 * @property {import("./types.js").Session} session
 * @property {import("./playback.js").Playback} playback
 * @property {import("./transcript_view.js").View} view
 * @property {import("./again.js").Again} [again] Absent where nothing can be transcribed again.
 */

const SPARE_PX = 100; // below what is edited: what comes next is read, too
const INSERTED_S = 2; // at most, where there is space

/**
 * @param {Screen} screen
 * @param {string} id
 */
function find({ session }, id) {
  const segments = session.segments.peek();
  const index = segments.findIndex((segment) => segment.id === id);
  return { segments, index, segment: segments[index] };
}

/**
 * @param {Screen} screen
 * @param {string} id
 * @param {number} [offset] In the text; else where it plays, or near the middle.
 */
export function splitSegment(screen, id, offset) {
  const { segment, index } = find(screen, id);
  if (!segment) return;
  const isEditing = screen.view.editing.peek()?.id === id;
  const at = offset ?? splitPoint(segment, screen.playback.time.peek());
  if (!screen.session.edit("split", (segments) => split(segments, id, at), id)) {
    toast(t("edit.noSplit"));
    return;
  }
  const second = screen.session.segments.peek()[index + 1].id;
  if (isEditing) screen.view.edit(second, { start: 0, end: 0 });
  else screen.view.go(second);
}

/**
 * The segment, and the others that are selected with it.
 * @param {Screen} screen
 * @param {string} id
 */
function chosenWith({ view }, id) {
  const selected = view.selection.ids.peek();
  return selected.has(id) ? selected : new Set([id]);
}

/**
 * Join what is selected, or a segment with the next one.
 * @param {Screen} screen
 * @param {string} id
 */
export function joinSegments(screen, id) {
  const ids = chosenWith(screen, id);
  if (ids.size === 1) return joinWithNext(screen, id);
  const [first] = ids;
  if (!screen.session.edit("join", (segments) => joinAll(segments, ids), first))
    return toast(t("edit.tooLong"));
  screen.view.selection.end();
  screen.view.go(first);
  toastStep(screen, t("edit.joined", { count: ids.size }));
}

/**
 * @param {Screen} screen
 * @param {string} id
 */
export function joinWithNext(screen, id) {
  const { segments, index, segment } = find(screen, id);
  const next = segments[index + 1];
  if (!segment || !next) return;
  const isEditing = screen.view.editing.peek() !== null;
  if (!screen.session.edit("join", (old) => join(old, id), id)) return;
  const joined = find(screen, id).segment;
  const border = joined.text.length - next.text.trimStart().length;
  if (isEditing) screen.view.edit(id, { start: border, end: border });
  else screen.view.go(id);
}

/**
 * @param {Screen} screen
 * @param {string} id
 */
export function joinWithPrevious(screen, id) {
  const { segments, index } = find(screen, id);
  if (index > 0) joinWithNext(screen, segments[index - 1].id);
}

/**
 * @param {Screen} screen
 * @param {string} id
 */
export function insertAfter(screen, id) {
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
 * Delete a segment, and the others that are selected with it.
 * @param {Screen} screen
 * @param {string} id
 */
export function removeSegments(screen, id) {
  const ids = chosenWith(screen, id);
  const [first] = ids;
  const { segments, index } = find(screen, first);
  const neighbour = segments[index + ids.size] ?? segments[index - 1];
  if (!screen.session.edit("remove", (old) => remove(old, ids), first)) return;
  if (ids.size === 1) announce(t("edit.removed"));
  else toastStep(screen, t("edit.removedSeveral", { count: ids.size }));
  screen.view.editing.value = null;
  screen.view.selection.end();
  if (neighbour) screen.view.go(neighbour.id);
}

/**
 * Give a segment a speaker, and the others that are selected with it.
 * @param {Screen} screen
 * @param {string} id
 * @param {string} name
 */
export function assignSpeaker(screen, id, name) {
  const ids = chosenWith(screen, id);
  const { selection } = screen.view;
  giveSpeaker(screen, ids, name, ids === selection.ids.peek() ? selection.part.peek() : null);
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
  if (view.editing.peek()?.id === step.focusId) view.list.reveal(step.focusId);
  else view.go(step.focusId);
}

/**
 * Edit the segment after or before another one.
 * @param {Screen} screen
 * @param {string} id
 * @param {1 | -1} direction
 */
export function editNeighbour(screen, id, direction) {
  const { segments, index } = find(screen, id);
  const next = segments[index + direction];
  if (next) screen.view.edit(next.id, direction > 0 ? { start: 0, end: 0 } : null);
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
  const box = view.list.rowElement(word.id)?.getBoundingClientRect();
  const isInSight = box && box.top >= view.list.clearTop() && box.bottom < view.list.clearBottom() - SPARE_PX;
  if (isEdited) view.edit(word.id, word);
  else {
    view.stop();
    view.go(word.id, true, word);
  }
  view.word = word;
  if (!isInSight) view.list.reveal(word.id, "third");
}

/**
 * Where one is: at the caret, else at the word that was shown or clicked last.
 * @param {Screen["view"]} view
 * @param {1 | -1} direction
 */
function placeOf({ current, word }, direction) {
  const id = current.peek();
  const field = document.activeElement;
  if (field?.matches(".segment-text"))
    return { id, offset: caretIn(/** @type {HTMLElement} */ (field)).start };
  return { id, offset: word?.id === id ? word.start : direction > 0 ? -1 : Infinity };
}
