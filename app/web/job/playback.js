/** What plays, and where. The player attaches its media element; everything else reads the signals. */

import { effect, signal } from "../vendor/ui.js";
import { chosenRate, skipsBack } from "./player_settings.js";

/**
 * @template T
 * @typedef {import("../vendor/ui.js").Signal<T>} Signal
 */

/** @typedef {{start: number, end: number}} Span Seconds. */
/** @typedef {{id: string} & Span} Region A segment on the waveform. */

/**
 * @callback RegionChange
 * @param {Span} span Where its edges are now.
 * @param {boolean} isDone The reader has let go of the edge.
 * @returns {Span | void} Where the edges may be, if not there.
 */

/**
 * @typedef {object} Playback
 * @property {Signal<number>} time Seconds from the recording's start; follows each frame while it plays.
 * @property {Signal<boolean>} playing
 * @property {Signal<number>} duration seconds; 0 until it is known.
 * @property {Signal<number>} rate 0.5 to 3; set it to play faster.
 * @property {Signal<boolean>} available There is something to play.
 * @property {Signal<Region | null>} loop What is played again and again.
 * @property {Signal<Region | null>} region The segment whose edges can be dragged on the waveform.
 * @property {(segment: Region | null, handlers?: {onChange: RegionChange}) => void} showRegion
 * @property {(span: Span, isDone: boolean) => Span} changeRegion The waveform reports a dragged edge. Returns the
 *   allowed span.
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
  const loop = signal(/** @type {Region | null} */ (null));
  const { region, showRegion, changeRegion } = createRegion();

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
  function attach(element) {
    media = element;
    const detach = listen(element, {
      frame: () => follow(element),
      loaded: () => loaded(element),
      emptied: () => {
        shallPlay ||= playing.value;
        [playing.value, available.value] = [false, false];
      },
      playing: (isPlaying) => {
        // An expired link pauses the element: it goes on with the next source.
        if (playing.value && !isPlaying && element.error) shallPlay = true;
        playing.value = isPlaying;
        if (!isPlaying) stoppedAt = time.value;
      },
      ended: () => ended(element),
    });
    return () => {
      detach();
      if (media === element) media = null;
      [playing.value, available.value] = [false, false];
    };
  }

  return {
    ...{ time, playing, duration, rate: chosenRate, available, loop, region, showRegion, changeRegion },
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

function createRegion() {
  const region = signal(/** @type {Region | null} */ (null));
  /** @type {RegionChange} */
  let onChange = () => {};
  return {
    region,
    /** @type {Playback["showRegion"]} */
    showRegion(segment, handlers) {
      onChange = handlers?.onChange ?? (() => {});
      region.value = segment && { id: segment.id, start: segment.start, end: segment.end };
    },
    /** @type {Playback["changeRegion"]} */
    changeRegion(span, isDone) {
      const allowed = onChange(span, isDone) ?? span;
      if (region.value) region.value = { id: region.value.id, start: allowed.start, end: allowed.end };
      return allowed;
    },
  };
}

/**
 * @param {HTMLMediaElement} element
 * @param {{frame: () => void, loaded: () => void, emptied: () => void, playing: (isPlaying: boolean) => void,
 *   ended: () => void}} on
 * @returns {() => void} Stops listening.
 */
function listen(element, on) {
  const listening = new AbortController();
  const options = { signal: listening.signal };
  let frame = 0;
  const update = () => {
    on.frame();
    frame = element.paused ? 0 : requestAnimationFrame(update);
  };
  const setPlaying = () => {
    on.playing(!element.paused);
    cancelAnimationFrame(frame);
    update();
  };
  for (const type of ["play", "pause"]) element.addEventListener(type, setPlaying, options);
  // Hidden tabs draw no frames.
  for (const type of ["seeked", "timeupdate"]) element.addEventListener(type, on.frame, options);
  element.addEventListener("loadedmetadata", on.loaded, options);
  element.addEventListener("emptied", on.emptied, options);
  element.addEventListener("ended", on.ended, options);
  const stopRate = effect(() => {
    element.playbackRate = chosenRate.value;
  });
  return () => {
    listening.abort();
    stopRate();
    cancelAnimationFrame(frame);
  };
}
