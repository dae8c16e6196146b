/** The buttons of the player, and a menu for what finds no place. */

import { fieldValue, IconButton, Select } from "../core/controls.js";
import { clock } from "../core/format.js";
import { Menu } from "../core/menu.js";
import { language, t } from "../core/text.js";
import { html, useComputed } from "../vendor/ui.js";
import { toggleLoop } from "./player_keys.js";
import { isSmall, muted, RATES, showsCaptions, skipsBack, smallPicture, volume } from "./player_settings.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */
/** @typedef {import("./playback.js").Playback} Playback */
/** @typedef {HTMLVideoElement & {webkitEnterFullscreen?: () => void}} Video */

/**
 * @typedef {object} ControlsProps
 * @property {Screen} screen
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
    <${IconButton} icon="back5" label=${t("player.back5")} onClick=${() => playback.skip(-5)} />
    <${IconButton} class="player-play" icon=${isPlaying ? "pause" : "play"} label=${label} onClick=${playback.toggle}
      disabled=${!playback.available.value} />
    <${IconButton} icon="forward5" label=${t("player.forward5")} onClick=${() => playback.skip(5)} />
    <span class="player-clock small numbers"><span style=${{ minWidth: `${whole.length}ch` }}>${now}</span> <span class="muted">/ ${whole}</span></span>
  </div>`;
}

/** @param {ControlsProps} props */
export function Controls(props) {
  const { screen, media, hasPicture } = props;
  return html`<div class="player-controls">
    <${IconButton} class="wide-only" icon="loop" label=${t("player.loop")} aria-pressed=${screen.playback.loop.value !== null}
      onClick=${() => toggleLoop(screen)} />
    ${hasPicture && media && html`<${PictureControls} media=${media} />`}
    <${Rate} playback=${screen.playback} />
    <${Volume} />
    <${PlayerMenu} ...${props} />
  </div>`;
}

/** @param {{media: Video}} props */
function PictureControls({ media }) {
  return html`
    <${IconButton} class="wide-only" icon="captions" label=${t("player.captions")} aria-pressed=${showsCaptions.value} onClick=${toggleCaptions} />
    <${IconButton} class="wide-only" icon="pictureInPicture" label=${t("player.small")} aria-pressed=${isSmall()} onClick=${toggleSize} />
    <${IconButton} class="wide-only" icon="fullscreen" label=${t("player.fullscreen")} onClick=${() => showFullScreen(media)} />
  `;
}

const toggleCaptions = () => (showsCaptions.value = !showsCaptions.value);
const toggleSize = () => (smallPicture.value = !isSmall());

/** @param {ControlsProps} props */
function PlayerMenu({ screen, waveform, media, hasPicture }) {
  const toggleSkip = () => (skipsBack.value = !skipsBack.value);
  const isLooping = screen.playback.loop.value !== null;
  const isReady = waveform.state.value === "ready";
  const film = hasPicture && media;
  const inWindow = document.pictureInPictureEnabled && film;
  /** @type {import("../core/menu.js").MenuItems} */
  const items = [
    { label: t("player.skipsBack"), checked: skipsBack.value, run: toggleSkip },
    { label: t("player.loop"), checked: isLooping, run: () => toggleLoop(screen) },
    isReady && { label: t("player.zoomIn"), icon: "zoomIn", run: () => waveform.zoom(ZOOM_STEPS) },
    isReady && { label: t("player.zoomOut"), icon: "zoomOut", run: () => waveform.zoom(-ZOOM_STEPS) },
    film && { label: t("player.captions"), checked: showsCaptions.value, run: toggleCaptions },
    film && { label: t("player.small"), checked: isSmall(), run: toggleSize },
    film && { label: t("player.fullscreen"), icon: "fullscreen", run: () => showFullScreen(film) },
    inWindow && {
      label: t("player.pictureInPicture"),
      icon: "pictureInPicture",
      run: () => togglePictureInPicture(inWindow),
    },
  ];
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
  const format = new Intl.NumberFormat(language.value);
  const choices = RATES.map((rate) => [rate, `${format.format(rate)}×`]);
  return html`<${Select} class="icon-button player-rate" aria-label=${t("player.rate")} title=${t("player.rate")} value=${playback.rate.value} choices=${choices}
    choose=${(/** @type {string} */ rate) => (playback.rate.value = Number(rate))} />`;
}

function Volume() {
  const isSilent = muted.value || volume.value === 0;
  /** @param {Event} event */
  const change = (event) => {
    volume.value = Number(fieldValue(event));
    muted.value = false;
  };
  return html`<span class="player-volume">
    <${IconButton} icon=${isSilent ? "muted" : "volume"} label=${t("player.mute")} aria-pressed=${muted.value}
      onClick=${() => (muted.value = !muted.value)} />
    <input type="range" min="0" max="1" step="0.05" value=${isSilent ? 0 : volume.value} aria-label=${t("player.volume")}
      onInput=${change} />
  </span>`;
}
