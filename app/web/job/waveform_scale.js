/** How far the waveform is zoomed in, and how many peaks that needs. */

const FEWEST_POINTS = 1024;
const MOST_POINTS = 100_000; // of the service
const PIXELS_PER_POINT = 2;
const MOST_ZOOM = 400; // pixels per second
const WIDEST = 8_000_000; // pixels; browsers draw nothing wider than about 16 million

/**
 * How many points a waveform needs: a power of two, so that few zoom steps ask again.
 * @param {number} pixels Of all of the recording, also what is scrolled out of view.
 */
export function pointsFor(pixels) {
  const power = 2 ** Math.ceil(Math.log2(Math.max(1, pixels / PIXELS_PER_POINT)));
  return Math.min(MOST_POINTS, Math.max(FEWEST_POINTS, power));
}

/**
 * The zoom after a step, in pixels per second.
 * @param {number} zoom 0: all of the recording fits.
 * @param {number} factor
 * @param {{width: number, duration: number}} view Width in pixels, duration in seconds.
 */
export function zoomed(zoom, factor, { width, duration }) {
  const fitting = width / duration;
  const wanted = Math.max(zoom, fitting) * factor;
  const most = Math.max(fitting, Math.min(MOST_ZOOM, WIDEST / duration));
  if (wanted <= fitting * 1.001) return 0;
  return most <= fitting ? 0 : Math.min(wanted, most);
}
