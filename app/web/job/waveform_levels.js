/** The numbers of a waveform: how high its columns are, whose they are, and how far it is zoomed in. Without DOM. */

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {{scale: number, left: number, width: number}} View Pixels per second, pixels scrolled, and pixels in sight. */

const FEWEST_POINTS = 1024;
const MOST_POINTS = 100_000; // of the service
const MOST_ZOOM = 400; // pixels per second
const WIDEST = 8_000_000; // pixels; browsers lay out nothing wider than about 33 million

/** Between a low column and a high one. Less would make a drama of an even voice, more a block of all speech. */
const [LEAST_RANGE_DB, MOST_RANGE_DB] = [6, 36];
const SILENCE = 1e-4;

/**
 * How many points a waveform needs: a power of two, so that few zoom steps ask again.
 * @param {number} pixels Of all of the recording, also what is scrolled out of view.
 */
export function pointsFor(pixels) {
  const power = 2 ** Math.ceil(Math.log2(Math.max(1, pixels)));
  return Math.min(MOST_POINTS, Math.max(FEWEST_POINTS, power));
}

/**
 * The scale after a step of the zoom, in pixels per second.
 * @param {number} scale
 * @param {number} factor
 * @param {{width: number, duration: number}} view Width in pixels, duration in seconds.
 */
export function zoomed(scale, factor, { width, duration }) {
  const fitting = width / duration;
  const most = Math.max(fitting, Math.min(MOST_ZOOM, WIDEST / duration));
  return Math.max(fitting, Math.min(scale * factor, most));
}

/**
 * The heights of parts of a recording, 0 to 1, as loud as people find them: in decibels, between what is quiet and
 * what is loud in this recording.
 * @param {readonly number[]} levels 0 to 1
 */
export function heightsOf(levels) {
  const decibels = Float32Array.from(levels, (level) => 20 * Math.log10(Math.max(level, SILENCE)));
  const audible = decibels.filter((_, index) => levels[index] > SILENCE).sort();
  const at = (/** @type {number} */ share) => audible[Math.floor(share * (audible.length - 1))] ?? 0;
  const high = at(0.98);
  const low = Math.max(high - MOST_RANGE_DB, Math.min(at(0.05), high - LEAST_RANGE_DB));
  return decibels.map((value) => Math.max(0, Math.min(1, (value - low) / (high - low))));
}

/**
 * The mean height from one share of the recording to another.
 * @param {Float32Array} heights
 * @param {number} from 0 to 1
 * @param {number} to
 */
export function heightBetween(heights, from, to) {
  const first = Math.min(heights.length - 1, Math.floor(from * heights.length));
  const last = Math.max(first + 1, Math.min(heights.length, Math.round(to * heights.length)));
  let sum = 0;
  for (let index = first; index < last; index++) sum += heights[index];
  return sum / (last - first);
}

/**
 * Who speaks in each of some equal columns: whoever has the longest segment there.
 * @param {readonly Segment[]} segments
 * @param {number} start Of the first column, in seconds.
 * @param {number} seconds Of each column.
 * @param {number} count
 * @returns {(string | null)[]} null: nobody, or nobody known.
 */
export function speakersOf(segments, start, seconds, count) {
  const longest = new Float64Array(count);
  const speakers = new Array(count).fill(null);
  for (const segment of segments) {
    const first = Math.max(0, Math.floor((segment.start - start) / seconds));
    const last = Math.min(count - 1, Math.floor((segment.end - start) / seconds));
    for (let column = first; column <= last; column++) {
      const [from, to] = [start + column * seconds, start + (column + 1) * seconds];
      const overlap = Math.min(to, segment.end) - Math.max(from, segment.start);
      if (overlap <= longest[column]) continue;
      longest[column] = overlap;
      speakers[column] = segment.speaker;
    }
  }
  return speakers;
}

/**
 * A view that is scrolled no further than the recording goes.
 * @param {View} view
 * @param {number} duration seconds
 * @returns {View}
 */
export function within({ scale, left, width }, duration) {
  return { scale, left: Math.max(0, Math.min(left, scale * duration - width)), width };
}
