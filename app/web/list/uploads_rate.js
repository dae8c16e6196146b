/** How fast bytes are sent. */

const HALF_LIFE_MS = 3000;
const SHORTEST_MS = 250;

/**
 * A function that takes how many bytes have been sent, and returns the present rate.
 * @param {() => number} [now] ms
 * @returns {(sent: number) => number} Bytes per second; 0 until it is known.
 */
export function rateMeter(now = Date.now) {
  /** @type {{sent: number, at: number} | null} */
  let last = null;
  let rate = 0;
  return (sent) => {
    const at = now();
    if (!last || sent < last.sent) {
      last = { sent, at };
      return rate;
    }
    const ms = at - last.at;
    if (ms < SHORTEST_MS) return rate;
    const present = ((sent - last.sent) / ms) * 1000;
    const weight = rate ? 1 - 0.5 ** (ms / HALF_LIFE_MS) : 1;
    rate += (present - rate) * weight;
    last = { sent, at };
    return rate;
  };
}
