/** What the reader has chosen for all players, and where each recording was left. */

import { load, remembered, save } from "../core/storage.js";
import { isWide } from "../core/window_size.js";

export const RATES = [0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3];

/** Go back a little when the playing goes on after a pause. */
export const skipsBack = remembered("player.skipsBack", true);
export const showsCaptions = remembered("player.captions", true);
export const volume = remembered("player.volume", 1);
export const muted = remembered("player.muted", false);
export const chosenRate = remembered("player.rate", 1);
/** null: nothing is chosen. @type {import("../vendor/ui.js").Signal<boolean | null>} */
export const smallPicture = remembered("player.small", /** @type {boolean | null} */ (null));

/** Whether the picture of a film is small: until the reader says it, where there is no place beside the text. */
export function isSmall() {
  return smallPicture.value ?? !isWide.value;
}

const POSITIONS = "player.positions";
const POSITIONS_KEPT = 50;
const END_S = 3;

/** @typedef {[id: string, seconds: number][]} Positions The newest is the last one. */

/**
 * Positions with that of one more job. A recording that was played to its end begins anew.
 * @param {Positions} positions
 * @param {string} id
 * @param {number} seconds
 * @param {number} duration seconds; 0: unknown
 * @returns {Positions}
 */
export function withPosition(positions, id, seconds, duration) {
  const others = positions.filter(([other]) => other !== id);
  const isAtAnEnd = seconds < END_S || (duration > 0 && seconds > duration - END_S);
  return isAtAnEnd
    ? others
    : [...others, /** @type {[string, number]} */ ([id, seconds])].slice(-POSITIONS_KEPT);
}

/**
 * @param {string} id
 * @param {number} seconds
 * @param {number} duration
 */
export function keepPosition(id, seconds, duration) {
  save(POSITIONS, withPosition(positions(), id, seconds, duration));
}

/**
 * Where a recording was left; 0: at its start.
 * @param {string} id
 */
export function positionOf(id) {
  return positions().find(([other]) => other === id)?.[1] ?? 0;
}

/**
 * The next faster or slower rate.
 * @param {number} rate
 * @param {1 | -1} direction
 */
export function nextRate(rate, direction) {
  if (direction > 0) return RATES.find((other) => other > rate + 0.001) ?? RATES[RATES.length - 1];
  return RATES.findLast((other) => other < rate - 0.001) ?? RATES[0];
}

/** @returns {Positions} */
function positions() {
  const stored = load(POSITIONS, /** @type {Positions} */ ([]));
  return Array.isArray(stored) ? stored : [];
}
