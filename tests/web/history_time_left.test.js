import assert from "node:assert/strict";
import { test } from "node:test";
import { nextEstimate, roughly, secondsLeft } from "../../app/web/core/time_left.js";

const PROGRESS = {
  stage: "transcribing",
  done_s: 60,
  total_s: 600,
  clips_done: 2,
  clips_total: 20,
  realtime_factor: 10,
};

test("the time left is what is not done, at the speed so far", () => {
  assert.equal(secondsLeft(PROGRESS), 54);
  assert.equal(secondsLeft({ ...PROGRESS, total_s: null }), null);
  assert.equal(secondsLeft({ ...PROGRESS, realtime_factor: null }), null);
  assert.equal(secondsLeft({ ...PROGRESS, done_s: 601 }), 0);
});

test("it counts down, although the speed goes up and down", () => {
  let estimate = nextEstimate(null, 60, 0);
  const shown = [];
  for (const [second, noise] of [4, -5, 6, -3, 5, -6, 2].entries()) {
    estimate = nextEstimate(estimate, 60 - (second + 1) * 2 + noise, (second + 1) * 2);
    shown.push(estimate.left);
  }
  assert.deepEqual(shown, [58, 56, 54, 52, 50, 48, 46]);
});

test("it follows a speed that has really changed, in steps", () => {
  let estimate = nextEstimate(null, 60, 0);
  estimate = nextEstimate(estimate, 120, 2);
  assert.ok(estimate.left > 60 && estimate.left < 120, String(estimate.left));
  for (let second = 4; second <= 20; second += 2) estimate = nextEstimate(estimate, 122 - second, second);
  assert.ok(Math.abs(estimate.left - 102) < 20, String(estimate.left));
});

test("it is never negative", () => {
  assert.equal(nextEstimate({ left: 2, at: 0 }, 0, 10).left, 0);
});

test("times are rough", () => {
  assert.deepEqual(roughly(0), { unit: "seconds", count: 5 });
  assert.deepEqual(roughly(31), { unit: "seconds", count: 35 });
  assert.deepEqual(roughly(58), { unit: "minutes", count: 1 });
  assert.deepEqual(roughly(130), { unit: "minutes", count: 3 });
  assert.deepEqual(roughly(3590), { unit: "hours", count: 1, minutes: 0 });
  assert.deepEqual(roughly(2 * 3600 + 30 * 60), { unit: "hours", count: 2, minutes: 30 });
});
