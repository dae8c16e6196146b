/** Colours of jobs: eight hues in three patterns, so that jobs can be told apart without seeing colours. */

import { DIRECT } from "./measures.js";

export const HUES = 8;
export const PATTERNS = /** @type {const} */ (["plain", "stripes", "dots"]);

/** @typedef {{hue: number | "grey", pattern: typeof PATTERNS[number]}} Colour */

/** @type {Colour} */
export const GREY = { hue: "grey", pattern: "plain" };

/** The colour of a place, from 0. Plain ones come first. @param {number} place @returns {Colour} */
export function colourAt(place) {
  return { hue: place % HUES, pattern: PATTERNS[Math.floor(place / HUES) % PATTERNS.length] };
}

/** A function that answers with the colour of a job. A job keeps its colour while it is shown. */
export function colourBook() {
  /** @type {Map<string, number>} */
  const places = new Map();

  /**
   * Give each of these jobs a colour, and free those of all others.
   * @param {Iterable<string>} keys
   */
  function keep(keys) {
    const kept = new Set(keys);
    for (const key of places.keys()) if (!kept.has(key)) places.delete(key);
    // In the order of their names: the same jobs have the same colours in every tab.
    for (const key of [...kept].sort()) of(key);
  }

  /**
   * @param {string} key Of a job, or DIRECT.
   * @returns {Colour}
   */
  function of(key) {
    if (key === DIRECT) return GREY;
    const place = places.get(key) ?? freePlace(key, new Set(places.values()));
    places.set(key, place);
    return colourAt(place);
  }

  return { of, keep };
}

/**
 * The place of a job by its name, or the next free one. Plain colours are used up first.
 * @param {string} key
 * @param {Set<number>} taken
 */
function freePlace(key, taken) {
  const wanted = hash(key) % HUES;
  for (let step = 0; step < HUES * PATTERNS.length; step++) {
    const place = Math.floor(step / HUES) * HUES + ((wanted + step) % HUES);
    if (!taken.has(place)) return place;
  }
  return hash(key) % (HUES * PATTERNS.length);
}

/**
 * FNV-1a, 32 bits.
 * @param {string} text
 */
function hash(text) {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193) >>> 0;
  }
  return value;
}
