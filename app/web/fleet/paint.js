/** Draws one timeline on a canvas. */

import { inkFor } from "../core/ink.js";
import { PATTERNS } from "./colours.js";
import { boxes, outages, toX } from "./layout.js";

export const MARKS_PX = 10; // above the blocks, for what became of them
const TILE_PX = 6;

/**
 * @typedef {object} Ink The colours of the current theme.
 * @property {string[]} hues
 * @property {Record<"grey" | "surface" | "foreground" | "muted" | "danger" | "dangerSoft" | "warning" | "warningSoft", string>} named
 * @property {Map<string, CanvasPattern | string>} fills By hue and pattern, made when they are needed.
 */

/**
 * @param {HTMLElement} canvas
 * @returns {Ink}
 */
export function inkOf(canvas) {
  const value = inkFor(canvas);
  const hues = Array.from({ length: 8 }, (_, index) => value(`--job-${index}`));
  const named = {
    grey: value("--job-grey"),
    surface: value("--surface"),
    foreground: value("--foreground"),
    muted: value("--border-strong"),
    danger: value("--danger"),
    dangerSoft: value("--danger-soft"),
    warning: value("--warning"),
    warningSoft: value("--warning-soft"),
  };
  return { hues, named, fills: new Map() };
}

/**
 * @typedef {object} Scene
 * @property {import("./types.js").Block[]} blocks
 * @property {import("./types.js").Block | null} running
 * @property {{at: number, state: import("./types.js").WorkerState}[]} states
 * @property {number} now
 * @property {number | null} lostAt
 * @property {string | null} highlight The job that stands out.
 * @property {number | null} chosen The id of the block that is outlined.
 * @property {(key: string) => import("./colours.js").Colour} colourOf
 */

/**
 * @param {CanvasRenderingContext2D} context In CSS pixels.
 * @param {{width: number, height: number}} size
 * @param {Scene} scene
 * @param {Ink} ink
 * @returns {import("./layout.js").Box[]} What was drawn.
 */
export function paint(context, size, scene, ink) {
  context.clearRect(0, 0, size.width, size.height);
  drawOutages(context, size, scene, ink);
  const shown = boxes(scene.blocks, scene.running, scene.now, size.width);
  for (const box of shown) drawBox(context, size.height, box, scene, ink);
  context.globalAlpha = 1;
  for (const box of shown) drawMark(context, box, ink);
  return shown;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {{width: number, height: number}} size
 * @param {Scene} scene
 * @param {Ink} ink
 */
function drawOutages(context, { width, height }, { states, now, lostAt }, { named, fills }) {
  for (const outage of outages(states, now, width)) {
    const isLoading = outage.state === "loading";
    context.fillStyle = isLoading ? named.warningSoft : named.dangerSoft;
    context.fillRect(outage.x, MARKS_PX, outage.width, height - MARKS_PX);
    if (isLoading) continue;
    context.fillStyle = hatch(context, named.danger, fills);
    context.globalAlpha = 0.35;
    context.fillRect(outage.x, MARKS_PX, outage.width, height - MARKS_PX);
    context.globalAlpha = 1;
  }
  if (lostAt === null) return;
  const x = Math.max(0, toX(lostAt, now, width));
  context.fillStyle = hatch(context, named.muted, fills);
  context.globalAlpha = 0.5;
  context.fillRect(x, MARKS_PX, width - x, height - MARKS_PX);
  context.globalAlpha = 1;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} height
 * @param {import("./layout.js").Box} box
 * @param {Scene} scene
 * @param {Ink} ink
 */
function drawBox(context, height, box, { highlight, chosen, colourOf }, ink) {
  const space = height - MARKS_PX;
  const round = box.width > 5 && box.outcome !== "running" ? 3 : 0;
  for (const { key, top, height: part } of box.bands) {
    const isDim = highlight !== null && highlight !== key;
    const isLost = box.outcome === "failed" || box.outcome === "requeued";
    context.globalAlpha = isDim ? 0.15 : isLost ? 0.4 : 1;
    context.fillStyle = fill(context, colourOf(key), ink);
    const [above, below] = [top === 0 ? round : 0, top + part > 0.999 ? round : 0];
    context.beginPath();
    context.roundRect(box.x, MARKS_PX + top * space, box.width, Math.max(1, part * space), [
      above,
      above,
      below,
      below,
    ]);
    context.fill();
  }
  context.globalAlpha = 1;
  if (box.outcome === "running") {
    context.fillStyle = ink.named.foreground;
    context.fillRect(box.x + box.width - 2, MARKS_PX, 2, space);
  }
  if (box.block.id === chosen) {
    context.strokeStyle = ink.named.foreground;
    context.lineWidth = 2;
    context.strokeRect(box.x, MARKS_PX + 1, Math.max(3, box.width), space - 2);
  }
}

/**
 * A red cross over a block that failed, an amber ring over one whose clips were queued again.
 * @param {CanvasRenderingContext2D} context
 * @param {import("./layout.js").Box} box
 * @param {Ink} ink
 */
function drawMark(context, box, { named }) {
  if (box.outcome !== "failed" && box.outcome !== "requeued") return;
  const [x, y, reach] = [Math.max(4, box.x + box.width / 2), 4, 3];
  context.lineWidth = 2;
  context.beginPath();
  if (box.outcome === "failed") {
    context.strokeStyle = named.danger;
    context.moveTo(x - reach, y - reach);
    context.lineTo(x + reach, y + reach);
    context.moveTo(x + reach, y - reach);
    context.lineTo(x - reach, y + reach);
  } else {
    context.strokeStyle = named.warning;
    context.arc(x, y, reach, 0, 2 * Math.PI);
  }
  context.stroke();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {import("./colours.js").Colour} colour
 * @param {Ink} ink
 */
function fill(context, { hue, pattern }, { hues, named, fills }) {
  const name = `${hue} ${pattern}`;
  const colour = hue === "grey" ? named.grey : hues[hue];
  const made =
    fills.get(name) ?? (pattern === PATTERNS[0] ? colour : tile(context, pattern, colour, named.surface));
  fills.set(name, made);
  return made;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} colour
 * @param {Ink["fills"]} fills
 */
function hatch(context, colour, fills) {
  const made = fills.get(colour) ?? tile(context, "stripes", "transparent", colour);
  fills.set(colour, made);
  return made;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {typeof PATTERNS[number]} pattern
 * @param {string} ground
 * @param {string} figure
 * @returns {CanvasPattern | string}
 */
function tile(context, pattern, ground, figure) {
  const small = document.createElement("canvas");
  small.width = small.height = TILE_PX;
  const pen = /** @type {CanvasRenderingContext2D} */ (small.getContext("2d"));
  pen.fillStyle = ground;
  pen.fillRect(0, 0, TILE_PX, TILE_PX);
  pen.fillStyle = pen.strokeStyle = figure;
  if (pattern === "dots") {
    pen.arc(TILE_PX / 2, TILE_PX / 2, 1.4, 0, 2 * Math.PI);
    pen.fill();
  } else {
    pen.lineWidth = 1.6;
    for (const shift of [-TILE_PX, 0, TILE_PX]) {
      pen.moveTo(shift - 1, TILE_PX + 1);
      pen.lineTo(shift + TILE_PX + 1, -1);
    }
    pen.stroke();
  }
  return context.createPattern(small, "repeat") ?? ground;
}
