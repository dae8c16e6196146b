/**
 * A long list that scrolls with the page. Only rows near the viewport are in the document: each is a child of the
 * list with its key in `data-key`. Space above and below stands for the others.
 */

import { signal } from "../vendor/ui.js";

const MARGIN_PX = 500; // drawn above and below the viewport
const WIDEST_PX = 1088; // until the list is measured
const HELD_MS = 500; // after a press: a second one makes it a double click

/**
 * @typedef {object} VirtualList
 * @property {(keys: readonly string[], estimate: (index: number, width: number) => number, parts?: ReadonlyMap<string,
 *   number>) => void} setRows While drawing. `estimate`: the height of a row, in a list of that width. `parts`: the
 *   rows of what has a key of its own within a row. Their keys go wherever keys of rows do.
 * @property {(pinnedKey: string | null) => DrawnRow[]} drawn The rows to draw. Reads a signal.
 * @property {() => number} spaceBelow Below the last drawn row, in pixels.
 * @property {() => void} settle After drawing: measures, and keeps in place what the reader sees.
 * @property {(list: HTMLElement, onScroll: () => void) => () => void} attach Returns a function that detaches it.
 * @property {(key: string, where?: "near" | "third") => void} reveal Scrolls there. `near`: only if
 *   the row is out of sight. `third`: to the upper third.
 * @property {(key: string) => HTMLElement | null} rowElement
 * @property {() => boolean} isHeld Whether a pointer is down on a row, or was a moment ago: nothing scrolls.
 * @property {() => number} clearTop The upper edge of what nothing covers, in the viewport.
 * @property {() => number} clearBottom Its lower edge.
 * @property {(preferred?: string | null) => string | undefined} seen The segment, if the reader sees it; else the first
 *   one that the reader does see.
 * @property {() => void} toEnd
 */

/** @typedef {{index: number, space: number}} DrawnRow `space`: above the row, in pixels. */

/**
 * @param {() => number} clearTop
 * @param {() => number} clearBottom
 * @returns {VirtualList}
 */
