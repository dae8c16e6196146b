/** Marks what the search has found in the drawn rows, without a change of the document. */

import { rangeIn } from "./segment_text.js";

/** @typedef {import("./edits.js").Match} Match */

/** The matches of each segment, for the lists that the search makes. @type {WeakMap<readonly Match[], Map<string, Match[]>>} */
const grouped = new WeakMap();

/**
 * @param {import("./virtual_list.js").VirtualList} list
 * @param {readonly Match[]} matches
 * @param {Match | null} shown
 */
export function showMatches(list, matches, shown) {
  if (!CSS.highlights) return showRow(shown && list.rowElement(shown.id));
  const [found, current] = [new Highlight(), new Highlight()];
  const groups = groupsOf(matches);
  const rows = groups.size ? document.querySelectorAll(".segment") : [];
  for (const row of rows) {
    const text = row.querySelector("p.segment-text");
    const inRow = groups.get(/** @type {HTMLElement} */ (row).dataset.key ?? "") ?? [];
    for (const match of inRow) {
      const range = text && rangeIn(text, match.start, match.end);
      if (range) (match === shown ? current : found).add(range);
    }
  }
  CSS.highlights.set("found", found);
  CSS.highlights.set("found-current", current);
}

/** The ranges of a screen that is left would keep its rows in memory. */
export function hideMatches() {
  CSS.highlights?.delete("found");
  CSS.highlights?.delete("found-current");
}

/** Browsers without highlights show the row alone. @param {HTMLElement | null} row */
function showRow(row) {
  for (const other of document.querySelectorAll("[data-found]"))
    if (other !== row) other.removeAttribute("data-found");
  row?.setAttribute("data-found", "");
}

/** @param {readonly Match[]} matches */
function groupsOf(matches) {
  const known = grouped.get(matches);
  if (known) return known;
  /** @type {Map<string, Match[]>} */
  const groups = new Map();
  for (const match of matches) {
    const group = groups.get(match.id);
    if (group) group.push(match);
    else groups.set(match.id, [match]);
  }
  grouped.set(matches, groups);
  return groups;
}
