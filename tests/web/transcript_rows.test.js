import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import "./page.js";
import { carried } from "../../app/web/job/cue_rows.js";
import { directionOf, estimatedHeight, paragraphsOf, rowsOf } from "../../app/web/job/transcript_rows.js";
import { caretAfterChange } from "../../app/web/job/words.js";

/** @param {string} id @param {number} start @param {string} [text] @param {string | null} [speaker] */
const segment = (id, start, text = "Text", speaker = null) => ({
  id,
  start,
  end: start + 2,
  text,
  speaker,
  words: [],
});

test("spans that failed are rows where they are in time", () => {
  const rows = rowsOf(carried([], [segment("a", 1), segment("b", 9)]), [
    { start: 0, end: 1 },
    { start: 4, end: 9 },
    { start: 20, end: 30 },
  ]);
  assert.deepEqual(
    rows.map(({ key }) => key),
    ["failed-0", "a", "failed-4", "b", "failed-20"],
  );
});

test("a speaker is named where another one spoke before", () => {
  const spoken = [
    segment("a", 1, "Text", "Anna"),
    segment("b", 3, "Text", "Anna"),
    segment("c", 5),
    segment("d", 7, "Text", "Anna"),
    segment("e", 9, "Text", "Bert"),
  ];
  const headings = carried([], spoken).map((row) => row.heading);
  assert.deepEqual(headings, ["Anna", null, null, "Anna", "Bert"]);
});

test("a speaker is named again after words of another one inside a segment", () => {
  const word = { word: "Text", start: 1, end: 2, probability: 1, speaker: "Bert" };
  const spoken = [
    { ...segment("a", 1, "Text", "Anna"), words: [word] },
    segment("b", 3, "Text", "Anna"),
    segment("c", 5, "Text", "Anna"),
  ];
  assert.deepEqual(
    carried([], spoken).map((row) => row.heading),
    ["Anna", "Anna", null],
  );
});

test("a job may have failed spans alone", () => {
  assert.deepEqual(
    rowsOf([], [{ start: 0, end: 5 }]).map(({ key }) => key),
    ["failed-0"],
  );
});

test("longer text, wider characters and a new speaker make a row higher", () => {
  const [row] = rowsOf(carried([], [segment("a", 0, "word ".repeat(40))]), []);
  const [short] = rowsOf(carried([], [segment("a", 0)]), []);
  const [spoken] = rowsOf(carried([], [segment("a", 0, "Text", "Anna")]), []);
  const [chinese] = rowsOf(carried([], [segment("a", 0, "文".repeat(200))]), []);
  assert.ok(estimatedHeight(row, 400) > estimatedHeight(row, 1000));
  assert.ok(estimatedHeight(row, 1000) > estimatedHeight(short, 1000));
  assert.ok(estimatedHeight(chinese, 1000) > estimatedHeight(row, 1000));
  assert.ok(estimatedHeight(spoken, 1000) > estimatedHeight(short, 1000));
});

test("the layout's direction is that of the language", () => {
  assert.deepEqual(["ar", "he", "fa", "ur", "en", "zh", "", null].map(directionOf), [
    "rtl",
    "rtl",
    "rtl",
    "rtl",
    "ltr",
    "ltr",
    "ltr",
    "ltr",
  ]);
  assert.equal(directionOf("yo"), "ltr");
});

test("after an undo the caret is behind the change", () => {
  assert.equal(caretAfterChange("one two three", "one three"), 3);
  assert.equal(caretAfterChange("one three", "one two three"), 7);
  assert.equal(caretAfterChange("", "one"), 3);
  assert.equal(caretAfterChange("same", "same"), 0);
});

for (const { about, segments, failed, paragraphs } of JSON.parse(
  readFileSync(new URL("../data/paragraphs.json", import.meta.url), "utf8"),
)) {
  test(`paragraphs as those of documents: ${about}`, () => {
    const spoken = segments.map(
      (/** @type {any} */ { repeat = 1, text, ...rest }, /** @type {number} */ index) => ({
        ...rest,
        id: String(index),
        text: text.repeat(repeat),
        words: [],
      }),
    );
    const job = /** @type {any} */ ({ language: "en" });
    const counts = paragraphsOf(spoken, failed, job).flatMap(({ segments }) =>
      segments ? [segments.length] : [],
    );
    assert.deepEqual(counts, paragraphs);
  });
}
