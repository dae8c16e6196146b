import assert from "node:assert/strict";
import { test } from "node:test";
import { createDocument } from "../../app/web/job/session_document.js";
import { nameToKeep, speakerBook } from "../../app/web/job/speakers.js";

/** @typedef {import("../../app/web/job/types.js").Segment} Segment */

/**
 * @param {number} start
 * @param {string | null} speaker
 * @param {string[]} others Of its words, one each second from the second one on.
 * @returns {Segment}
 */
const segment = (start, speaker, others = []) => ({
  id: String(start),
  start,
  end: start + 4,
  text: "Text",
  speaker,
  words: others.map((other, place) => ({
    word: "w",
    start: start + 1 + place,
    end: start + 2 + place,
    probability: 1,
    speaker: other,
  })),
});

/** @param {readonly (string | null)[]} speakers */
const talk = (...speakers) => speakers.map((speaker, place) => segment(place * 4, speaker));

/** @param {ReturnType<ReturnType<typeof speakerBook>>} speakers */
const colours = (speakers) =>
  Object.fromEntries(speakers.map(({ name, colour: { hue, pattern } }) => [name, `${hue} ${pattern}`]));

test("speakers are listed as they appear, with their share of all speech", () => {
  const speakers = speakerBook()(talk("Bert", null, "Anna", "Bert"));
  assert.deepEqual(
    speakers.map(({ name, share }) => [name, share]),
    [
      ["Bert", 0.5],
      ["Anna", 0.25],
    ],
  );
  assert.deepEqual(speakerBook()([]), []);
  assert.equal(speakerBook()([{ ...segment(0, "Anna"), end: 0 }])[0].share, 0);
});

test("words of another speaker count for that one", () => {
  const [anna, bert] = speakerBook()([segment(0, "Anna", ["Bert", "Bert", "Anna"])]);
  assert.deepEqual([anna.share, bert.share], [0.5, 0.5]);
});

test("another name keeps the colour, and nobody else's changes", () => {
  const book = speakerBook();
  const before = colours(book(talk("S1", "S2", "S3")));
  const renamed = colours(book(talk("S1", "Anna", "S3")));
  assert.equal(renamed.Anna, before.S2);
  assert.deepEqual([renamed.S1, renamed.S3], [before.S1, before.S3]);
  const first = colours(book(talk("S3", "S1", "Anna")));
  assert.deepEqual(first, renamed, "the order changes, the colours do not");
  assert.deepEqual(colours(book(talk("S3", "S1"))), { S1: before.S1, S3: before.S3 });
});

test("twenty-four speakers can be told apart, and more have colours, too", () => {
  const names = Array.from({ length: 30 }, (_, place) => `S${place + 1}`);
  const all = Object.values(colours(speakerBook()(talk(...names))));
  assert.equal(new Set(all.slice(0, 24)).size, 24);
  assert.equal(all[24], all[0]);
});

test("of several that are one, a chosen name stays", () => {
  assert.equal(nameToKeep(["S1", "S2", "Anna", "Bert"]), "Anna");
  assert.equal(nameToKeep(["S2", "S3"]), "S2");
});

test("speakers of words alone are taken in without a step to undo", () => {
  const document = createDocument();
  document.receive([segment(0, "S1", ["S2"])]);
  const theirs = [segment(0, "S1", ["S3"])];
  document.merged(theirs, theirs, "speaker");
  assert.equal(document.segments.value[0].words[0].speaker, "S3");
  assert.deepEqual(document.changes.value, []);
  assert.equal(document.canUndo.value, false);
});
