/** Draws the part of a waveform that is in sight. */

import { inkFor } from "../core/ink.js";
import { heightBetween, speakersOf } from "./waveform_levels.js";

const STEP = 3; // pixels from one column to the next
const COLUMN = 2;
const LEAST_HEIGHT = 2;
const UNPLAYED = 0.45; // of the colour of who speaks

/**
 * @typedef {object} Picture
 * @property {Float32Array} heights
 * @property {number} duration seconds
 * @property {import("./waveform_levels.js").View} view
 * @property {number} time What is played, in seconds.
 * @property {readonly import("./types.js").Segment[]} segments
 * @property {readonly import("./speakers.js").Speaker[]} speakers
 */

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Picture} picture
 */
export function drawWaveform(canvas, { heights, duration, view, time, segments, speakers }) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const context = canvas.getContext("2d");
  if (!context || !width || !height || !duration) return;
  [canvas.width, canvas.height] = [width * devicePixelRatio, height * devicePixelRatio];
  context.scale(devicePixelRatio, devicePixelRatio);
  const { plain, played, of } = coloursOf(canvas, speakers);
  const first = Math.floor(view.left / STEP);
  const count = Math.ceil(width / STEP) + 1;
  const seconds = STEP / view.scale;
  const whose = speakers.length ? speakersOf(segments, first * seconds, seconds, count) : [];
  for (let column = 0; column < count; column++) {
    const start = (first + column) * seconds;
    if (start > duration) break;
    const level = heightBetween(heights, start / duration, (start + seconds) / duration);
    const size = Math.max(LEAST_HEIGHT, Math.round(level * height));
    const isPlayed = start < time;
    const colour = of.get(whose[column] ?? "");
    context.globalAlpha = colour && !isPlayed ? UNPLAYED : 1;
    context.fillStyle = colour ?? (isPlayed ? played : plain);
    context.fillRect((first + column) * STEP - view.left, (height - size) / 2, COLUMN, size);
  }
}

/**
 * A canvas needs colours; everything else takes them from the style sheet itself.
 * @param {HTMLElement} canvas
 * @param {readonly import("./speakers.js").Speaker[]} speakers
 */
function coloursOf(canvas, speakers) {
  const get = inkFor(canvas);
  const of = new Map(speakers.map(({ name, colour }) => [name, get(`--job-${colour.hue}`)]));
  return { plain: get("--wave"), played: get("--wave-played"), of };
}
