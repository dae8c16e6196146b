/** How large the window is. */

import { signal } from "../vendor/ui.js";

/** On a phone or at 200 %: the text of a transcript needs the window. */
export const isSmall = matching("(max-width: 640px), (max-height: 500px)");
/** A picture has a place beside the text. */
export const isWide = matching("(min-width: 1000px)");

/** Whether a media query holds. @param {string} query */
export function matching(query) {
  const list = globalThis.matchMedia?.(query); // Node has none
  const matches = signal(list?.matches ?? false);
  list?.addEventListener("change", () => {
    matches.value = list.matches;
  });
  return matches;
}