export function createVirtualList(clearTop, clearBottom) {
  /** @type {readonly string[]} */
  let keys = [];
  /** @type {(index: number, width: number) => number} */
  let estimate = () => 1;
  /** @type {Map<string, number>} */
  const heights = new Map(); // measured, or estimated
  let offsets = /** @type {Float64Array} */ (new Float64Array(1));
  /** @type {Map<string, number>} */
  let indices = new Map();
  /** @type {HTMLElement | null} */
  let list = null;
  let width = Math.min(innerWidth, WIDEST_PX);
  /** @type {number[]} */
  let shown = [];
  /** @type {{tops: Map<string, number>, scrollY: number} | null} */
  let before = null;
  /** @type {{key: string, where: "near" | "third"} | null} */
  let wanted = null;
  const range = signal({ first: 0, last: 20 });
  /** The row below the pointer that is down, or was a moment ago. @type {string | null} */
  let held = null;
  let shifted = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let releasing;

  const rowElements = () =>
    /** @type {HTMLElement[]} */ ([...(list?.querySelectorAll(":scope > [data-key]") ?? [])]);
  const rowElement = (/** @type {string} */ key) =>
    /** @type {HTMLElement | null} */ (list?.querySelector(`[data-key="${CSS.escape(key)}"]`) ?? null);

  /** @type {VirtualList["setRows"]} */
  function setRows(newKeys, newEstimate, parts = new Map()) {
    const next = new Map([...parts, ...newKeys.map((key, index) => /** @type {const} */ ([key, index]))]);
    const seen = [...(before?.tops.keys() ?? [])].find((key) => next.has(key));
    const top = offsets[indices.get(seen ?? "") ?? -1];
    [keys, estimate, indices] = [newKeys, newEstimate, next];
    place();
    // What the reader sees is drawn, however far the rows above have moved it: then it stays in place.
    const by = offsets[indices.get(seen ?? "") ?? -1] - top;
    if (by) updateRange(by);
  }

  function place() {
    offsets = offsetsOf(keys, heights, (index) => estimate(index, width));
  }

  /** @type {VirtualList["drawn"]} */
  function drawn(pinnedKey) {
    const { first, last } = range.value;
    const pinned = pinnedKey === null ? -1 : (indices.get(pinnedKey) ?? -1);
    const end = Math.min(last, keys.length - 1);
    shown = rowsToDraw({ first: Math.min(first, Math.max(0, end)), last: end }, pinned);
    return shown.map((index, position) => {
      const above = position ? offsets[shown[position - 1] + 1] : 0;
      return { index, space: offsets[index] - above };
    });
  }

  const spaceBelow = () => offsets[keys.length] - (shown.length ? offsets[shown[shown.length - 1] + 1] : 0);

  /** Of the text, below a heading that may come and go. @param {HTMLElement} row */
  const topOf = (row) => (row.querySelector("[data-anchor]") ?? row).getBoundingClientRect().top;

  /**
   * Rows in sight, the one below the pointer first, and then the one with the focus: the first of them that is still
   * there will not move.
   */
  function remember() {
    /** @type {HTMLElement[]} */
    const rows = [];
    const clear = clearTop();
    for (const row of rowElements()) {
      const { top, bottom } = row.getBoundingClientRect();
      if (bottom <= clear || top >= innerHeight) continue;
      if (row.contains(document.activeElement)) rows.unshift(row);
      else rows.push(row);
    }
    const pressed = held && rowElement(held);
    if (pressed) rows.unshift(pressed);
    const isScrolled = list !== null && list.getBoundingClientRect().top < clear;
    const tops = rows.map((row) => /** @type {[string, number]} */ ([row.dataset.key ?? "", topOf(row)]));
    before = isScrolled || pressed ? { tops: new Map(tops), scrollY } : null;
  }

  function restore() {
    if (!before) return;
    // A page that has become shorter has scrolled by itself.
    const isClamped =
      scrollY < before.scrollY && scrollY + innerHeight >= document.documentElement.scrollHeight - 1;
    const scrolled = isClamped && held ? 0 : scrollY - before.scrollY;
    for (const [key, top] of before.tops) {
      const row = rowElement(key);
      if (!row) continue;
      const moved = () => topOf(row) - (top - scrolled);
      const by = moved();
      if (Math.abs(by) < 1) return;
      scrollBy({ top: by, behavior: "instant" });
      if (held) shift(moved()); // the page does not scroll beyond its edges
      return;
    }
  }

  /** Draw the list higher than it is. @param {number} by pixels */
  function shift(by) {
    if (!list || Math.abs(by) < 1) return;
    shifted += by;
    list.style.translate = shifted ? `0 ${-shifted}px` : "";
  }

  /** Nothing moves below a pointer that is down, whatever it changes, until a double click would have come. */
  function hold(/** @type {PointerEvent} */ event) {
    const row = /** @type {Element} */ (event.target).closest(".segments > [data-key]");
    clearTimeout(releasing);
    held = /** @type {HTMLElement | null} */ (row)?.dataset.key ?? null;
    remember();
    requestAnimationFrame(keep);
  }

  function keep() {
    if (!held) return;
    restore();
    remember();
    requestAnimationFrame(keep);
  }

  /** @param {number} [after] ms */
  function release(after = HELD_MS) {
    if (!held) return;
    clearTimeout(releasing);
    releasing = setTimeout(() => {
      held = null;
      settleShift();
      remember();
    }, after);
  }

  /** Draw the list where it is again. What the page can scroll does not move; the rest does: a gap would stay and grow. */
  function settleShift() {
    const by = shifted;
    shift(-by);
    if (by) scrollBy({ top: by, behavior: "instant" });
  }

  function measure() {
    let isChanged = false;
    for (const row of rowElements()) {
      const [key, { height }] = [row.dataset.key ?? "", row.getBoundingClientRect()];
      if (heights.get(key) === height) continue;
      heights.set(key, height);
      isChanged = true;
    }
    if (isChanged) place();
  }

  function updateRange(by = 0) {
    if (!list) return;
    const top = by - list.getBoundingClientRect().top;
    const next = rangeFor(offsets, { top, bottom: top + innerHeight }, MARGIN_PX, range.peek());
    const { first, last } = range.peek();
    if (next.first !== first || next.last !== last) range.value = next;
  }

  function settle() {
    measure();
    if (wanted && rowElement(wanted.key)) {
      const { key, where } = wanted;
      wanted = null;
      scrollToRow(key, where);
    } else restore();
    updateRange();
    remember();
  }

  /** @type {VirtualList["reveal"]} */
  function reveal(key, where = "near") {
    const index = indices.get(key);
    if (index === undefined || !list) return;
    if (rowElement(key) && index >= range.peek().first && index <= range.peek().last) {
      scrollToRow(key, where);
      return;
    }
    const top = list.getBoundingClientRect().top + scrollY + offsets[index] - thirdOfView();
    scrollTo({ top, behavior: "instant" });
    before = null;
    wanted = { key, where: "third" };
    updateRange();
  }

  const thirdOfView = () => clearTop() + (clearBottom() - clearTop()) / 3;

  /**
   * @param {string} key
   * @param {"near" | "third"} where
   */
  function scrollToRow(key, where) {
    const box = rowElement(key)?.getBoundingClientRect();
    if (!box) return;
    const isClear = box.top >= clearTop() && box.bottom <= clearBottom();
    if (where === "near" && isClear) return;
    const top = clearTop() + 12;
    const lowest = Math.max(top, clearBottom() - box.height); // of its upper edge, where all of it is seen
    const target = where === "third" ? Math.min(thirdOfView(), lowest) : box.top < top ? top : lowest;
    scrollBy({ top: box.top - target, behavior: "instant" });
  }

  /** @type {VirtualList["attach"]} */
  function attach(element, onScroll) {
    list = element;
    const ending = new AbortController();
    const scrolled = () => {
      updateRange();
      remember();
      onScroll();
    };
    element.addEventListener("pointerdown", hold, { capture: true, signal: ending.signal });
    addEventListener("pointerup", () => release(), { signal: ending.signal });
    addEventListener("pointercancel", () => release(0), { signal: ending.signal });
    addEventListener("scroll", scrolled, { passive: true, signal: ending.signal });
    addEventListener("resize", scrolled, { passive: true, signal: ending.signal });
    const observer = new ResizeObserver(() => {
      if (element.clientWidth !== width) {
        heights.clear();
        width = element.clientWidth;
        place();
      }
      settle();
    });
    observer.observe(element);
    return () => {
      ending.abort();
      release(0);
      observer.disconnect();
      list = null;
    };
  }

  const toEnd = () => scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });

  /** @type {VirtualList["seen"]} */
  function seen(preferred) {
    const segments = /** @type {HTMLElement[]} */ ([...(list?.querySelectorAll(".segment") ?? [])]);
    const [top, bottom] = [clearTop(), clearBottom()];
    const visible = segments.filter((segment) => {
      const box = segment.getBoundingClientRect();
      return box.bottom > top && box.top < bottom;
    });
    return (visible.find(({ dataset }) => dataset.key === preferred) ?? visible[0])?.dataset.key;
  }

  const isHeld = () => held !== null;

  return {
    setRows,
    drawn,
    spaceBelow,
    settle,
    attach,
    reveal,
    rowElement,
    isHeld,
    clearTop,
    clearBottom,
    seen,
    toEnd,
  };
}

