import assert from "node:assert/strict";
import { test } from "node:test";
import { nextRate, withPosition } from "../../app/web/job/player_settings.js";

test("the newest position is kept last, and replaces the one before", () => {
  const positions = withPosition(
    [
      ["a", 10],
      ["b", 20],
    ],
    "a",
    30,
    100,
  );
  assert.deepEqual(positions, [
    ["b", 20],
    ["a", 30],
  ]);
});

test("at most fifty positions are kept", () => {
  /** @type {import("../../app/web/job/player_settings.js").Positions} */
  let positions = [];
  for (let number = 0; number < 60; number += 1)
    positions = withPosition(positions, `job ${number}`, 10, 100);
  assert.equal(positions.length, 50);
  assert.equal(positions[0][0], "job 10");
});

test("a recording that was played to its end, or hardly begun, begins anew", () => {
  assert.deepEqual(withPosition([["a", 50]], "a", 99, 100), []);
  assert.deepEqual(withPosition([["a", 50]], "a", 1, 100), []);
});

test("the speed goes in steps from 0.5 to 3", () => {
  assert.equal(nextRate(1, 1), 1.25);
  assert.equal(nextRate(1, -1), 0.75);
  assert.equal(nextRate(1.1, 1), 1.25);
  assert.equal(nextRate(3, 1), 3);
  assert.equal(nextRate(0.5, -1), 0.5);
});
