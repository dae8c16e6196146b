/** What plays, and where. The player attaches its media element; everything else reads the signals. */

import { effect, signal } from "../vendor/ui.js";
import { chosenRate, skipsBack } from "./player_settings.js";

/**
 * @template T
 * @typedef {import("../vendor/ui.js").Signal<T>} Signal
 */

/** @typedef {{start: number, end: number}} Span Seconds. */
/**
 * @typedef {{key: string, drag: (span: Span, isDone: boolean) => Span | undefined} & Span} Region What is edited, on the
 *   waveform. `drag`: an edge is dragged to there, and let go if `isDone`; returns where the edges may be, if not there.
 */

/**
 * @typedef {object} Playback
 * @property {Signal<number>} time Seconds from the recording's start; follows each frame while it plays.
 * @property {Signal<boolean>} playing
 * @property {Signal<number>} duration seconds; 0 until it is known.
 * @property {Signal<number>} rate 0.5 to 3; set it to play faster.
 * @property {Signal<boolean>} available There is something to play.
 * @property {Signal<({key: string} & Span) | null>} loop What is played again and again: its key in the transcript.
 * @property {Signal<Region | null>} region
 * @property {(seconds: number) => void} seek
 * @property {(seconds: number) => void} resume Seek to where the recording was left; 0: it was not.
 * @property {Signal<number>} resumedAt That place, in seconds.
 * @property {(seconds: number) => void} skip Forward, or back if negative.
 * @property {(from?: number) => void} play From there, or from where it is.
 * @property {() => void} pause
 * @property {() => void} toggle
 * @property {(element: HTMLMediaElement) => () => void} attach Returns a function that detaches it.
 */

const SKIP_BACK_S = 1.5;
const SAME_PLACE_S = 0.05;

/** @returns {Playback} */
export function createPlayback() {
  /** @type {HTMLMediaElement | null} */
  let media = null;
  let shallPlay = false; // as soon as there is something to play
  let stoppedAt = Number.NaN;
  const [time, duration] = [signal(0), signal(0)];
  const [playing, available] = [signal(false), signal(false)];
  const resumedAt = signal(0);
  const loop = signal(/** @type {Playback["loop"]["value"]} */ (null));
  const region = signal(/** @type {Region | null} */ (null));

  /** @param {number} seconds */
  function seek(seconds) {
    time.value = Math.max(0, duration.value ? Math.min(seconds, duration.value) : seconds);
    const span = loop.value;
    if (span && (time.value < span.start - SAME_PLACE_S || time.value >= span.end)) loop.value = null;
    if (media && isLoaded(media)) media.currentTime = time.value;
  }

  /** @param {number} [from] */
  function play(from) {
    if (from !== undefined) seek(from);
    else if (skipsBack.value && Math.abs(time.value - stoppedAt) < SAME_PLACE_S) {
      seek(Math.max(time.value - SKIP_BACK_S, loop.value?.start ?? 0));
    }
    shallPlay = media !== null && !available.value; // a recording that still comes has no player
    if (!shallPlay) media?.play().catch(() => {}); // the element's error event says why
  }

  function pause() {
    shallPlay = false;
    media?.pause();
  }

  /** @param {HTMLMediaElement} element */
  function follow(element) {
    if (!isLoaded(element)) return; // between two sources its time is 0
    time.value = element.currentTime;
    if (loop.value && !element.paused && element.currentTime >= loop.value.end)
      element.currentTime = loop.value.start;
  }

  /** @param {HTMLMediaElement} element */
  function loaded(element) {
    if (Number.isFinite(element.duration)) duration.value = element.duration;
    if (Math.abs(element.currentTime - time.value) > SAME_PLACE_S) element.currentTime = time.value;
    element.playbackRate = chosenRate.value;
    available.value = true;
    if (shallPlay) element.play().catch(() => {});
    shallPlay = false;
  }

  /** @param {HTMLMediaElement} element */
  function ended(element) {
    stoppedAt = Number.NaN;
    if (!loop.value) return;
    element.currentTime = loop.value.start;
    element.play().catch(() => {});
  }

  /** @param {HTMLMediaElement} element */
  function changed(element) {
    // An expired link pauses the element: it goes on with the next source.
    if (playing.value && element.paused && element.error) shallPlay = true;
    playing.value = !element.paused;
    if (element.paused) stoppedAt = time.value;
  }

  function emptied() {
    shallPlay ||= playing.value;
    [playing.value, available.value] = [false, false];
  }

  /** @param {HTMLMediaElement} element */
  function attach(element) {
    media = element;
    const listening = new AbortController();
    /** @param {string[]} types @param {() => void} act */
    const on = (types, act) => {
      for (const type of types) element.addEventListener(type, act, { signal: listening.signal });
    };
    let frame = 0;
    const update = () => {
      follow(element);
      frame = element.paused ? 0 : requestAnimationFrame(update);
    };
    on(["play", "pause"], () => {
      changed(element);
      cancelAnimationFrame(frame);
      update();
    });
    on(["seeked", "timeupdate"], () => follow(element)); // hidden tabs draw no frames
    on(["loadedmetadata"], () => loaded(element));
    on(["emptied"], emptied);
    on(["ended"], () => ended(element));
    const stopRate = effect(() => {
      element.playbackRate = chosenRate.value;
    });
    return () => {
      listening.abort();
      stopRate();
      cancelAnimationFrame(frame);
      if (media === element) media = null;
      [playing.value, available.value] = [false, false];
    };
  }

  return {
    ...{ time, playing, duration, rate: chosenRate, available, loop, region },
    ...{ seek, play, pause, attach, resumedAt },
    resume: (seconds) => {
      resumedAt.value = seconds;
      if (seconds) seek(seconds);
    },
    skip: (seconds) => seek(time.value + seconds),
    // The element's event comes later than a second press of the key may.
    toggle: () => (shallPlay || media?.paused === false ? pause() : play()),
  };
}

/** @param {HTMLMediaElement} element */
function isLoaded(element) {
  return element.readyState >= 1;
}
