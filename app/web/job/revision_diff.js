/** What a revision changes, compared with the newest one: segment by segment, and word by word. */

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {{kind: "same" | "added" | "removed", text: string}} Part */

/**
 * @typedef {object} Change One segment of either revision.
 * @property {string} id
 * @property {number} start seconds
 * @property {number} end seconds
 * @property {"same" | "changed" | "added" | "removed"} kind `added`: only the shown revision has it.
 * @property {boolean} isMoved Its times or its speaker differ.
 * @property {Part[]} parts Its text.
 */

const MOST_CELLS = 1_000_000; // of the table of a comparison; longer texts are replaced as a whole

/**
 * The segments of a revision in order, with those that only the newest one has between them.
 * @param {readonly Segment[]} shown
 * @param {readonly Segment[]} newest
 * @returns {Change[]}
 */
export function compareRevisions(shown, newest) {
  const inNewest = new Map(newest.map((segment) => [segment.id, segment]));
  const inShown = new Set(shown.map((segment) => segment.id));
  const changes = shown.map((segment) => changeOf(segment, inNewest.get(segment.id)));
  const removed = newest
    .filter((segment) => !inShown.has(segment.id))
    .map((segment) => whole(segment, "removed"));
  return [...changes, ...removed].sort((a, b) => a.start - b.start);
}

/**
 * @param {Segment} segment
 * @param {Segment | undefined} other The same one in the newest revision.
 * @returns {Change}
 */
function changeOf(segment, other) {
  if (!other) return whole(segment, "added");
  const isMoved =
    segment.start !== other.start || segment.end !== other.end || segment.speaker !== other.speaker;
  const isSame = segment.text === other.text;
  const parts = isSame ? whole(segment, "same").parts : compareTexts(other.text, segment.text);
  return { ...whole(segment, isSame && !isMoved ? "same" : "changed"), isMoved, parts };
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
  let head = 0;
  while (head < Math.min(old.length, fresh.length) && old[head] === fresh[head]) head++;
  let tail = 0;
  const most = Math.min(old.length, fresh.length) - head;
  while (tail < most && old[old.length - 1 - tail] === fresh[fresh.length - 1 - tail]) tail++;
  const middle = compareWords(old.slice(head, old.length - tail), fresh.slice(head, fresh.length - tail));
  return merged([
    ...fresh.slice(0, head).map((text) => part("same", text)),
    ...middle,
    ...fresh.slice(fresh.length - tail).map((text) => part("same", text)),
  ]);
}

/**
 * By the longest common subsequence.
 * @param {string[]} old
 * @param {string[]} fresh
 * @returns {Part[]}
 */
function compareWords(old, fresh) {
  const width = fresh.length + 1;
  if (old.length * fresh.length > MOST_CELLS) {
    return [...old.map((text) => part("removed", text)), ...fresh.map((text) => part("added", text))];
  }
  const longest = new Uint32Array((old.length + 1) * width); // of the words from there to the end
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = fresh.length - 1; j >= 0; j--) {
      const cell = i * width + j;
      longest[cell] =
        old[i] === fresh[j]
          ? longest[cell + width + 1] + 1
          : Math.max(longest[cell + width], longest[cell + 1]);
    }
  }
  /** @type {Part[]} */
  const parts = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < fresh.length) {
    const cell = i * width + j;
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      parts.push(part("same", fresh[j]));
      [i, j] = [i + 1, j + 1];
    } else if (i < old.length && (j === fresh.length || longest[cell + width] >= longest[cell + 1])) {
      parts.push(part("removed", old[i++]));
    } else parts.push(part("added", fresh[j++]));
  }
  return parts;
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
