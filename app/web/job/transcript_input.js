/** Mouse and keys on the list of segments. One handler for all rows: thousands of words need none of their own. */

import { runAlone } from "../core/keys.js";
import { offsetIn, selectionIn } from "./carets.js";
import { assignSpeaker, removeSegments } from "./segment_actions.js";
import { placedWords, spokenAt } from "./words.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */

const TEXT = ".segment-text:not(textarea, [contenteditable])";

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
  const id = rowOf(word)?.dataset.key;
  if (event.pointerType !== "touch" || !word || !id) return;
  const ending = new AbortController();
  const { signal } = ending;
  const end = () => ending.abort();
  const timer = setTimeout(() => {
    end();
    word.addEventListener("touchend", (lifted) => lifted.preventDefault()); // it is no tap
    view.edit(id, wordSpan(word));
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
  const head = /** @type {HTMLElement | null} */ (target.closest("[data-of]")); // of a paragraph
  const id = rowOf(target)?.dataset.key ?? head?.dataset.of;
  const segment = session.segments.peek().find((other) => other.id === id);
  if (!segment) return;
  const button = /** @type {HTMLElement | null} */ (target.closest("[data-edit]"));
  if (button) {
    return editAtWord(view, button.dataset.edit ?? segment.id);
  }
  const word = /** @type {HTMLElement | null} */ (target.closest("[data-at]"));
  const isSelecting = word !== null && getSelection()?.isCollapsed === false;
  if (isSelecting || event.shiftKey || (!word && !target.closest("[data-play]"))) return;
  view.word = word && { id: segment.id, ...wordSpan(word) };
  const play = (/** @type {number} */ from) => {
    view.following.value = true;
    playback.play(from);
  };
  if (!word) play(segment.start);
  else if (event.detail < 2)
    clicked = setTimeout(play, SECOND_CLICK_MS, spokenAt(segment, Number(word.dataset.at)));
}

/** Edit a segment, with the word selected that was clicked or shown last. @param {Screen["view"]} view @param {string} id */
function editAtWord(view, id) {
  view.edit(id, view.word?.id === id ? view.word : null);
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
  const text = /** @type {Element} */ (event.target).closest(TEXT);
  const id = rowOf(text)?.dataset.key;
  if (text && id) view.edit(id, selectionIn(text));
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
  const parts = [...list.querySelectorAll(".segment")].flatMap((row) => partOf(row, range));
  const [first, last] = [parts[0], parts.at(-1)];
  if (!first || !last) return;
  const wordsOf = (/** @type {string} */ id) => {
    const segment = session.segments.peek().find((other) => other.id === id);
    return segment ? placedWords(segment) : [];
  };
  const start = wordsOf(first.id).find(({ from, to }) => from < first.start && first.start < to)?.from;
  const end = wordsOf(last.id).find(({ from, to }) => from < last.end && last.end < to)?.to;
  const part = { start: start ?? first.start, end: end ?? last.end, range };
  const isPart = first.text.slice(0, part.start).trim() || last.text.slice(part.end).trim();
  const isSeveral = first !== last || /\S\s+\S/.test(first.text.slice(first.start, first.end).trim());
  if (isSeveral && (isPart || first !== last))
    view.selection.select(first.id, last.id, isPart ? part : undefined);
}

/**
 * What a range has of the text of a row. A triple click selects one text up to where the next row begins.
 * @param {Element} row
 * @param {Range} range
 */
function partOf(row, range) {
  const text = row.querySelector(TEXT);
  if (!text || !range.intersectsNode(text)) return [];
  const all = document.createRange();
  all.selectNodeContents(text);
  const begins = range.compareBoundaryPoints(Range.START_TO_START, all) > 0;
  const ends = range.compareBoundaryPoints(Range.END_TO_END, all) < 0;
  const start = begins ? offsetIn(text, range.startContainer, range.startOffset) : 0;
  const end = ends ? offsetIn(text, range.endContainer, range.endOffset) : all.toString().length;
  const part = { id: /** @type {HTMLElement} */ (row).dataset.key ?? "", text: all.toString(), start, end };
  return part.text.slice(start, end).trim() ? [part] : [];
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
function step({ session, view }, id, by, isSelecting = false) {
  const segments = session.segments.peek();
  const index = segments.findIndex((segment) => segment.id === id);
  const next = segments[Math.max(0, Math.min(segments.length - 1, index + by))];
  if (!next) return;
  if (isSelecting) view.selection.extend(next.id, id);
  else view.selection.end();
  view.go(next.id);
}
