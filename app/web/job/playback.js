/** What plays, and where. The player attaches its media element; everything else reads the signals. */

import { signal } from "../vendor/ui.js";

/**
 * @template T
 * @typedef {import("../vendor/ui.js").Signal<T>} Signal
 */

/**
 * @typedef {object} Playback
 * @property {Signal<number>} time Seconds from the recording's start; follows each frame while it plays.
 * @property {Signal<boolean>} playing
 * @property {Signal<number>} duration seconds; 0 until it is known.
 * @property {Signal<number>} rate 0.5 to 3
 * @property {Signal<boolean>} available There is something to play.
 * @property {(seconds: number) => void} seek
 * @property {(from?: number) => void} play From there, or from where it is.
 * @property {() => void} pause
 * @property {() => void} toggle
 * @property {(element: HTMLMediaElement) => () => void} attach Returns a function that detaches it.
 */

/** @returns {Playback} */
export function createPlayback() {
  /** @type {HTMLMediaElement | null} */
  let media = null;
  const [time, duration, rate] = [signal(0), signal(0), signal(1)];
  const [playing, available] = [signal(false), signal(false)];

  /** @param {number} seconds */
  function seek(seconds) {
    time.value = Math.max(0, duration.value ? Math.min(seconds, duration.value) : seconds);
    if (media) media.currentTime = time.value;
  }

  /** @param {number} [from] */
  function play(from) {
    if (from !== undefined) seek(from);
    media?.play().catch(() => {}); // the element's error event says why
  }

  const pause = () => media?.pause();
  const toggle = () => (playing.value ? pause() : play());

  /** @param {HTMLMediaElement} element */
  function attach(element) {
    media = element;
    const listening = new AbortController();
    const options = { signal: listening.signal };
    let frame = 0;
    const update = () => {
      time.value = element.currentTime;
      frame = element.paused ? 0 : requestAnimationFrame(update);
    };
    element.addEventListener("play", () => ((playing.value = true), cancelAnimationFrame(frame), update()), options);
    element.addEventListener("pause", () => (playing.value = false), options);
    element.addEventListener("seeked", () => (time.value = element.currentTime), options);
    element.addEventListener("ratechange", () => (rate.value = element.playbackRate), options);
    element.addEventListener("loadedmetadata", () => ((duration.value = element.duration), (available.value = true)), options);
    return () => {
      listening.abort();
      cancelAnimationFrame(frame);
      if (media === element) media = null;
      playing.value = false;
    };
  }

  return { time, playing, duration, rate, available, seek, play, pause, toggle, attach };
}
