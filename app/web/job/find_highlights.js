/** Marks what the search has found in the drawn rows, without a change of the document. */

import { rangeIn } from "./segment_text.js";

/** @typedef {import("./edits.js").Match} Match */

/**
 * @param {import("./virtual_list.js").VirtualList} list
 * @param {readonly Match[]} matches
 * @param {Match | null} shown
 */
export function showMatches(list, matches, shown) {
  // Older browsers mark the row alone.
  if (shown) list.rowElement(shown.id)?.setAttribute("data-found", "");
  for (const row of document.querySelectorAll("[data-found]")) {
    if (/** @type {HTMLElement} */ (row).dataset.key !== shown?.id) row.removeAttribute("data-found");
  }
  if (!("highlights" in CSS)) return;
  const found = new Highlight();
  const current = new Highlight();
  /** @type {Map<string, Element | null>} */
  const texts = new Map();
  for (const match of matches) {
    if (!texts.has(match.id))
      texts.set(match.id, list.rowElement(match.id)?.querySelector("p.segment-text") ?? null);
    const text = texts.get(match.id);
    const range = text && rangeIn(text, match.start, match.end);
    if (range) (match === shown ? current : found).add(range);
  }
  CSS.highlights.set("found", found);
  CSS.highlights.set("found-current", current);
}
