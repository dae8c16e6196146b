/** The waveform's place on the screen, with a slider for the keyboard and for screen readers. */

import { clock } from "../core/format.js";
import { t } from "../core/text.js";
import { html, useComputed, useEffect, useRef } from "../vendor/ui.js";

/** @typedef {import("./playback.js").Playback} Playback */
/** @typedef {import("./waveform.js").Waveform} Waveform */

const STEP_S = { ArrowLeft: -5, ArrowDown: -5, ArrowRight: 5, ArrowUp: 5, PageUp: 60, PageDown: -60 };

/** @param {{waveform: Waveform, playback: Playback, media: HTMLMediaElement | null}} props */
export function WaveformBar({ waveform, playback, media }) {
  const container = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => {
    if (media && container.current) return waveform.show(container.current, media);
  }, [waveform, media]);
  return html`<div class="waveform" data-state=${waveform.state.value}>
    <${SeekSlider} playback=${playback} />
    <div class="waveform-canvas" ref=${container} aria-hidden="true" dir="ltr"></div>
    <${PlainBar} waveform=${waveform} playback=${playback} />
  </div>`;
}

/**
 * Where the waveform would be while there is none.
 * @param {{waveform: Waveform, playback: Playback}} props
 */
function PlainBar({ waveform, playback }) {
  const share = useComputed(() =>
    playback.duration.value ? playback.time.value / playback.duration.value : 0,
  );
  if (waveform.state.value === "ready") return null;
  /** @param {MouseEvent} event */
  const click = (event) => {
    const { left, width } = /** @type {HTMLElement} */ (event.currentTarget).getBoundingClientRect();
    playback.seek(((event.clientX - left) / width) * playback.duration.value);
  };
  return html`<div class="waveform-plain" onClick=${click} dir="ltr" aria-hidden="true">
    <div style=${{ width: `${share.value * 100}%` }}></div>
  </div>`;
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
  const change = (event) => playback.seek(Number(/** @type {HTMLInputElement} */ (event.target).value));
  return html`<input class="seek" type="range" min="0" max=${end} value=${seconds.value} aria-label=${t("player.position")}
    aria-valuetext=${t("player.positionOf", { time: clock(seconds.value), duration: clock(end) })} onInput=${change} onKeyDown=${press} />`;
}