/**
 * @param {readonly string[]} keys
 * @param {Map<string, number>} heights In CSS pixels by key. Gets the estimates of the rows that it does not have.
 * @param {(index: number) => number} estimate
 * @returns {Float64Array} The upper edge of each row, and the lower edge of the last one.
 */
export function offsetsOf(keys, heights, estimate) {
  const offsets = new Float64Array(keys.length + 1);
  for (let index = 0; index < keys.length; index++) {
    const height = heights.get(keys[index]) ?? estimate(index);
    heights.set(keys[index], height);
    offsets[index + 1] = offsets[index] + height;
  }
  return offsets;
}

/**
 * The row at a height; the first or the last one beyond the list's edges. -1 if there are no rows.
 * @param {Float64Array} offsets
 * @param {number} y
 */
export function rowAt(offsets, y) {
  let [low, high] = [0, offsets.length - 2];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (offsets[middle] <= y) low = middle;
    else high = middle - 1;
  }
  return high < 0 ? -1 : low;
}

/** @typedef {{first: number, last: number}} Range Both rows are in it. */

/**
 * The rows to draw. They stay as long as they cover what is seen with half of the margin: a list that is drawn
 * for each pixel would scroll slowly.
 * @param {Float64Array} offsets
 * @param {{top: number, bottom: number}} seen In the coordinates of the list.
 * @param {number} margin
 * @param {Range} drawn
 * @returns {Range}
 */
export function rangeFor(offsets, seen, margin, drawn) {
  const range = (/** @type {number} */ spare) => ({
    first: rowAt(offsets, seen.top - spare),
    last: rowAt(offsets, seen.bottom + spare),
  });
  const [wanted, needed] = [range(margin), range(margin / 2)];
  const covers = drawn.first <= needed.first && drawn.last >= needed.last && drawn.last < offsets.length - 1;
  const isSmall = drawn.last - drawn.first <= 2 * (wanted.last - wanted.first) + 2;
  return covers && isSmall ? drawn : wanted;
}

/**
 * @param {Range} range
 * @param {number} pinned A row that is drawn wherever it is; -1: none.
 * @returns {number[]} The rows to draw, in order.
 */
export function rowsToDraw({ first, last }, pinned) {
  const rows = [];
  if (pinned >= 0 && pinned < first) rows.push(pinned);
  for (let row = Math.max(0, first); row <= last; row++) rows.push(row);
  if (pinned > last) rows.push(pinned);
  return rows;
}
