/** The waveform on the screen: drawn by wavesurfer.js from the service's peaks, zoomed and scrolled. */

import { RegionsPlugin, WaveSurfer } from "../vendor/wavesurfer.js";
import { createMarks } from "./waveform_marks.js";
import { createRegionView } from "./waveform_region.js";
import { zoomed } from "./waveform_scale.js";

/** @typedef {import("./waveform_peaks.js").Peaks} Peaks */

/**
 * @typedef {object} WaveformView
 * @property {(peaks: Peaks) => void} setPeaks
 * @property {(factor: number, clientX?: number) => void} zoomBy The place at `clientX` stays where it is.
 * @property {(pixels: number) => boolean} scrollBy Returns false if all of the recording fits.
 * @property {HTMLElement} content As wide as all of the recording.
 * @property {() => number} pixels The width of all of the recording.
 * @property {(time: number) => void} setCursor For a recording that is not played.
 * @property {() => void} updateColours
 * @property {ReturnType<typeof createMarks>} marks
 * @property {ReturnType<typeof createRegionView>} region
 * @property {() => void} destroy
 */

/**
 * @param {HTMLElement} container
 * @param {HTMLMediaElement} media
 * @param {Peaks} peaks
 * @param {import("./playback.js").Playback} playback
 * @returns {WaveformView}
 */
export function createView(container, media, peaks, playback) {
  const regions = RegionsPlugin.create();
  const surfer = WaveSurfer.create({
    container,
    media,
    peaks: peaks.channels, // without them it would fetch and decode the recording
    duration: peaks.duration,
    cspNonce: /** @type {HTMLElement | null} */ (document.querySelector("[nonce]"))?.nonce,
    height: "auto",
    normalize: true,
    barWidth: 2,
    barGap: 1,
    barRadius: 1,
    cursorColor: "var(--foreground)",
    cursorWidth: 2,
    hideScrollbar: true,
    autoScroll: false,
    plugins: [regions],
    ...coloursOf(container),
  });
  let { duration } = peaks;
  let zoom = 0;
  surfer.on("interaction", (time) => playback.seek(time));
  followCursor(surfer, () => duration);
  const marks = createMarks(surfer, () => duration);
  const region = createRegionView(surfer, regions, playback);

  const pixels = () => surfer.getWrapper().clientWidth;

  /** @param {number} factor @param {number} [clientX] */
  function zoomBy(factor, clientX) {
    const width = surfer.getWidth();
    const anchor = clientX === undefined ? null : clientX - container.getBoundingClientRect().left;
    const time = anchor === null ? interest() : ((surfer.getScroll() + anchor) / pixels()) * duration;
    zoom = zoomed(zoom, factor, { width, duration });
    surfer.zoom(zoom);
    surfer.setScroll((time / duration) * pixels() - (anchor ?? width / 2));
    marks.draw();
  }

  /** What the reader zooms in to, if the pointer does not say it. */
  function interest() {
    const shown = playback.region.peek();
    return shown ? (shown.start + shown.end) / 2 : playback.time.peek();
  }

  return {
    ...{ marks, region, zoomBy, pixels, content: surfer.getWrapper() },
    setPeaks(finer) {
      duration = finer.duration;
      // The same address: the media element goes on.
      surfer.load(media.currentSrc || media.src, finer.channels, finer.duration);
    },
    scrollBy(distance) {
      if (pixels() <= surfer.getWidth()) return false;
      surfer.setScroll(surfer.getScroll() + distance);
      return true;
    },
    setCursor: (time) => surfer.setTime(time),
    updateColours: () => surfer.setOptions(coloursOf(container)),
    destroy: () => surfer.destroy(),
  };
}

/**
 * Scroll along with what plays, unless the reader has scrolled away from it.
 * @param {WaveSurfer} surfer
 * @param {() => number} duration seconds
 */
function followCursor(surfer, duration) {
  let wasVisible = true;
  /** @param {number} time @param {boolean} isForced */
  const follow = (time, isForced) => {
    const [width, left] = [surfer.getWidth(), surfer.getScroll()];
    const place = (time / duration()) * surfer.getWrapper().clientWidth;
    const isVisible = place >= left && place <= left + width;
    if (!isVisible && (wasVisible || isForced)) surfer.setScroll(place - width / 10);
    wasVisible = isVisible || isForced;
  };
  surfer.on("audioprocess", (time) => follow(time, false));
  surfer.on("seeking", (time) => follow(time, true));
  surfer.on("scroll", () => {
    const place = (surfer.getCurrentTime() / duration()) * surfer.getWrapper().clientWidth;
    wasVisible = place >= surfer.getScroll() && place <= surfer.getScroll() + surfer.getWidth();
  });
}

/**
 * The canvas needs colours; everything else takes them from the style sheet itself.
 * @param {HTMLElement} container
 */
function coloursOf(container) {
  const style = getComputedStyle(container);
  return {
    waveColor: style.getPropertyValue("--wave").trim(),
    progressColor: style.getPropertyValue("--wave-played").trim(),
  };
}
