/** The waveform's place on the screen: to see, to click, and to drag the edges of the segment that is edited. */

import { fieldValue } from "../core/controls.js";
import { clock } from "../core/format.js";
import { t } from "../core/text.js";
import { isDark } from "../shell/theme.js";
import { html, useComputed, useEffect, useRef, useSignalEffect } from "../vendor/ui.js";
import { drawWaveform } from "./waveform_canvas.js";

/** @typedef {import("./playback.js").Playback} Playback */
/** @typedef {import("./waveform.js").Waveform} Waveform */
/** @typedef {{session: import("./types.js").Session, waveform: Waveform, playback: Playback, speakers: import("./transcript_view.js").View["speakers"]}} BarProps */

const STEP_S = { ArrowLeft: -5, ArrowDown: -5, ArrowRight: 5, ArrowUp: 5, PageUp: 60, PageDown: -60 };
const SHORTEST_S = 0.05;

/** @param {BarProps} props */
export function WaveformBar(props) {
  const { waveform, playback } = props;
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => waveform.show(/** @type {HTMLElement} */ (place.current)), [waveform]);
  /** @param {PointerEvent} event */
  const seek = (event) => {
    if (!(event.buttons & 1) || !waveform.view.peek().scale) return;
    const box = /** @type {HTMLElement} */ (event.currentTarget).getBoundingClientRect();
    if (event.type === "pointerdown")
      /** @type {HTMLElement} */ (event.currentTarget).setPointerCapture(event.pointerId);
    playback.seek(waveform.timeAt(event.clientX - box.left));
  };
  useWheel(place, waveform);
  const isReady = waveform.state.value === "ready";
  return html`<div class="waveform" data-state=${waveform.state.value}>
    <${SeekSlider} playback=${playback} />
    <div class="waveform-place" ref=${place} dir="ltr" aria-hidden="true" onPointerDown=${seek} onPointerMove=${seek}>
      ${isReady ? html`<${Picture} ...${props} />` : html`<div class="waveform-plain" />`}
      <${Marks} ...${props} />
    </div>
  </div>`;
}

/** @param {BarProps} props */
function Picture({ session, waveform, playback, speakers }) {
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const played = useComputed(() => Math.round(playback.time.value * waveform.view.value.scale));
  useSignalEffect(() => {
    void isDark.value;
    const [wave, view] = [waveform.wave.value, waveform.view.value];
    if (!wave || !canvas.current) return;
    const time = played.value / view.scale;
    const [segments, names] = [session.segments.value, speakers.value];
    drawWaveform(canvas.current, { ...wave, view, time, segments, speakers: names });
  });
  return html`<canvas ref=${canvas} />`;
}

/**
 * What lies over the waveform: a veil over what is not transcribed, the segment whose edges can be dragged, and the
 * place that plays.
 * @param {BarProps} props
 */
function Marks({ waveform, playback }) {
  const { scale, left, width } = waveform.view.value;
  const x = useComputed(() =>
    Math.round(playback.time.value * waveform.view.value.scale - waveform.view.value.left),
  );
  const region = playback.region.value;
  const done = waveform.done.value * scale - left;
  return html`
    ${done < width && html`<div class="waveform-veil" style=${{ left: `${Math.max(0, done)}px` }} />`}
    ${region && scale > 0 && html`<${Region} region=${region} waveform=${waveform} playback=${playback} />`}
    <div class="waveform-cursor" style=${{ transform: `translateX(${x.value}px)` }} />
  `;
}

/** @param {{region: import("./playback.js").Region, waveform: Waveform, playback: Playback}} props */
function Region({ region, waveform, playback }) {
  const { scale, left } = waveform.view.value;
  /** @param {PointerEvent} event @param {"start" | "end"} side */
  const drag = (event, side) => {
    event.stopPropagation(); // it is no click on the waveform
    const edge = /** @type {HTMLElement} */ (event.currentTarget);
    if (event.type === "pointerdown") return edge.setPointerCapture(event.pointerId);
    if (!edge.hasPointerCapture(event.pointerId)) return;
    const isDone = event.type === "pointerup";
    const box = /** @type {HTMLElement} */ (edge.closest(".waveform-place")).getBoundingClientRect();
    const shown = /** @type {import("./playback.js").Region} */ (playback.region.peek());
    const time = waveform.timeAt(event.clientX - box.left);
    const wanted =
      side === "start"
        ? { start: Math.min(time, shown.end - SHORTEST_S), end: shown.end }
        : { start: shown.start, end: Math.max(time, shown.start + SHORTEST_S) };
    const { start, end } = shown.drag(wanted, isDone) ?? wanted;
    if (playback.region.peek()?.key === shown.key) playback.region.value = { ...shown, start, end };
  };
  /** @param {"start" | "end"} side */
  const edge = (side) => {
    const move = (/** @type {PointerEvent} */ event) => drag(event, side);
    return html`<div class="waveform-edge" data-side=${side} onPointerDown=${move} onPointerMove=${move} onPointerUp=${move} />`;
  };
  const style = {
    left: `${region.start * scale - left}px`,
    width: `${(region.end - region.start) * scale}px`,
  };
  return html`<div class="waveform-region" style=${style}>${edge("start")}${edge("end")}</div>`;
}

/**
 * Zoom and scroll with the wheel.
 * @param {import("../vendor/ui.js").RefObject<HTMLElement | null>} place
 * @param {Waveform} waveform
 */
function useWheel(place, waveform) {
  useEffect(() => {
    const element = /** @type {HTMLElement} */ (place.current);
    /** @param {WheelEvent} event */
    const turn = (event) => {
      const x = event.clientX - element.getBoundingClientRect().left;
      if (event.ctrlKey) waveform.zoom(-event.deltaY / 140, x);
      else if (!waveform.scroll(event.deltaX || event.deltaY)) return;
      event.preventDefault();
    };
    element.addEventListener("wheel", turn, { passive: false });
    return () => element.removeEventListener("wheel", turn);
  }, [waveform]);
}

/**
 * For the keyboard and for screen readers: the waveform itself is a picture.
 * @param {{playback: Playback}} props
 */
function SeekSlider({ playback }) {
  const seconds = useComputed(() => Math.floor(playback.time.value));
  const end = Math.floor(playback.duration.value);
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const step = STEP_S[/** @type {keyof typeof STEP_S} */ (event.key)];
    if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    playback.skip(event.shiftKey ? Math.sign(step) : step);
  };
  /** @param {Event} event */
  const change = (event) => playback.seek(Number(fieldValue(event)));
  return html`<input class="seek" type="range" min="0" max=${end} value=${seconds.value} aria-label=${t("player.position")}
    aria-valuetext=${t("player.positionOf", { time: clock(seconds.value), duration: clock(end) })} onInput=${change} onKeyDown=${press} />`;
}
