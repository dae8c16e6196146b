/** Marks what plays or was said last, also while it is paused, and scrolls along with it until the reader scrolls away. */

import { effect } from "../vendor/ui.js";
import { lastStarted, placedWords, spokenNow } from "./words.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */
/** @typedef {{mark: () => void, start: () => () => void, scrolled: () => void, goBack: () => void}} Follower */

const SMOOTH_MS = 1000; // longer than browsers scroll smoothly

/**
 * @param {Screen} screen
 * @returns {Follower}
 */
export function createFollower({ session, playback, view }) {
  /** @type {{id: string, word: number, at: number | undefined} | null} */
  let playing = null;
  /** @type {Element[]} */
  let marked = [];
  let ownScrollUntil = 0;

  /** @param {number} time */
  function placeOf(time) {
    const segments = session.segments.value;
    const segment = segments[spokenNow(segments, time)];
    if (!segment) return null;
    const words = placedWords(segment);
    const word = lastStarted(words, time, ({ word }) => word.start);
    return { id: segment.id, word, at: words[word]?.from };
  }

  const keyOf = () => (playing ? view.keyAt(playing.id, playing.at) : "");
  const rowOf = () => view.list.rowElement(keyOf());
  const wordOf = () =>
    rowOf()?.querySelector(`[data-id="${playing?.id}"] [data-word="${playing?.word}"]`) ?? null;

  /** Also after rows were drawn anew. Attributes of its own: drawing leaves them alone. */
  function mark() {
    const elements = [rowOf(), wordOf()].filter((element) => element !== null);
    for (const element of marked) if (!elements.includes(element)) element.removeAttribute("data-playing");
    for (const element of elements) element.setAttribute("data-playing", "");
    marked = elements;
  }

  /** @param {DOMRect} box */
  function isInSight(box) {
    return box.top >= view.list.clearTop() && box.bottom <= view.list.clearBottom();
  }

  function show() {
    const box = (wordOf() ?? rowOf())?.getBoundingClientRect();
    if (box && isInSight(box)) return;
    const isNear = box !== undefined && Math.abs(box.top) < 2 * innerHeight;
    const isSmooth = isNear && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    ownScrollUntil = performance.now() + (isSmooth ? SMOOTH_MS : 100);
    if (!box) view.list.reveal(keyOf(), "third");
    else {
      const target = view.list.clearTop() + (view.list.clearBottom() - view.list.clearTop()) / 3;
      scrollBy({ top: box.top - target, behavior: isSmooth ? "smooth" : "instant" });
    }
  }

  /** While paused, only a reader who uses the player wants to see the place, or one who comes back to it. */
  const wantsToSee = () =>
    playback.playing.peek() ||
    (playback.resumedAt.peek() > 0 && playback.time.peek() === playback.resumedAt.peek()) ||
    document.querySelector(".player:is(:hover, :focus-within)") !== null;

  function update() {
    const next = placeOf(playback.time.value);
    if (next?.id === playing?.id && next?.word === playing?.word) return;
    playing = next;
    mark();
    if (playing && view.following.peek() && !view.editing.peek() && !view.list.isHeld() && wantsToSee())
      show();
  }

  function scrolled() {
    if (!playback.playing.peek() || performance.now() < ownScrollUntil) return;
    const box = (wordOf() ?? rowOf())?.getBoundingClientRect();
    view.following.value = box !== undefined && box.bottom > view.list.clearTop() && box.top < innerHeight;
  }

  function start() {
    const ending = new AbortController();
    const byReader = () => {
      ownScrollUntil = 0;
    };
    for (const type of ["wheel", "touchmove", "pointerdown", "keydown", "scrollend"]) {
      addEventListener(type, byReader, { passive: true, signal: ending.signal });
    }
    const dispose = effect(update);
    return () => {
      ending.abort();
      dispose();
    };
  }

  function goBack() {
    view.following.value = true;
    if (playing) show();
  }

  return { mark, start, scrolled, goBack };
}
