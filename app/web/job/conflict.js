/** Three-way merge of a transcript: what two sides made of the same base. Without DOM. */

import { applyChanges, changesBetween, isSame } from "./edits_rules.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {readonly Segment[]} Segments */
/** @typedef {import("./edits_rules.js").Change} Change */
/** @typedef {import("./types.js").ConflictPart} ConflictPart */
/** @typedef {{id: string, base: Segment | null, mine: Segment | null, theirs: Segment | null}} Sides */
/** @typedef {{merged: Segments, parts: readonly ConflictPart[]}} Merge `merged` has their side of all parts. */

/**
 * @param {Segments} base
 * @param {Segments} mine
 * @param {Segments} theirs
 * @returns {Merge}
 */
export function merge(base, mine, theirs) {
  const changed = sides(base, withoutTwins(base, mine, theirs), theirs);
  /** @type {Change[]} */
  const changes = [];
  /** @type {ConflictPart[]} */
  const parts = [];
  for (const group of overlapping(changed)) {
    if (isClash(group)) parts.push(partOf(group));
    else
      changes.push(...group.map((entry) => ({ id: entry.id, before: entry.theirs, after: joined(entry) })));
  }
  return { merged: applyChanges(theirs, changes, "after"), parts };
}

/**
 * The merged segments with a choice for each part.
 * @param {Merge} merge
 * @param {ReadonlyMap<string, "mine" | "theirs">} choices By the ids of the parts. The default is mine.
 * @returns {Segments}
 */
export function resolved({ merged, parts }, choices) {
  const chosen = parts.filter((part) => choices.get(part.id) !== "theirs");
  return applyChanges(
    merged,
    chosen.flatMap((part) => changesBetween(part.theirs, part.mine)),
    "after",
  );
}

/**
 * The changes of a draft while parts need a choice: those of the parts begin from the base of both sides. So the
 * choice is asked for again when the draft comes back, and neither side replaces the other unseen.
 * @param {readonly Change[]} changes From theirs to mine.
 * @param {readonly ConflictPart[]} parts
 * @param {Segments} mine
 * @returns {Change[]}
 */
export function withOpenParts(changes, parts, mine) {
  const [before, after] = [parts.flatMap((part) => part.base), mine].map(byId);
  const open = new Set(
    parts.flatMap((part) => [...part.base, ...part.mine, ...part.theirs].map(({ id }) => id)),
  );
  return [
    ...changes.filter(({ id }) => !open.has(id)),
    ...[...open].map((id) => ({ id, before: before.get(id) ?? null, after: after.get(id) ?? null })),
  ];
}

/** @param {Segments} segments */
function byId(segments) {
  return new Map(segments.map((segment) => [segment.id, segment]));
}

/**
 * My segments without the new ones that the other side has, too, by another id: it has saved them before.
 * @param {Segments} base
 * @param {Segments} mine
 * @param {Segments} theirs
 */
function withoutTwins(base, mine, theirs) {
  const known = new Set([...base, ...mine].map((segment) => segment.id));
  const added = theirs.filter((segment) => !known.has(segment.id));
  if (!added.length) return mine;
  const stayed = new Set([...base, ...theirs].map((segment) => segment.id));
  return mine.filter((segment) => stayed.has(segment.id) || !added.some((other) => isSame(segment, other)));
}

/**
 * The segments that at least one side has changed.
 * @param {Segments} base
 * @param {Segments} mine
 * @param {Segments} theirs
 * @returns {Sides[]}
 */
function sides(base, mine, theirs) {
  const maps = [base, mine, theirs].map(byId);
  const ids = new Set(maps.flatMap((map) => [...map.keys()]));
  return [...ids]
    .map((id) => {
      const [of, my, their] = maps.map((map) => map.get(id) ?? null);
      return { id, base: of, mine: my, theirs: their };
    })
    .filter((entry) => !isSame(entry.base, entry.mine) || !isSame(entry.base, entry.theirs));
}

/**
 * Groups of changes at the same time of the recording, such as both parts of a split segment.
 * @param {Sides[]} changed
 * @returns {Sides[][]}
 */
function overlapping(changed) {
  const timed = changed.map((entry) => {
    const present = [entry.base, entry.mine, entry.theirs].filter((segment) => segment !== null);
    const start = Math.min(...present.map((segment) => segment.start));
    return { entry, start, end: Math.max(...present.map((segment) => segment.end)) };
  });
  timed.sort((one, other) => one.start - other.start);
  /** @type {Sides[][]} */
  const groups = [];
  let last = -Infinity;
  for (const { entry, start, end } of timed) {
    if (start < last) groups[groups.length - 1].push(entry);
    else groups.push([entry]);
    last = Math.max(last, end);
  }
  return groups;
}

/** @param {Sides[]} group */
function isClash(group) {
  const apart = group.filter((entry) => !isSame(entry.mine, entry.theirs));
  const byMe = apart.some((entry) => !isSame(entry.base, entry.mine));
  const byThem = apart.some((entry) => !isSame(entry.base, entry.theirs));
  const moves = apart.some((entry) => !entry.base || !entry.mine?.text.trim() || !entry.theirs);
  return byMe && byThem && (moves || apart.some((entry) => joined(entry) === null));
}

/**
 * One segment with the changes of both sides; null if both have changed the same field, or one removed it.
 * @param {Sides} entry
 * @returns {Segment | null}
 */
export function joined({ base, mine, theirs }) {
  if (isSame(mine, theirs) || isSame(base, mine)) return theirs;
  if (isSame(base, theirs)) return mine;
  if (!base || !mine || !theirs) return null;
  const text = pick(textOf(base), textOf(mine), textOf(theirs));
  const times = pick(timesOf(base), timesOf(mine), timesOf(theirs));
  const speaker = pick(base.speaker, mine.speaker, theirs.speaker);
  if (!text || !times || !speaker) return null;
  const [words, timed] = [text === "mine" ? mine : theirs, times === "mine" ? mine : theirs];
  const { start, end } = timed;
  return { ...words, start, end, speaker: (speaker === "mine" ? mine : theirs).speaker };
}

/** With its marks: they are at places of the text. @param {Segment} segment */
function textOf({ text, marks = [] }) {
  return JSON.stringify([text.trim(), marks]);
}

/** @param {Segment} segment */
function timesOf(segment) {
  return `${segment.start} ${segment.end}`;
}

/**
 * @param {string | null} base
 * @param {string | null} mine
 * @param {string | null} theirs
 * @returns {"mine" | "theirs" | null} null: both have changed it.
 */
function pick(base, mine, theirs) {
  if (mine === theirs || base === mine) return "theirs";
  return base === theirs ? "mine" : null;
}

/**
 * @param {Sides[]} group
 * @returns {ConflictPart}
 */
function partOf(group) {
  /** @param {"base" | "mine" | "theirs"} side */
  const of = (side) => group.map((entry) => entry[side]).filter((segment) => segment !== null);
  return { id: group[0].id, base: of("base"), mine: of("mine"), theirs: of("theirs") };
}
