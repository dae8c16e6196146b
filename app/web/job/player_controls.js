/** The buttons of the player. */

import { clock } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { language, t } from "../core/text.js";
import { html, useComputed } from "../vendor/ui.js";
import { toggleLoop } from "./player_keys.js";
import { PlayerMenu } from "./player_menu.js";
import { showFullScreen, togglePictureInPicture } from "./player_picture.js";
import { muted, RATES, showsCaptions, volume } from "./player_settings.js";

/** @typedef {import("./types.js").Session} Session */
/** @typedef {import("./playback.js").Playback} Playback */

/**
 * @typedef {object} ControlsProps
 * @property {Session} session
 * @property {Playback} playback
 * @property {import("./waveform.js").Waveform} waveform
 * @property {HTMLVideoElement | null} media
 * @property {boolean} hasPicture
 */

/** @param {ControlsProps} props */
export function Controls(props) {
  const { session, playback, waveform, media, hasPicture } = props;
  return html`<div class="player-controls">
    <${Transport} playback=${playback} />
    <${Clock} playback=${playback} />
    <span class="space"></span>
    <${Zoom} waveform=${waveform} />
    <${Toggle} class="roomy-only" icon="loop" label=${t("player.loop")} isOn=${playback.loop.value !== null}
      toggle=${() => toggleLoop(session, playback)} />
    ${hasPicture && media && html`<${PictureControls} media=${media} />`}
    <${Rate} playback=${playback} />
    <${Volume} />
    <${PlayerMenu} ...${props} />
  </div>`;
}

/** @param {{playback: Playback}} props */
function Transport({ playback }) {
  const isPlaying = playback.playing.value;
  const label = isPlaying ? t("player.pause") : t("player.play");
  return html`<div class="player-transport">
    <${Button} icon="back5" label=${t("player.back5")} run=${() => playback.skip(-5)} />
    <button class="icon-button player-play" aria-label=${label} title=${label} onClick=${playback.toggle}
      disabled=${!playback.available.value}>
      <${Icon} name=${isPlaying ? "pause" : "play"} />
    </button>
    <${Button} icon="forward5" label=${t("player.forward5")} run=${() => playback.skip(5)} />
  </div>`;
}

/** @param {{playback: Playback}} props */
function Clock({ playback }) {
  const now = useComputed(() => clock(playback.time.value));
  return html`<span class="player-clock numbers"><span>${now}</span> <span class="muted">/ ${clock(playback.duration.value)}</span></span>`;
}

/** @param {{waveform: import("./waveform.js").Waveform}} props */
function Zoom({ waveform }) {
  const isOff = waveform.state.value !== "ready";
  return html`<span class="player-group roomy-only">
    <${Button} icon="zoomOut" label=${t("player.zoomOut")} run=${() => waveform.zoom(-1)} isOff=${isOff} />
    <${Button} icon="zoomIn" label=${t("player.zoomIn")} run=${() => waveform.zoom(1)} isOff=${isOff} />
  </span>`;
}

/** @param {{media: HTMLVideoElement}} props */
function PictureControls({ media }) {
  return html`
    <${Toggle} class="wide-only" icon="captions" label=${t("player.captions")} isOn=${showsCaptions.value}
      toggle=${() => (showsCaptions.value = !showsCaptions.value)} />
    ${
      document.pictureInPictureEnabled &&
      html`<${Button} class="roomy-only" icon="pictureInPicture" label=${t("player.pictureInPicture")}
      run=${() => togglePictureInPicture(media)} />`
    }
    <${Button} class="wide-only" icon="fullscreen" label=${t("player.fullscreen")} run=${() => showFullScreen(media)} />
  `;
}

/** @param {{playback: Playback}} props */
function Rate({ playback }) {
  const rate = playback.rate.value;
  /** @param {Event} event */
  const change = (event) => {
    playback.rate.value = Number(/** @type {HTMLSelectElement} */ (event.target).value);
  };
  const format = new Intl.NumberFormat(language.value);
  return html`<select class="player-rate" aria-label=${t("player.rate")} title=${t("player.rate")} value=${rate} onChange=${change}>
    ${RATES.map((choice) => html`<option value=${choice} selected=${choice === rate}>${format.format(choice)}×</option>`)}
  </select>`;
}

function Volume() {
  const isSilent = muted.value || volume.value === 0;
  /** @param {Event} event */
  const change = (event) => {
    volume.value = Number(/** @type {HTMLInputElement} */ (event.target).value);
    muted.value = false;
  };
  return html`<span class="player-group player-volume">
    <${Toggle} icon=${isSilent ? "muted" : "volume"} label=${t("player.mute")} isOn=${muted.value}
      toggle=${() => (muted.value = !muted.value)} />
    <input type="range" min="0" max="1" step="0.05" value=${isSilent ? 0 : volume.value} aria-label=${t("player.volume")}
      onInput=${change} />
  </span>`;
}

/**
 * @param {{icon: import("../core/icons.js").IconName, label: string, run: () => void, class?: string, isOff?: boolean}} props
 */
function Button({ icon, label, run, class: extra = "", isOff = false }) {
  return html`<button class="icon-button ${extra}" aria-label=${label} title=${label} onClick=${run} disabled=${isOff}>
    <${Icon} name=${icon} />
  </button>`;
}

/**
 * @param {{icon: import("../core/icons.js").IconName, label: string, isOn: boolean, toggle: () => void, class?: string}} props
 */
function Toggle({ icon, label, isOn, toggle, class: extra = "" }) {
  return html`<button class="icon-button ${extra}" aria-label=${label} title=${label} aria-pressed=${isOn} onClick=${toggle}>
    <${Icon} name=${icon} />
  </button>`;
}
