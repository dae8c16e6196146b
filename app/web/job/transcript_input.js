/** Mouse and keys on the list of segments. One handler for all rows: thousands of words need none of their own. */

import { runAlone } from "../core/keys.js";
import { offsetIn, selectionIn, TEXT } from "./carets.js";
import { assignSpeaker, removeSegments } from "./segment_actions.js";
import { placedWords, spokenAt } from "./words.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */

/** @param {EventTarget | null} target */
function rowOf(target) {
  return /** @type {HTMLElement | null} */ (target instanceof Element ? target.closest(".segment") : null);
}

const SECOND_CLICK_MS = 250;

/** @type {ReturnType<typeof setTimeout> | undefined} */
let clicked;

const HELD_MS = 450; // sooner than the browser selects a word
const MOVED_PX = 10;

/**
 * A finger that stays on a word edits it there.
 * @param {PointerEvent} event
 * @param {Screen} screen
 */
export function pointerDown(event, { view }) {
  const word = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("[data-at]"));
  if (event.pointerType !== "touch" || !word) return;
  const ending = new AbortController();
  const { signal } = ending;
  const end = () => ending.abort();
  const timer = setTimeout(() => {
    end();
    word.addEventListener("touchend", (lifted) => lifted.preventDefault()); // it is no tap
    view.edit(segmentOf(word), wordSpan(word));
  }, HELD_MS);
  signal.addEventListener("abort", () => clearTimeout(timer));
  for (const type of ["pointerup", "pointercancel", "scroll"]) addEventListener(type, end, { signal });
  const move = (/** @type {PointerEvent} */ { clientX, clientY }) => {
    if (Math.hypot(clientX - event.clientX, clientY - event.clientY) > MOVED_PX) end();
  };
  addEventListener("pointermove", move, { signal });
}

/**
 * Play from a word, unless a second click comes to edit it, or from the segment's time.
 * @param {MouseEvent} event
 * @param {Screen} screen
 */
export function click(event, { session, playback, view }) {
  clearTimeout(clicked);
  const target = /** @type {Element} */ (event.target);
  /** @param {string} selector @returns {HTMLElement | null} */
  const closest = (selector) => target.closest(selector);
  const button = closest("[data-edit]");
  if (button) return editAtWord(view, button.dataset.edit ?? "");
  const [word, time] = [closest("[data-at]"), closest("[data-play]")];
  const isSelecting = word !== null && getSelection()?.isCollapsed === false;
  if (isSelecting || event.shiftKey || (!word && !time)) return;
  const segment = word && session.segments.peek().find(({ id }) => id === segmentOf(word));
  view.word = segment ? { id: segment.id, ...wordSpan(word) } : null;
  const play = (/** @type {number} */ from) => {
    view.following.value = true;
    playback.play(from);
  };
  if (time) play(Number(time.dataset.play));
  else if (segment && view.word && event.detail < 2)
    clicked = setTimeout(play, SECOND_CLICK_MS, spokenAt(segment, view.word.start));
}

/** Edit a segment or subtitle, with the word selected that was clicked or shown last. @param {Screen["view"]} view @param {string} key */
function editAtWord(view, key) {
  const { word } = view;
  if (word && view.keyAt(word.id, word.start) === key) view.edit(word.id, word);
  else view.edit(key);
}

/** Whose text a drawn word is of. @param {Element} word @returns {string} */
function segmentOf(word) {
  return /** @type {HTMLElement | null} */ (word.closest(".segment-text"))?.dataset.id ?? "";
}

/** Where a drawn word is in its text. @param {HTMLElement} word */
function wordSpan({ dataset, textContent }) {
  const start = Number(dataset.at);
  return { start, end: start + (textContent?.length ?? 0) };
}

/**
 * Edit the text, with the word selected.
 * @param {MouseEvent} event
 * @param {Screen} screen
 */
export function doubleClick(event, { view }) {
  const target = /** @type {Element} */ (event.target);
  const beside = target.closest(".cue-text")?.querySelector(TEXT);
  const text = /** @type {HTMLElement | null | undefined} */ (target.closest(TEXT) ?? beside);
  if (text?.dataset.id) view.edit(text.dataset.id, selectionIn(text));
}

/**
 * A press with Shift selects from the current segment, or from the one that plays, and one without ends the selection.
 * @param {MouseEvent} event
 * @param {Screen} screen
 */
export function mouseDown(event, { view }) {
  const id = rowOf(event.target)?.dataset.key;
  if (
    !id ||
    event.button ||
    /** @type {Element} */ (event.target).closest(".segment-actions, .speaker-menu, .menu")
  )
    return;
  const { selection, current } = view;
  if (isField(event.target)) selection.clear();
  else if (event.shiftKey && !view.editing.peek()) {
    const highlighted = /** @type {HTMLElement | null} */ (document.querySelector(".segment[data-playing]"));
    getSelection()?.removeAllRanges(); // else the text in between would be selected, word by word
    selection.extend(id, current.peek() ?? highlighted?.dataset.key ?? id);
  } else selection.end(); // else the browser would drag the text that is selected
}

