/** Mouse and keys on the list of segments. One handler for all rows: thousands of words need none of their own. */

import { runAlone } from "../core/keys.js";
import { selectionIn } from "./carets.js";
import { assignSpeaker, removeSegments } from "./segment_actions.js";
import { spokenAt } from "./words.js";

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

let wasHeld = false;

/**
 * A finger that stays on a word edits it there.
 * @param {PointerEvent} event
 * @param {Screen} screen
 */
export function pointerDown(event, { view }) {
  wasHeld = false;
  const word = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("[data-at]"));
  const id = rowOf(word)?.dataset.key;
  if (event.pointerType !== "touch" || !word || !id) return;
  const ending = new AbortController();
  const { signal } = ending;
  const end = () => ending.abort();
  const timer = setTimeout(() => {
    end();
    wasHeld = true;
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
  if (wasHeld) return; // the finger that edits is lifted
  const target = /** @type {Element} */ (event.target);
  const head = /** @type {HTMLElement | null} */ (target.closest("[data-of]")); // of a paragraph
  const id = rowOf(target)?.dataset.key ?? head?.dataset.of;
  const segment = session.segments.peek().find((other) => other.id === id);
  if (!segment) return;
  const button = /** @type {HTMLElement | null} */ (target.closest("[data-edit]"));
  if (button) {
    const wanted = button.dataset.edit ?? segment.id;
    return view.edit(wanted, view.word?.id === wanted ? view.word : null);
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
    /** @type {Element} */ (event.target).closest(".segment-actions, .segment-speaker, .menu")
  )
    return;
  const { selection, current } = view;
  if (event.shiftKey && !view.editing.peek()) {
    const highlighted = /** @type {HTMLElement | null} */ (document.querySelector(".segment[data-playing]"));
    selection.extend(id, current.peek() ?? highlighted?.dataset.key ?? id);
  } else selection.clear();
}

/**
 * Segments whose text is selected are selected themselves, if there are several.
 * @param {Screen} screen
 */
export function noticeSelection({ view }) {
  const selection = getSelection();
  if (!selection?.rangeCount || selection.isCollapsed) return;
  const range = selection.getRangeAt(0).cloneRange();
  const rows = [range.startContainer, range.endContainer].map((node) =>
    rowOf(node instanceof Element ? node : node.parentElement),
  );
  const [first, last] = rows;
  if (!first?.dataset.key || !last?.dataset.key || first === last) return;
  range.setStart(last, 0);
  // A triple click selects one text up to where the next row begins.
  if (range.toString().trim()) view.selection.select(first.dataset.key, last.dataset.key);
}

/**
 * Keys on a segment: not in its fields, and not on its buttons where these need them.
 * @param {KeyboardEvent} event
 * @param {Screen} screen
 */
export function press(event, screen) {
  const row = rowOf(event.target);
  const isField = /** @type {Element} */ (event.target).matches("input, textarea, [contenteditable]");
  const id = row?.dataset.key;
  if (!id || isField || event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
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
    ...(isOnRow && { Enter: () => screen.view.edit(id), Delete: () => removeSegments(screen, id) }),
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
  else view.selection.clear();
  view.go(next.id);
}
