import assert from "node:assert/strict";
import { test } from "node:test";
import * as edits from "../../app/web/job/edits.js";
import { createIds } from "../../app/web/job/saving_version.js";
import { createDocument } from "../../app/web/job/session_document.js";

/** @typedef {import("../../app/web/job/types.js").Segment} Segment */

/**
 * @param {string} id
 * @param {number} start
 * @param {string} text
 * @returns {Segment}
 */
const segment = (id, start, text) => ({ id, start, end: start + 5, text, speaker: null, words: [] });

const [FIRST, SECOND, THIRD] = [
  segment("0-0", 0, "One"),
  segment("0-1", 5, "two"),
  segment("10-0", 10, "three"),
];

/** @param {readonly Segment[]} segments */
function documentOf(segments) {
  const document = createDocument();
  document.receive(segments);
  return document;
}

/** @param {ReturnType<typeof createDocument>} document */
const texts = (document) => document.segments.value.map((other) => other.text);

test("text that comes while someone corrects goes below the corrections", () => {
  const document = documentOf([FIRST, SECOND]);
  document.edit("text", (segments) => edits.setText(segments, "0-0", "Uno"), "0-0");
  document.receive([FIRST, SECOND, THIRD]);
  assert.deepEqual(texts(document), ["Uno", "two", "three"]);
  assert.equal(document.segments.value[1], SECOND);
  document.undo();
  assert.deepEqual(texts(document), ["One", "two", "three"]);
  assert.deepEqual(document.changes.value, []);
});

test("a removed segment stays removed, and an inserted one stays", () => {
  const document = documentOf([FIRST, THIRD]);
  document.edit("remove", (segments) => edits.remove(segments, new Set(["10-0"])), null);
  document.edit("insert", (segments) => edits.insert(segments, 1, 6, 7), null);
  const { id } = document.segments.value[1];
  document.edit("text", (segments) => edits.setText(segments, id, "new"), id);
  document.receive([{ ...FIRST }, { ...THIRD }, segment("20-0", 20, "four")]);
  assert.deepEqual(texts(document), ["One", "new", "four"]);
});

test("corrections are offered, and not put on other text, when a job begins anew", () => {
  const document = documentOf([FIRST, SECOND]);
  document.edit("text", (segments) => edits.setText(segments, "0-0", "Uno"), "0-0");
  document.edit("split", (segments) => edits.setText(edits.insert(segments, 2, 12, 13), "0-1", "dos"), null);
  document.receive([]);
  document.receive([segment("0-0", 0, "Another model")]);
  assert.deepEqual(texts(document), ["Another model"]);
  assert.deepEqual(
    document.lost.value.map((other) => other.text),
    ["Uno", "dos"],
  );
  assert.equal(document.canUndo.value, false);
});

test("what the service has stored replaces what was sent, and later edits stay", () => {
  const document = documentOf([FIRST, SECOND, THIRD]);
  document.edit("text", (segments) => edits.setText(segments, "0-0", "Uno "), "0-0");
  const sent = document.segments.value;
  document.edit("text", (segments) => edits.setText(segments, "0-1", "dos"), "0-1");
  const words = [{ word: "Uno", start: 0, end: 1, probability: 0 }];
  document.stored(sent, [{ ...FIRST, text: "Uno", words }, { ...SECOND }, { ...THIRD }]);
  assert.deepEqual(texts(document), ["Uno ", "dos", "three"]);
  assert.deepEqual(document.segments.value[0].words, words);
  assert.equal(document.segments.value[2], THIRD);
  assert.deepEqual(
    document.changes.value.map((change) => change.id),
    ["0-1"],
  );
  document.undo();
  document.undo();
  assert.deepEqual(texts(document), ["One", "two", "three"]);
});

test("an empty segment is nothing to save, and stays on the page", () => {
  const document = documentOf([FIRST]);
  document.edit("insert", (segments) => edits.insert(segments, 1, 6, 7), null);
  assert.deepEqual(document.changes.value, []);
  document.stored([FIRST], [{ ...FIRST }]);
  assert.equal(document.segments.value.length, 2);
});

test("another revision that the reader takes can be undone", () => {
  const document = documentOf([FIRST, SECOND]);
  const theirs = [FIRST, { ...SECOND, text: "dos" }];
  document.merged(theirs, theirs, "theirs");
  assert.deepEqual([texts(document), document.changes.value], [["One", "dos"], []]);
  document.undo();
  assert.deepEqual(texts(document), ["One", "two"]);
  assert.equal(document.changes.value.length, 1);
});

test("undo takes back the own steps, and leaves what others have saved", () => {
  const document = documentOf([FIRST, SECOND]);
  const text = (/** @type {string} */ id, /** @type {string} */ next) =>
    document.edit("text", (segments) => edits.setText(segments, id, next), id);
  const shown = () => document.segments.value.map((segment) => `${segment.speaker}: ${segment.text}`);
  text(FIRST.id, "mine");
  text(SECOND.id, "mine, too");
  const [first, second] = document.segments.value;
  // A speaker where the text is mine, and another text where it was mine.
  const theirs = [
    { ...first, speaker: "Anna" },
    { ...second, text: "theirs" },
  ];
  assert.ok(document.merged(theirs, theirs, null));
  assert.deepEqual(shown(), ["Anna: mine", "null: theirs"]);
  document.undo();
  assert.deepEqual(shown(), ["Anna: One", "null: theirs"]);
  assert.equal(document.canUndo.value, false);
  document.redo();
  assert.deepEqual(shown(), ["Anna: mine", "null: theirs"]);
});

test("a split is undone as a whole, or not at all", () => {
  const document = documentOf([FIRST, { ...SECOND, text: "two words" }]);
  document.edit("split", (segments) => edits.split(segments, SECOND.id, 4), SECOND.id);
  const theirs = document.segments.value.with(2, { ...document.segments.value[2], text: "theirs" });
  document.merged(theirs, theirs, null);
  assert.equal(document.canUndo.value, false);
  assert.deepEqual(texts(document), ["One", "two", "theirs"]);
});

test("a segment keeps the id of the page, whatever the service calls it", () => {
  const ids = createIds();
  ids.learn([segment("new-1", 5, "new")], [FIRST, segment("0-r1-0", 5, "new")], new Set(["0-0"]));
  assert.equal(ids.sent("new-1"), "0-r1-0");
  assert.deepEqual(
    ids.received([FIRST, segment("0-r1-0", 5, "new")]).map(({ id }) => id),
    ["0-0", "new-1"],
  );
  ids.learn([segment("0-0", 0, "One")], [segment("0-r2-0", 0, "One")], new Set());
  assert.equal(
    ids.sent("0-0"),
    "0-r2-0",
    "a segment that was removed, saved and brought back is new to the service",
  );
});
