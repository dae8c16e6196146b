/** What a revision changed, compared with the one before it: segment by segment, and word by word. */

import { keptTokens } from "./words.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {{kind: "same" | "added" | "removed", text: string}} Part */

/**
 * @typedef {object} Change One segment of either revision.
 * @property {string} id
 * @property {number} start seconds
 * @property {number} end seconds
 * @property {"same" | "changed" | "added" | "removed"} kind `added`: only the shown revision has it, `removed`: only the one before.
 * @property {boolean} isMoved Its times differ.
 * @property {{from: string | null, to: string | null} | null} speakers Whose it was and is; null: the same speaker's.
 * @property {Part[]} parts Its text.
 */

/**
 * The segments of a revision in order, with those that it has removed between them.
 * @param {readonly Segment[]} shown
 * @param {readonly Segment[]} before
 * @returns {Change[]}
 */
export function compareRevisions(shown, before) {
  const inBefore = new Map(before.map((segment) => [segment.id, segment]));
  const inShown = new Set(shown.map((segment) => segment.id));
  const changes = shown.map((segment) => changeOf(segment, inBefore.get(segment.id)));
  const removed = before
    .filter((segment) => !inShown.has(segment.id))
    .map((segment) => whole(segment, "removed"));
  return [...changes, ...removed].sort((a, b) => a.start - b.start);
}

/**
 * @param {Segment} segment
 * @param {Segment | undefined} other The same one in the revision before.
 * @returns {Change}
 */
function changeOf(segment, other) {
  if (!other) return whole(segment, "added");
  const isMoved = segment.start !== other.start || segment.end !== other.end;
  const speakers = segment.speaker === other.speaker ? null : { from: other.speaker, to: segment.speaker };
  const isSame = segment.text === other.text;
  const parts = isSame ? whole(segment, "same").parts : compareTexts(other.text, segment.text);
  return {
    ...whole(segment, isSame && !isMoved && !speakers ? "same" : "changed"),
    isMoved,
    speakers,
    parts,
  };
}

/**
 * @param {Segment} segment
 * @param {"same" | "changed" | "added" | "removed"} kind
 * @returns {Change}
 */
function whole({ id, start, end, text }, kind) {
  return {
    id,
    start,
    end,
    kind,
    isMoved: false,
    speakers: null,
    parts: [{ kind: kind === "changed" ? "same" : kind, text }],
  };
}

/**
 * The words that turn one text into another.
 * @param {string} from
 * @param {string} to
 * @returns {Part[]} Those that are `same` or `added` give `to`, those that are `same` or `removed` give `from`.
 */
export function compareTexts(from, to) {
  const [old, fresh] = [wordsOf(from), wordsOf(to)];
  const places = keptTokens(old, fresh);
  /** @type {Part[]} */
  const parts = [];
  let next = 0; // of the fresh words
  for (const [index, word] of old.entries()) {
    const place = places[index];
    if (place < 0) parts.push(part("removed", word));
    else {
      while (next < place) parts.push(part("added", fresh[next++]));
      parts.push(part("same", fresh[next++]));
    }
  }
  return merged([...parts, ...fresh.slice(next).map((word) => part("added", word))]);
}

const segmenter = new Intl.Segmenter(undefined, { granularity: "word" });

/**
 * Words, spaces and marks, so that texts without spaces are divided as well.
 * @param {string} text
 */
function wordsOf(text) {
  return [...segmenter.segment(text)].map(({ segment }) => segment);
}

/**
 * @param {"same" | "added" | "removed"} kind
 * @param {string} text
 * @returns {Part}
 */
function part(kind, text) {
  return { kind, text };
}

/**
 * Neighbours of one kind as one part. What goes comes before what comes instead of it, also across a space.
 * @param {Part[]} parts
 */
function merged(parts) {
  /** @type {Part[]} */
  const result = [];
  let [removed, added] = ["", ""];
  const flush = () => {
    if (removed) result.push(part("removed", removed));
    if (added) result.push(part("added", added));
    [removed, added] = ["", ""];
  };
  for (const [index, { kind, text }] of parts.entries()) {
    if (kind === "removed") removed += text;
    else if (kind === "added") added += text;
    else if (
      removed &&
      added &&
      !text.trim() &&
      parts[index + 1]?.kind !== "same" &&
      index + 1 < parts.length
    ) {
      [removed, added] = [removed + text, added + text];
    } else {
      flush();
      const last = result.at(-1);
      if (last?.kind === "same") last.text += text;
      else result.push(part("same", text));
    }
  }
  flush();
  return result;
}
