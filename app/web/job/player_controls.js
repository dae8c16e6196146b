/** The buttons of the player, and a menu for what finds no place. */

import { clock } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { Menu } from "../core/menu.js";
import { language, t } from "../core/text.js";
import { html, useComputed } from "../vendor/ui.js";
import { toggleLoop } from "./player_keys.js";
import { isSmall, muted, RATES, showsCaptions, skipsBack, smallPicture, volume } from "./player_settings.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("./playback.js").Playback} Playback */
/** @typedef {HTMLVideoElement & {webkitEnterFullscreen?: () => void}} Video */

/**
 * @typedef {object} ControlsProps
 * @property {Session} session
 * @property {Playback} playback
 * @property {import("./waveform.js").Waveform} waveform
 * @property {Video | null} media
 * @property {boolean} hasPicture
 */

/** Play, skip, and the time. @param {{playback: Playback}} props */
export function Transport({ playback }) {
  const isPlaying = playback.playing.value;
  const label = isPlaying ? t("player.pause") : t("player.play");
  const now = useComputed(() => clock(playback.time.value));
  const whole = clock(playback.duration.value);
  return html`<div class="player-transport">
    <${Button} icon="back5" label=${t("player.back5")} run=${() => playback.skip(-5)} />
    <button class="icon-button player-play" aria-label=${label} title=${label} onClick=${playback.toggle}
      disabled=${!playback.available.value}>
      <${Icon} name=${isPlaying ? "pause" : "play"} />
    </button>
    <${Button} icon="forward5" label=${t("player.forward5")} run=${() => playback.skip(5)} />
    <span class="player-clock small numbers"><span style=${{ minWidth: `${whole.length}ch` }}>${now}</span> <span class="muted">/ ${whole}</span></span>
  </div>`;
}

/** @param {ControlsProps} props */
export function Controls(props) {
  const { session, playback, media, hasPicture } = props;
  return html`<div class="player-controls">
    <${Toggle} class="wide-only" icon="loop" label=${t("player.loop")} isOn=${playback.loop.value !== null}
      toggle=${() => toggleLoop(session, playback)} />
    ${hasPicture && media && html`<${PictureControls} media=${media} />`}
    <${Rate} playback=${playback} />
    <${Volume} />
    <${PlayerMenu} ...${props} />
  </div>`;
}

/** @param {{media: Video}} props */
function PictureControls({ media }) {
  return html`
    <${Toggle} class="wide-only" icon="captions" label=${t("player.captions")} isOn=${showsCaptions.value} toggle=${toggleCaptions} />
    <${Toggle} class="wide-only" icon="pictureInPicture" label=${t("player.small")} isOn=${isSmall()} toggle=${toggleSize} />
    <${Button} class="wide-only" icon="fullscreen" label=${t("player.fullscreen")} run=${() => showFullScreen(media)} />
  `;
}

const toggleCaptions = () => (showsCaptions.value = !showsCaptions.value);
const toggleSize = () => (smallPicture.value = !isSmall());

/** @param {ControlsProps} props */
function PlayerMenu({ session, playback, waveform, media, hasPicture }) {
  const toggleSkip = () => (skipsBack.value = !skipsBack.value);
  /** @type {import("../core/menu.js").MenuItem[]} */
  const items = [
    { label: t("player.skipsBack"), checked: skipsBack.value, run: toggleSkip },
    {
      label: t("player.loop"),
      checked: playback.loop.value !== null,
      run: () => toggleLoop(session, playback),
    },
  ];
  if (waveform.state.value === "ready") {
    items.push(
      { label: t("player.zoomIn"), icon: "zoomIn", run: () => waveform.zoom(ZOOM_STEPS) },
      { label: t("player.zoomOut"), icon: "zoomOut", run: () => waveform.zoom(-ZOOM_STEPS) },
    );
  }
  if (hasPicture && media) {
    items.push(
      { label: t("player.captions"), checked: showsCaptions.value, run: toggleCaptions },
      { label: t("player.small"), checked: isSmall(), run: toggleSize },
      { label: t("player.fullscreen"), icon: "fullscreen", run: () => showFullScreen(media) },
    );
  }
  if (hasPicture && media && document.pictureInPictureEnabled) {
    const run = () => togglePictureInPicture(media);
    items.push({ label: t("player.pictureInPicture"), icon: "pictureInPicture", run });
  }
  return html`<${Menu} label=${t("player.more")} icon="more" iconOnly items=${items} />`;
}

const ZOOM_STEPS = 2; // at once: the menu closes after each

/** @param {Video} video */
function showFullScreen(video) {
  if (video.requestFullscreen)
    video.requestFullscreen().catch(() => {}); // the browser may refuse it
  else video.webkitEnterFullscreen?.(); // iPhones
}

/** @param {Video} video */
function togglePictureInPicture(video) {
  const change = document.pictureInPictureElement
    ? document.exitPictureInPicture()
    : video.requestPictureInPicture();
  change.catch(() => {}); // the system may refuse a second window
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
