import "./page.js";
import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.requestAnimationFrame ??= () => 0;
globalThis.cancelAnimationFrame ??= () => {};
const { createPlayback } = await import("../../app/web/job/playback.js");
const { toggleLoop } = await import("../../app/web/job/player_keys.js");
const { skipsBack } = await import("../../app/web/job/player_settings.js");

/** A media element without a browser: it is where it is told to be. */
class Media extends EventTarget {
  currentTime = 0;
  duration = Number.NaN;
  paused = true;
  playbackRate = 1;
  readyState = 0;
  /** @type {{code: number} | null} */
  error = null;

  async play() {
    this.paused = false;
    this.dispatchEvent(new Event("play"));
  }

  pause() {
    this.paused = true;
    this.dispatchEvent(new Event("pause"));
  }

  /** @param {number} seconds */
  load(seconds) {
    [this.duration, this.readyState] = [seconds, 1];
    this.dispatchEvent(new Event("loadedmetadata"));
  }

  empty() {
    [this.currentTime, this.duration, this.readyState, this.paused] = [0, Number.NaN, 0, true];
    this.dispatchEvent(new Event("emptied"));
    this.dispatchEvent(new Event("timeupdate"));
  }

  /** @param {number} seconds */
  reach(seconds) {
    this.currentTime = seconds;
    this.dispatchEvent(new Event("timeupdate"));
  }
}

function start() {
  const [playback, media] = [createPlayback(), new Media()];
  playback.attach(/** @type {any} */ (media));
  return { playback, media };
}

test("a place that is chosen before the sound is there is where it begins", () => {
  const { playback, media } = start();
  playback.play(12);
  assert.equal(media.paused, true);
  media.load(60);
  assert.equal(media.currentTime, 12);
  assert.equal(media.paused, false);
  assert.equal(playback.playing.value, true);
});

test("a second press pauses, also before the element has said that it plays", () => {
  const { playback, media } = start();
  media.load(60);
  media.play = async () => {
    media.paused = false; // its event comes later
  };
  playback.toggle();
  assert.equal(media.paused, false);
  playback.toggle();
  assert.equal(media.paused, true);
});

test("another source goes on at the same place", () => {
  const { playback, media } = start();
  media.load(60);
  playback.play(20);
  media.reach(25);
  media.empty();
  assert.equal(playback.time.value, 25);
  assert.equal(playback.available.value, false);
  media.load(60);
  assert.equal(media.currentTime, 25);
  assert.equal(media.paused, false);
});

test("what an error has paused goes on with the next source", () => {
  const { playback, media } = start();
  media.load(60);
  playback.play(20);
  media.error = { code: 2 };
  media.pause();
  media.error = null;
  media.empty();
  media.load(60);
  assert.equal(media.currentTime, 20);
  assert.equal(media.paused, false);
});

test("a pause is kept when the source changes", () => {
  const { playback, media } = start();
  media.load(60);
  playback.play(20);
  playback.pause();
  media.empty();
  media.load(60);
  assert.equal(media.paused, true);
});

test("after a pause it goes back a little, but not from a place that was chosen meanwhile", () => {
  const { playback, media } = start();
  media.load(60);
  playback.play(20);
  media.reach(30);
  playback.pause();
  playback.play();
  assert.equal(media.currentTime, 28.5);
  playback.pause();
  playback.seek(40);
  playback.play();
  assert.equal(media.currentTime, 40);
});

test("going back after a pause can be turned off", () => {
  const { playback, media } = start();
  skipsBack.value = false;
  media.load(60);
  playback.play(20);
  playback.pause();
  playback.play();
  skipsBack.value = true;
  assert.equal(media.currentTime, 20);
});

test("a loop begins again at its end, and ends when another place is chosen", () => {
  const { playback, media } = start();
  media.load(60);
  playback.play(10);
  playback.loop.value = { key: "s1", start: 10, end: 12 };
  media.reach(12.01);
  assert.equal(media.currentTime, 10);
  playback.seek(11);
  assert.notEqual(playback.loop.value, null);
  playback.seek(30);
  assert.equal(playback.loop.value, null);
});

test("the speed reaches the element, also one that comes later", () => {
  const { playback, media } = start();
  playback.rate.value = 2;
  assert.equal(media.playbackRate, 2);
  const later = start();
  later.media.load(10);
  assert.equal(later.media.playbackRate, 2);
  playback.rate.value = 1;
});

test("a place beyond the end is the end", () => {
  const { playback, media } = start();
  media.load(60);
  playback.seek(100);
  assert.equal(playback.time.value, 60);
  playback.skip(-100);
  assert.equal(playback.time.value, 0);
});

test("what is repeated is what the view has at the playhead, such as a subtitle of a long segment", () => {
  const { playback } = start();
  const places = [
    { key: "s1", start: 0, end: 3 },
    { key: "s1#1", start: 3.1, end: 6 },
  ];
  const screen = /** @type {any} */ ({ playback, view: { places: () => places } });
  playback.seek(3.05);
  toggleLoop(screen);
  assert.deepEqual(playback.loop.value, places[1]);
  assert.equal(playback.time.value, 3.1);
  toggleLoop(screen);
  assert.equal(playback.loop.value, null);
});
