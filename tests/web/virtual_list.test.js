import assert from "node:assert/strict";
import { test } from "node:test";
import { offsetsOf, rangeFor, rowAt, rowsToDraw } from "../../app/web/job/virtual_list.js";

const KEYS = ["a", "b", "c", "d"];

/** @param {number} count @param {number} height */
function evenOffsets(count, height) {
  return Float64Array.from({ length: count + 1 }, (_, index) => index * height);
}

test("measured heights count, and estimates stand for the others", () => {
  const measured = new Map([["b", 50]]);
  assert.deepEqual([...offsetsOf(KEYS, measured, (index) => 10 + index)], [0, 10, 60, 72, 85]);
});

test("the row at a height is found, also beyond the edges and at borders", () => {
  const offsets = Float64Array.from([0, 10, 60, 72, 85]);
  const found = [-5, 0, 9.9, 10, 59, 60, 84, 85, 1000].map((y) => rowAt(offsets, y));
  assert.deepEqual(found, [0, 0, 0, 1, 1, 2, 3, 3, 3]);
  assert.equal(rowAt(Float64Array.from([0]), 5), -1);
});

test("only rows near the viewport are drawn, however long the list is", () => {
  const range = rangeFor(evenOffsets(100_000, 40), { top: 400_000, bottom: 400_800 }, 400, {
    first: 0,
    last: 20,
  });
  assert.deepEqual(range, { first: 9990, last: 10_030 });
});

test("a short scroll draws nothing anew, and a longer one does before the margin is used up", () => {
  const offsets = evenOffsets(1000, 40);
  const drawn = rangeFor(offsets, { top: 4000, bottom: 4800 }, 400, { first: 0, last: 20 });
  assert.equal(rangeFor(offsets, { top: 4100, bottom: 4900 }, 400, drawn), drawn);
  const next = rangeFor(offsets, { top: 4300, bottom: 5100 }, 400, drawn);
  assert.deepEqual(next, { first: 97, last: 137 });
});

test("a list that has become shorter is drawn anew", () => {
  const drawn = { first: 90, last: 120 };
  assert.deepEqual(rangeFor(evenOffsets(50, 40), { top: 1200, bottom: 2000 }, 400, drawn), {
    first: 20,
    last: 49,
  });
});

test("rows that were drawn for a jump do not stay", () => {
  const range = rangeFor(evenOffsets(1000, 40), { top: 4000, bottom: 4800 }, 400, { first: 0, last: 900 });
  assert.deepEqual(range, { first: 90, last: 130 });
});

test("the row with the keyboard is drawn wherever it is", () => {
  assert.deepEqual(rowsToDraw({ first: 3, last: 5 }, -1), [3, 4, 5]);
  assert.deepEqual(rowsToDraw({ first: 3, last: 5 }, 1), [1, 3, 4, 5]);
  assert.deepEqual(rowsToDraw({ first: 3, last: 5 }, 4), [3, 4, 5]);
  assert.deepEqual(rowsToDraw({ first: 3, last: 5 }, 9), [3, 4, 5, 9]);
  assert.deepEqual(rowsToDraw({ first: -1, last: -1 }, -1), []);
});
