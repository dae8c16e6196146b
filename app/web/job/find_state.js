/** The search in a transcript: what is searched, where it is, and which place is shown. */

import { computed, signal } from "../vendor/ui.js";
import { replaceAll } from "./edits.js";
import { findMatches } from "./find_matches.js";

/** @typedef {import("./edits.js").Match} Match */
/** @typedef {import("../vendor/ui.js").ReadonlySignal<readonly Match[]>} Matches */

/**
 * @typedef {object} Search
 * @property {import("../vendor/ui.js").Signal<"find" | "replace" | null>} mode What the bar shows; null: it is closed.
 * @property {import("../vendor/ui.js").Signal<string>} query
 * @property {import("../vendor/ui.js").Signal<string>} replacement
 * @property {import("../vendor/ui.js").Signal<boolean>} matchCase
 * @property {import("../vendor/ui.js").Signal<boolean>} wholeWord
 * @property {Matches} matches
 * @property {import("../vendor/ui.js").Signal<number>} at Index of the match that is shown; -1: none.
 * @property {(direction: 1 | -1) => void} move To the next match, or to the previous one.
 * @property {(from: string | null) => void} begin Show the first match in a segment or after it.
 * @property {() => void} replaceOne
 * @property {() => number} replaceEvery Returns how many were replaced.
 */

/**
 * @param {import("./session_types.js").Session} session
 * @param {import("./transcript_view.js").View} view
 * @returns {Search}
 */
export function createSearch(session, view) {
  const mode = view.search;
  const [query, replacement] = [signal(""), signal("")];
  const [matchCase, wholeWord] = [signal(false), signal(false)];
  const at = signal(-1);
  const matches = computed(() =>
    mode.value
      ? findMatches(session.segments.value, query.value, {
          matchCase: matchCase.value,
          wholeWord: wholeWord.value,
        })
      : [],
  );

  /** @param {number} index */
  function show(index) {
    const match = matches.peek()[index];
    at.value = match ? index : -1;
    if (match) view.go(match.id, false);
  }

  /** @type {Search["move"]} */
  function move(direction) {
    const count = matches.peek().length;
    if (!count) return;
    const from = at.peek() < 0 && direction < 0 ? 0 : at.peek();
    show((from + direction + count) % count);
  }

  /** @type {Search["begin"]} */
  function begin(from) {
    const positions = new Map(session.segments.peek().map(({ id }, index) => [id, index]));
    const least = (from !== null && positions.get(from)) || 0;
    const index = matches.peek().findIndex(({ id }) => (positions.get(id) ?? 0) >= least);
    show(matches.peek().length && index < 0 ? 0 : index);
  }

  function replaceOne() {
    const match = matches.peek()[at.peek()];
    if (!match) return move(1);
    const [before, text] = [at.peek(), replacement.peek()];
    session.edit("replace", (segments) => replaceAll(segments, [match], text), match.id);
    // The replacement may have matches itself: go on behind it.
    const end = match.start + text.length;
    const next = matches
      .peek()
      .findIndex(({ id, start }, index) => index >= before && (id !== match.id || start >= end));
    show(next < 0 && matches.peek().length ? 0 : next);
  }

  function replaceEvery() {
    const found = matches.peek();
    if (!session.edit("replace", (segments) => replaceAll(segments, found, replacement.peek()), found[0]?.id))
      return 0;
    show(-1);
    return found.length;
  }

  return {
    mode,
    query,
    replacement,
    matchCase,
    wholeWord,
    matches,
    at,
    move,
    begin,
    replaceOne,
    replaceEvery,
  };
}
