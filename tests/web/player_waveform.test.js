import assert from "node:assert/strict";
import { test } from "node:test";
import { segmentsWithin } from "../../app/web/job/waveform_marks.js";
import { pointsFor, zoomed } from "../../app/web/job/waveform_scale.js";

test("a waveform asks for a power of two of points, within the service's limit", () => {
  assert.equal(pointsFor(300), 1024);
  assert.equal(pointsFor(4000), 2048);
  assert.equal(pointsFor(5000), 4096);
  assert.equal(pointsFor(8_000_000), 100_000);
  assert.equal(pointsFor(0), 1024);
});

test("zooming goes from all of the recording to a limit, and back", () => {
  const view = { width: 1000, duration: 100 };
  assert.equal(zoomed(0, 2, view), 20);
  assert.equal(zoomed(20, 2, view), 40);
  assert.equal(zoomed(20, 0.5, view), 0);
  assert.equal(zoomed(399, 2, view), 400);
  assert.equal(zoomed(0, 0.5, view), 0);
});

test("a long recording is never wider than browsers draw", () => {
  const tenHours = 36_000;
  assert.ok(zoomed(200, 8, { width: 1000, duration: tenHours }) * tenHours <= 8_000_000);
});

test("a recording shorter than the window at the highest zoom fits", () => {
  assert.equal(zoomed(0, 2, { width: 1000, duration: 1 }), 0);
});

test("the segments of a span are found, also one that began before it", () => {
  const segments = [0, 2, 4, 6, 8].map((start) => ({
    ...{ id: `${start}`, start, end: start + 1.5, text: "", speaker: null, words: [] },
  }));
  const ids = (/** @type {number} */ from, /** @type {number} */ to) =>
    segmentsWithin(segments, from, to).map(({ id }) => id);
  assert.deepEqual(ids(3, 6.5), ["2", "4", "6"]);
  assert.deepEqual(ids(3.6, 3.9), []);
  assert.deepEqual(ids(0, 100), ["0", "2", "4", "6", "8"]);
  const [first, ...others] = segments;
  const withLong = [{ ...first, end: 20 }, ...others]; // another speaker
  assert.deepEqual(
    segmentsWithin(withLong, 6, 7).map(({ id }) => id),
    ["0", "6"],
  );
});
