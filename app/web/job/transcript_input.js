/** Mouse and keys on the list of segments. One handler for all rows: thousands of words need none of their own. */

import { removeSegment } from "./segment_actions.js";
import { selectionIn } from "./segment_text.js";
import { spokenAt } from "./segment_words.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */

/** @param {EventTarget | null} target */
function rowOf(target) {
  return /** @type {HTMLElement | null} */ (target instanceof Element ? target.closest(".segment") : null);
}

/**
 * Play from a word, or from the segment's time.
 * @param {MouseEvent} event
 * @param {Screen} screen
 */
export function click(event, { session, playback, view }) {
  const target = /** @type {Element} */ (event.target);
  const id = rowOf(target)?.dataset.key;
  const segment = session.segments.peek().find((other) => other.id === id);
  if (!segment) return;
  if (target.closest("[data-edit]")) return view.edit(segment.id);
  const word = /** @type {HTMLElement | null} */ (target.closest("[data-at]"));
  const isSelecting = word !== null && getSelection()?.isCollapsed === false;
  if (isSelecting || (!word && !target.closest("[data-play]"))) return;
  view.following.value = true;
  playback.play(word ? spokenAt(segment, Number(word.dataset.at)) : segment.start);
}

/**
 * Edit the text, with the word selected.
 * @param {MouseEvent} event
 * @param {Screen} screen
 */
export function doubleClick(event, { view }) {
  const text = /** @type {Element} */ (event.target).closest("p.segment-text");
  const id = rowOf(text)?.dataset.key;
  if (text && id) view.edit(id, selectionIn(text));
}

/**
 * Keys on a segment: not in its fields, and not on its buttons where these need them.
 * @param {KeyboardEvent} event
 * @param {Screen} screen
 */
export function press(event, screen) {
  const row = rowOf(event.target);
  const isField = /^(INPUT|TEXTAREA)$/.test(/** @type {Element} */ (event.target).tagName);
  const id = row?.dataset.key;
  if (
    !id ||
    isField ||
    event.defaultPrevented ||
    event.altKey ||
    event.ctrlKey ||
    event.metaKey ||
    event.shiftKey
  )
    return;
  const isOnRow = event.target === row;
  /** @type {Record<string, () => void>} */
  const actions = {
    ArrowDown: () => step(screen, id, 1),
    ArrowUp: () => step(screen, id, -1),
    Home: () => step(screen, id, -Infinity),
    End: () => step(screen, id, Infinity),
    ...(isOnRow && { Enter: () => screen.view.edit(id), Delete: () => removeSegment(screen, id) }),
  };
  if (!Object.hasOwn(actions, event.key)) return;
  event.preventDefault();
  actions[event.key]();
}

/**
 * @param {Screen} screen
 * @param {string} id
 * @param {number} by
 */
function step({ session, view }, id, by) {
  const segments = session.segments.peek();
  const index = segments.findIndex((segment) => segment.id === id);
  const next = segments[Math.max(0, Math.min(segments.length - 1, index + by))];
  if (next) view.go(next.id);
}
