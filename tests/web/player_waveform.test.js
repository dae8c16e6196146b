import assert from "node:assert/strict";
import { test } from "node:test";
import {
  heightBetween,
  heightsOf,
  pointsFor,
  speakersOf,
  within,
  zoomed,
} from "../../app/web/job/waveform_levels.js";

test("a waveform asks for a power of two of points, within the service's limit", () => {
  assert.equal(pointsFor(300), 1024);
  assert.equal(pointsFor(2000), 2048);
  assert.equal(pointsFor(8_000_000), 100_000);
  assert.equal(pointsFor(0), 1024);
});

test("zooming goes from all of the recording to a limit, and back", () => {
  const view = { width: 1000, duration: 100 };
  assert.equal(zoomed(10, 2, view), 20);
  assert.equal(zoomed(20, 0.25, view), 10);
  assert.equal(zoomed(399, 2, view), 400);
  const tenHours = 36_000;
  assert.ok(zoomed(200, 8, { width: 1000, duration: tenHours }) * tenHours <= 8_000_000);
  assert.equal(zoomed(1000, 2, { width: 1000, duration: 1 }), 1000); // shorter than the window at the highest zoom
});

test("a view is scrolled no further than the recording", () => {
  assert.deepEqual(within({ scale: 10, left: -5, width: 100 }, 60), { scale: 10, left: 0, width: 100 });
  assert.equal(within({ scale: 10, left: 900, width: 100 }, 60).left, 500);
});

test("talk and its pauses differ, however long a column is: four hours are no block", () => {
  // 250 columns of a minute each: always talk, sometimes with pauses, which leave the loudest sample as it is.
  const levels = Array.from({ length: 250 }, (_, minute) => (minute % 10 < 3 ? 0.12 : 0.25));
  const heights = heightsOf(levels);
  assert.ok(heights[5] - heights[0] > 0.5, `${heights[0]} and ${heights[5]}`);
  assert.deepEqual([...heightsOf([0, 0, 0])], [0, 0, 0]);
  const loud = heightsOf([0.5, 0.5, 0.5, 0]);
  assert.deepEqual([loud[0], loud[3]], [1, 0]);
});

test("a column has the mean height of its time", () => {
  const heights = Float32Array.from([0, 1, 1, 0]);
  assert.equal(heightBetween(heights, 0, 0.5), 0.5);
  assert.equal(heightBetween(heights, 0.25, 0.75), 1);
  assert.equal(heightBetween(heights, 0.3, 0.31), 1);
  assert.equal(heightBetween(heights, 1, 1.1), 0);
});

test("a column belongs to whoever speaks longest in it", () => {
  const segments = [
    ["Anna", 0, 6],
    ["Bert", 6, 9],
    [null, 12, 14],
  ].map(([speaker, start, end], index) => ({
    ...{ id: `${index}`, start: Number(start), end: Number(end), text: "", words: [] },
    speaker: /** @type {string | null} */ (speaker),
  }));
  assert.deepEqual(speakersOf(segments, 0, 5, 4), ["Anna", "Bert", null, null]);
  assert.deepEqual(speakersOf(segments, 5, 1, 5), ["Anna", "Bert", "Bert", "Bert", null]);
});
