/** The timeline of one worker: pointing at a block describes it. */

import { announce } from "../core/announcer.js";
import { go } from "../core/router.js";
import { t } from "../core/text.js";
import { html, useEffect, useRef } from "../vendor/ui.js";
import { BlockTip, describe } from "./block_tip.js";
import { hasScreen } from "./job_names.js";
import { MARKS_PX } from "./paint.js";
import { blockAt, choice, currentSlot, enter, neighbour } from "./stage.js";

const TIP_PX = 150; // about the height of a description

/** @typedef {{current: HTMLCanvasElement | null}} CanvasRef */

/** @param {{slot: number, isReached: boolean}} props */
export function Timeline({ slot, isReached }) {
  const canvas = /** @type {CanvasRef} */ (useRef(null));
  useEffect(() => enter(/** @type {HTMLCanvasElement} */ (canvas.current), slot), [slot]);
  const chosen = choice.value?.slot === slot ? choice.value : null;
  return html`<div class="timeline">
    <div
      class="track"
      role="application"
      tabindex=${isReached ? 0 : -1}
      aria-label=${t("fleet.timeline", { slot })}
      onKeyDown=${(/** @type {KeyboardEvent} */ event) => onKey(event, slot, canvas.current)}
      onFocus=${() => (currentSlot.value = slot)}
      onPointerMove=${(/** @type {PointerEvent} */ event) => point(event, slot, false)}
      onPointerLeave=${leave}
      onClick=${(/** @type {PointerEvent} */ event) => point(event, slot, true)}
    ><canvas ref=${canvas}></canvas></div>
    ${chosen && html`<${BlockTip} choice=${chosen} isAbove=${isLow(canvas.current)} />`}
  </div>`;
}

/**
 * Whether there is too little space below a timeline for a description.
 * @param {HTMLElement | null} canvas
 */
function isLow(canvas) {
  return canvas !== null && canvas.getBoundingClientRect().bottom > innerHeight - TIP_PX;
}

/**
 * @param {PointerEvent} event
 * @param {number} slot
 * @param {boolean} isPinned
 */
function point(event, slot, isPinned) {
  const canvas = /** @type {HTMLElement} */ (event.currentTarget).querySelector("canvas");
  if (!canvas || (choice.value?.isPinned && !isPinned)) return;
  const frame = canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - frame.left, event.clientY - frame.top - MARKS_PX];
  const found = blockAt(canvas, x, y / (frame.height - MARKS_PX));
  choice.value = found && { slot, x, isPinned, ...found };
}

function leave() {
  if (!choice.value?.isPinned) choice.value = null;
}

/**
 * Left and right move along the blocks, up and down to other workers, Enter opens the job.
 * @param {KeyboardEvent} event
 * @param {number} slot
 * @param {HTMLCanvasElement | null} canvas
 */
function onKey(event, slot, canvas) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const isHere = choice.value?.slot === slot;
  if (step && canvas) choose(slot, neighbour(canvas, isHere ? (choice.value?.block.id ?? null) : null, step));
  else if (event.key === "ArrowUp" || event.key === "ArrowDown") focusLane(event, event.key === "ArrowUp");
  else if (event.key === "Escape" && isHere) choice.value = null;
  else if (event.key === "Enter" && isHere && choice.value && hasScreen(choice.value.key))
    go(`#/jobs/${choice.value.key}`);
  else return;
  event.preventDefault();
}

/**
 * @param {number} slot
 * @param {ReturnType<typeof neighbour>} found
 */
function choose(slot, found) {
  choice.value = found && { slot, isPinned: true, ...found };
  announce(found ? describe(found.block) : t("fleet.noBlocks"));
}

/**
 * @param {KeyboardEvent} event
 * @param {boolean} isUp
 */
function focusLane(event, isUp) {
  const lane = /** @type {HTMLElement} */ (event.currentTarget).closest(".lane");
  const other = isUp ? lane?.previousElementSibling : lane?.nextElementSibling;
  /** @type {HTMLElement | null | undefined} */ (other?.querySelector(".track"))?.focus();
}