/** @param {EventTarget | null} target */
function isField(target) {
  return target instanceof Element && target.closest("input, textarea, [contenteditable]") !== null;
}

/**
 * Words whose text is selected are selected to get a speaker, if there are several.
 * @param {Screen} screen
 */
export function noticeSelection({ session, view }) {
  const selection = getSelection();
  if (!selection?.rangeCount || selection.isCollapsed) return;
  const range = selection.getRangeAt(0).cloneRange();
  const list = document.querySelector(".segments");
  if (!list?.contains(range.commonAncestorContainer)) return;
  const texts = /** @type {NodeListOf<HTMLElement>} */ (list.querySelectorAll(TEXT));
  const parts = [...texts].flatMap((text) => partOf(text, range));
  const [first, last] = [parts[0], parts.at(-1)];
  if (!first || !last) return;
  const segments = session.segments.peek();
  const [head, tail] = [first, last].map(({ id }) => segments.find((segment) => segment.id === id));
  if (!head || !tail) return;
  const start = placedWords(head).find(({ from, to }) => from < first.start && first.start < to)?.from;
  const end = placedWords(tail).find(({ from, to }) => from < last.end && last.end < to)?.to;
  const part = { start: start ?? first.start, end: end ?? last.end, range };
  const isPart = head.text.slice(0, part.start).trim() || tail.text.slice(part.end).trim();
  const isSeveral = first !== last || /\S\s+\S/.test(head.text.slice(first.start, first.end).trim());
  if (isSeveral && (isPart || first !== last))
    view.selection.select(first.id, last.id, isPart ? part : undefined);
}

/**
 * What a range has of a drawn text. A triple click selects one text up to where the next row begins.
 * @param {HTMLElement} text
 * @param {Range} range
 */
function partOf(text, range) {
  if (!range.intersectsNode(text)) return [];
  const all = document.createRange();
  all.selectNodeContents(text);
  const begins = range.compareBoundaryPoints(Range.START_TO_START, all) > 0;
  const ends = range.compareBoundaryPoints(Range.END_TO_END, all) < 0;
  const start = begins ? offsetIn(text, range.startContainer, range.startOffset) : 0;
  const end = ends ? offsetIn(text, range.endContainer, range.endOffset) : all.toString().length;
  const from = Number(text.dataset.from);
  const part = { id: text.dataset.id ?? "", start: from + start, end: from + end };
  return all.toString().slice(start, end).trim() ? [part] : [];
}

/**
 * Keys on a segment: not in its fields, and not on its buttons where these need them.
 * @param {KeyboardEvent} event
 * @param {Screen} screen
 */
export function press(event, screen) {
  const row = rowOf(event.target);
  const id = row?.dataset.key;
  if (
    !id ||
    isField(event.target) ||
    event.defaultPrevented ||
    event.altKey ||
    event.ctrlKey ||
    event.metaKey
  )
    return;
  const isOnRow = event.target === row;
  const { selection } = screen.view;
  const speakers = screen.view.speakers.peek().slice(0, 9);
  const digits = speakers.map(({ name }, index) => [index + 1, () => assignSpeaker(screen, id, name)]);
  /** @type {Record<string, () => void>} */
  const plain = {
    ArrowDown: () => step(screen, id, 1),
    ArrowUp: () => step(screen, id, -1),
    Home: () => step(screen, id, -Infinity),
    End: () => step(screen, id, Infinity),
    ...(isOnRow && { Enter: () => editAtWord(screen.view, id), Delete: () => removeSegments(screen, id) }),
    ...(selection.ids.peek().size > 0 && { Escape: selection.end }),
  };
  /** @type {Record<string, () => void>} */
  const withShift = {
    ArrowDown: () => step(screen, id, 1, true),
    ArrowUp: () => step(screen, id, -1, true),
  };
  const actions = { ...Object.fromEntries(digits), ...(event.shiftKey ? withShift : plain) }; // some keyboards have digits with Shift
  if (!Object.hasOwn(actions, event.key)) return;
  event.preventDefault();
  runAlone(event, actions[event.key]);
}

/**
 * @param {Screen} screen
 * @param {string} id
 * @param {number} by
 * @param {boolean} [isSelecting]
 */
function step({ view }, id, by, isSelecting = false) {
  const keys = view.keys();
  const next = keys[Math.max(0, Math.min(keys.length - 1, keys.indexOf(id) + by))];
  if (next === undefined) return;
  if (isSelecting) view.selection.extend(next, id);
  else view.selection.end();
  view.go(next);
}
