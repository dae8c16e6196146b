/** Who speaks in a transcript, for how long, and in which colour. Without DOM. */

import { colourAt } from "../fleet/colours.js";

/** @typedef {import("./types.js").Segment} Segment */
/**
 * @typedef {object} Speaker
 * @property {string} name
 * @property {number} share Of all speech, from 0 to 1. That of nobody known counts, too.
 * @property {import("../fleet/colours.js").Colour} colour
 */

/**
 * A function that lists the speakers of segments, in the order in which they appear. Each keeps its colour while it
 * is there. Another name for a speaker takes over the colour: it is the first free one.
 * @returns {(segments: readonly Segment[]) => readonly Speaker[]}
 */
export function speakerBook() {
  /** @type {Map<string, number>} */
  const places = new Map();
  return (segments) => {
    const times = timesOf(segments);
    const all = [...times.values()].reduce((sum, seconds) => sum + seconds, 0);
    const names = [...times.keys()].filter((name) => name !== null);
    for (const name of places.keys()) if (!times.has(name)) places.delete(name);
    for (const name of names) if (!places.has(name)) places.set(name, freePlace(new Set(places.values())));
    return names.map((name) => ({
      name,
      share: all && /** @type {number} */ (times.get(name)) / all,
      colour: colourAt(/** @type {number} */ (places.get(name))),
    }));
  };
}

/** @param {ReadonlySet<number>} taken */
function freePlace(taken) {
  let place = 0;
  while (taken.has(place)) place++;
  return place;
}

/**
 * How long each speaks, in seconds. Within a segment, words may have other speakers.
 * @param {readonly Segment[]} segments
 * @returns {Map<string | null, number>}
 */
function timesOf(segments) {
  /** @type {Map<string | null, number>} */
  const times = new Map();
  for (const segment of segments) {
    let [from, speaker] = [segment.start, segment.speaker];
    const count = (/** @type {number} */ to) => times.set(speaker, (times.get(speaker) ?? 0) + to - from);
    for (const word of segment.words) {
      const next = word.speaker ?? segment.speaker;
      if (next === speaker) continue;
      count(word.start);
      [from, speaker] = [word.start, next];
    }
    count(segment.end);
  }
  return times;
}

/**
 * The longest segment in which nobody else speaks.
 * @param {readonly Segment[]} segments
 * @param {string} name
 */
export function sampleOf(segments, name) {
  let longest = null;
  for (const segment of segments) {
    if (segment.speaker !== name || segment.words.some(({ speaker = name }) => speaker !== name)) continue;
    if (!longest || segment.end - segment.start > longest.end - longest.start) longest = segment;
  }
  return longest;
}

/**
 * The ids of the segments from one on that its speaker says in a row.
 * @param {readonly Segment[]} segments
 * @param {string} first Its id.
 * @returns {ReadonlySet<string>}
 */
export function turnFrom(segments, first) {
  const from = segments.findIndex(({ id }) => id === first);
  const { speaker } = segments[from];
  let end = from + 1;
  while (segments[end]?.speaker === speaker && lastSpeaker(segments[end - 1]) === speaker) end++;
  return new Set(segments.slice(from, end).map(({ id }) => id));
}

/** Who speaks last in a segment. @param {Segment | undefined} segment */
export function lastSpeaker(segment) {
  return segment?.words.at(-1)?.speaker ?? segment?.speaker ?? null;
}

/**
 * The name that stays when several are one person: the first that someone chose, else the first.
 * @param {readonly string[]} names
 */
export function nameToKeep(names) {
  return names.find((name) => !/^S\d+$/.test(name)) ?? names[0];
}
