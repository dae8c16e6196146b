/** Neighbouring segments that are selected together, by keys, or as their text is. */

import { computed, signal } from "../vendor/ui.js";

/** @typedef {ReturnType<typeof createSelection>} Selection */

/** @type {ReadonlySet<string>} */
const NONE = new Set();

/** @param {import("./session_types.js").Session} session */
export function createSelection(session) {
  const range = signal(/** @type {{from: string, to: string} | null} */ (null));
  const ids = computed(() => {
    if (!range.value) return NONE;
    const { from, to } = range.value;
    const segments = session.segments.value;
    const [first, last] = [from, to]
      .map((id) => segments.findIndex((segment) => segment.id === id))
      .sort((one, other) => one - other);
    return first < 0 ? NONE : new Set(segments.slice(first, last + 1).map(({ id }) => id));
  });

  return {
    ids,
    /** Select from one segment to another. @param {string} from @param {string} to */
    select(from, to) {
      if (range.peek()?.from !== from || range.peek()?.to !== to) range.value = { from, to };
    },
    /** Up to another segment. @param {string} to @param {string} from Where it begins, if nothing is selected. */
    extend(to, from) {
      range.value = { from: range.peek()?.from ?? from, to };
    },
    clear() {
      range.value = null;
    },
    /** The same, and no text is selected any more. */
    end() {
      range.value = null;
      getSelection()?.removeAllRanges();
    },
  };
}
