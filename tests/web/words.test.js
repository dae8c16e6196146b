import assert from "node:assert/strict";
import { test } from "node:test";
import { lastStarted, nextUnsure, piecesOf, spokenAt, spokenNow } from "../../app/web/job/words.js";

/**
 * @param {string} id
 * @param {string} text
 * @param {[string, number, number, number][]} words Word, start, end, probability.
 */
function segment(id, text, words) {
  return {
    id,
    start: words[0]?.[1] ?? 0,
    end: words.at(-1)?.[2] ?? 4,
    text,
    speaker: null,
    words: words.map(([word, start, end, probability]) => ({ word, start, end, probability })),
  };
}

const FIRST = segment("a", "The good, old bridge.", [
  ["The", 1, 1.5, 0.9],
  ["good,", 1.5, 2, 0.3],
  ["bridge.", 3, 4, 0.2],
]);
const SECOND = segment("b", "No words", []);
const THIRD = segment("c", "Is it?", [
  ["Is", 6, 6.2, 0.8],
  ["it?", 6.2, 7, 0.1],
]);

test("the pieces of a text are the whole text", () => {
  for (const one of [FIRST, SECOND, THIRD, segment("d", "  ", [])]) {
    assert.equal(
      piecesOf(one)
        .map(({ text }) => text)
        .join(""),
      one.text,
    );
  }
  assert.deepEqual(
    piecesOf(FIRST).map(({ text, start, word }) => [text, start, word?.word.start ?? null]),
    [
      ["The", 0, 1],
      [" ", 3, null],
      ["good,", 4, 1.5],
      [" ", 9, null],
      ["old", 10, null],
      [" ", 13, null],
      ["bridge.", 14, 3],
    ],
  );
});

test("words of scripts without spaces are found", () => {
  const chinese = segment("z", "你好世界。", [
    ["你好", 0, 1, 0.9],
    ["世界。", 1, 2, 0.9],
  ]);
  assert.deepEqual(
    piecesOf(chinese).map(({ text }) => text),
    ["你好", "世界。"],
  );
});

test("a word plays from its start, and a new one from about where it is", () => {
  assert.equal(spokenAt(FIRST, 5), 1.5);
  const time = spokenAt(FIRST, 10);
  assert.ok(time > 2 && time < 3, String(time));
  assert.equal(spokenAt(SECOND, 0), 0);
});

test("what plays is found by its start", () => {
  const startOf = (/** @type {{start: number}} */ { start }) => start;
  const entries = [{ start: 1 }, { start: 2 }, { start: 2 }, { start: 5 }];
  assert.deepEqual(
    [0, 1, 1.9, 2, 4, 5, 99].map((time) => lastStarted(entries, time, startOf)),
    [-1, 0, 0, 2, 2, 3, 3],
  );
  assert.equal(lastStarted([], 1, startOf), -1);
});

test("who speaks longer than another one is spoken still", () => {
  /** @param {string} id @param {number} start @param {number} end */
  const spoken = (id, start, end) => ({ ...segment(id, "Text", []), start, end });
  const segments = [spoken("a", 1, 10), spoken("b", 3, 4), spoken("c", 12, 13)];
  assert.deepEqual(
    [0, 2, 3.5, 5, 11, 12.5, 20].map((time) => spokenNow(segments, time)),
    [-1, 0, 1, 0, 1, 2, 2],
  );
});

test("the next uncertain word is the one after the cursor, and the first one follows the last one", () => {
  const segments = [FIRST, SECOND, THIRD];
  const walk = (/** @type {1 | -1} */ direction, /** @type {number} */ steps) => {
    /** @type {{id: string | null, offset: number}} */
    let from = { id: null, offset: direction > 0 ? -1 : Infinity };
    const seen = [];
    for (let step = 0; step < steps; step++) {
      const word = nextUnsure(segments, from, direction);
      seen.push(word?.text);
      from = { id: word?.id ?? null, offset: word?.start ?? 0 };
    }
    return seen;
  };
  assert.deepEqual(walk(1, 4), ["good,", "bridge.", "it?", "good,"]);
  assert.deepEqual(walk(-1, 4), ["it?", "bridge.", "good,", "it?"]);
});

test("without uncertain words there is none, and a single one is found again from itself", () => {
  assert.equal(nextUnsure([SECOND], { id: "b", offset: 0 }, 1), null);
  assert.equal(nextUnsure([], { id: null, offset: 0 }, 1), null);
  assert.equal(nextUnsure([SECOND, THIRD], { id: "c", offset: 3 }, 1)?.text, "it?");
  assert.equal(nextUnsure([SECOND, THIRD], { id: "c", offset: 3 }, -1)?.text, "it?");
});
