/** All timelines of the screen. Only those in view are drawn. */

import { isDark } from "../shell/theme.js";
import { effect, signal } from "../vendor/ui.js";
import * as store from "./fleet_store.js";
import { boxAt, endedBlock, runningBlock } from "./layout.js";
import { inkOf, paint } from "./paint.js";

/**
 * @typedef {object} Choice A block that the reader points at.
 * @property {number} slot
 * @property {import("./types.js").Block} block
 * @property {number} x In the timeline (px), where its description is shown.
 * @property {string} key The job of it that the reader points at.
 * @property {boolean} isPinned It stays when the pointer leaves.
 */

/** @type {import("../vendor/ui.js").Signal<Choice | null>} */
export const choice = signal(null);
/** The job of the legend that the reader points at. @type {import("../vendor/ui.js").Signal<string | null>} */
export const legendJob = signal(null);
/** The slot whose timeline the Tab key reaches. */
export const currentSlot = signal(0);

/**
 * @typedef {object} Lane
 * @property {number} slot
 * @property {HTMLCanvasElement} canvas
 * @property {boolean} isVisible
 * @property {{width: number, height: number}} size
 * @property {import("./layout.js").Box[]} boxes Drawn last.
 */

/** @type {Map<Element, Lane>} */
const lanes = new Map();
/** @type {import("./paint.js").Ink | null} */
let ink = null;

/**
 * Draw a timeline from now on.
 * @param {HTMLCanvasElement} canvas
 * @param {number} slot
 * @returns {() => void} Ends it.
 */
export function enter(canvas, slot) {
  /** @type {Lane} */
  const lane = { slot, canvas, isVisible: true, size: { width: 0, height: 0 }, boxes: [] };
  lanes.set(canvas, lane);
  const sizes = new ResizeObserver(() => {
    resize(lane);
    draw(lane);
  });
  const views = new IntersectionObserver((entries) => {
    lane.isVisible = entries[entries.length - 1].isIntersecting;
    draw(lane);
  });
  sizes.observe(canvas);
  views.observe(canvas);
  return () => {
    sizes.disconnect();
    views.disconnect();
    lanes.delete(canvas);
    if (choice.peek()?.slot === slot) choice.value = null;
  };
}

/**
 * Draw with every beat, and when the reader points at something else.
 * @returns {() => void} Ends it.
 */
export function openStage() {
  const stops = [
    effect(() => {
      void isDark.value;
      ink = null;
    }),
    effect(() => {
      void [store.now.value, choice.value, legendJob.value];
      for (const lane of lanes.values()) draw(lane);
    }),
    effect(() => {
      void store.now.value;
      followRunning();
    }),
  ];
  return () => {
    for (const stop of stops) stop();
    choice.value = legendJob.value = null;
  };
}

/**
 * The block under a point of a timeline, with the job that is there.
 * @param {HTMLCanvasElement} canvas
 * @param {number} x
 * @param {number} y From 0 to 1: in the height of the blocks.
 */
export function blockAt(canvas, x, y) {
  const found = boxAt(lanes.get(canvas)?.boxes ?? [], x);
  if (!found) return null;
  const band = found.bands.findLast(({ top }) => top <= y) ?? found.bands[0];
  return { block: found.block, key: band.key };
}

/**
 * The block that comes `step` blocks after another one; the newest one after none.
 * @param {HTMLCanvasElement} canvas
 * @param {number | null} id
 * @param {number} step
 */
export function neighbour(canvas, id, step) {
  const shown = lanes.get(canvas)?.boxes ?? [];
  const index = shown.findIndex((box) => box.block.id === id);
  const box = index < 0 ? shown.at(-1) : shown[Math.max(0, Math.min(shown.length - 1, index + step))];
  return box ? { block: box.block, key: box.bands[0].key, x: box.x + box.width / 2 } : null;
}

/** When the chosen work under way has ended, its block is chosen. */
function followRunning() {
  const chosen = choice.peek();
  if (!chosen || chosen.block.id) return;
  const block = endedBlock(store.fleet.blocks.get(chosen.slot) ?? [], chosen.block);
  if (block) choice.value = { ...chosen, block };
}

/** @param {Lane} lane */
function resize({ canvas, size }) {
  size.width = canvas.clientWidth;
  size.height = canvas.clientHeight;
  canvas.width = Math.round(size.width * devicePixelRatio);
  canvas.height = Math.round(size.height * devicePixelRatio);
}

/** @param {Lane} lane */
function draw(lane) {
  if (!lane.isVisible || !lane.size.width) return;
  ink ??= inkOf(lane.canvas);
  const context = /** @type {CanvasRenderingContext2D} */ (lane.canvas.getContext("2d"));
  context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  lane.boxes = paint(context, lane.size, sceneOf(lane.slot), ink);
}

/**
 * @param {number} slot
 * @returns {import("./paint.js").Scene}
 */
function sceneOf(slot) {
  const { fleet, colours } = store;
  const [now, lostAt, chosen] = [store.now.peek(), store.lostAt.peek(), choice.peek()];
  const blocks = fleet.blocks.get(slot) ?? [];
  const worker = fleet.workers.find((candidate) => candidate.slot === slot);
  return {
    blocks,
    running: worker ? runningBlock(worker, lostAt ?? now, blocks.at(-1)?.end ?? 0) : null,
    states: fleet.states.get(slot) ?? [],
    now,
    lostAt,
    highlight: legendJob.peek() ?? chosen?.key ?? null,
    chosen: chosen?.slot === slot ? chosen.block.id : null,
    colourOf: colours.of,
  };
}
