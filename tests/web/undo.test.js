import assert from "node:assert/strict";
import { test } from "node:test";
import * as edits from "../../app/web/job/edits.js";
import { EMPTY_HISTORY, MOST_STEPS, recorded, redone, undone } from "../../app/web/job/session_document.js";
import { randomDocument, randomEdit, randomFrom } from "./random_documents.js";

/** @typedef {import("../../app/web/job/session_document.js").History} History */
/** @typedef {import("../../app/web/job/types.js").Segment} Segment */

/** @type {readonly Segment[]} */
const TALK = randomDocument(randomFrom(1), 5);

/**
 * @param {typeof undone} move
 * @param {History} history
 * @param {readonly Segment[]} segments
 */
function all(move, history, segments) {
  for (;;) {
    const moved = move(history, segments);
    if (!moved) return { history, segments };
    ({ history, segments } = moved);
  }
}

test("undoing everything returns the original objects, and redoing it the last ones", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = randomFrom(seed);
    const original = randomDocument(random);
    let [segments, history] = [original, EMPTY_HISTORY];
    for (let step = 0; step < 60; step++) {
      const { name, segments: after, id } = randomEdit(random, segments);
      if (after === segments) continue;
      history = recorded(history, { name, focusId: id, at: step * 400 }, segments, after);
      segments = after;
    }
    const start = all(undone, history, segments);
    assert.ok(
      start.segments.length === original.length &&
        start.segments.every((other, at) => other === original[at]),
    );
    const end = all(redone, start.history, start.segments);
    assert.ok(
      end.segments.length === segments.length && end.segments.every((other, at) => other === segments[at]),
    );
  }
});

/** @param {[string, string, number][]} typed Segment, text and time in ms. */
function typing(typed) {
  let [segments, history] = [TALK, EMPTY_HISTORY];
  for (const [id, text, at] of typed) {
    const after = edits.setText(segments, id, text);
    history = recorded(history, { name: "text", focusId: id, at }, segments, after);
    segments = after;
  }
  return { segments, history };
}

test("typing in one segment within a short time is one step", () => {
  const { segments, history } = typing([
    ["0-0", "a", 0],
    ["0-0", "ab", 300],
    ["0-0", "abc", 1200],
  ]);
  assert.equal(history.past.length, 1);
  assert.deepEqual(undone(history, segments)?.segments, TALK);
});

test("a pause, and another segment, begin a new step", () => {
  const { history } = typing([
    ["0-0", "a", 0],
    ["0-0", "ab", 1500],
    ["1-0", "x", 1600],
    ["0-0", "abc", 1700],
  ]);
  assert.deepEqual(
    history.past.map((step) => step.focusId),
    ["0-0", "0-0", "1-0", "0-0"],
  );
});

test("typing after an undo is a step of its own, and nothing can be redone then", () => {
  const typed = typing([
    ["0-0", "a", 0],
    ["1-0", "b", 10],
  ]);
  const back = /** @type {NonNullable<ReturnType<typeof undone>>} */ (undone(typed.history, typed.segments));
  assert.equal(back.step.focusId, "1-0");
  const after = edits.setText(back.segments, "0-0", "ac");
  const history = recorded(back.history, { name: "text", focusId: "0-0", at: 20 }, back.segments, after);
  assert.deepEqual([history.past.length, history.future.length], [2, 0]);
});

test("the history is bounded", () => {
  const typed = Array.from(
    { length: MOST_STEPS + 50 },
    (_, index) => /** @type {[string, string, number]} */ (["0-0", `text ${index}`, index * 2000]),
  );
  assert.equal(typing(typed).history.past.length, MOST_STEPS);
});

test("undo leaves text alone that has come since", () => {
  const { segments, history } = typing([["0-0", "a", 0]]);
  const later = { ...TALK[4], id: "later", start: 100, end: 101 };
  const moved = undone(history, [...segments, later]);
  assert.deepEqual(moved?.segments, [...TALK, later]);
});
