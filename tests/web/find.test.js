import assert from "node:assert/strict";
import { test } from "node:test";
import { replaceAll } from "../../app/web/job/edits.js";
import { findMatches } from "../../app/web/job/find.js";

/** @param {string[]} texts */
const document = (...texts) =>
  texts.map((text, index) => ({
    id: `${index}`,
    start: index,
    end: index + 1,
    text,
    speaker: null,
    words: [],
  }));

/**
 * @param {string} text
 * @param {string} query
 * @param {import("../../app/web/job/find.js").FindOptions} [options]
 */
const found = (text, query, options) =>
  findMatches(document(text), query, options).map(({ start, end }) => text.slice(start, end));

test("case and accents matter only if wanted", () => {
  assert.deepEqual(found("Café CAFE cafe\u0301", "cafe"), ["Café", "CAFE", "cafe\u0301"]);
  assert.deepEqual(found("Café CAFE cafe", "cafe", { matchCase: true }), ["cafe"]);
  assert.deepEqual(found("İstanbul", "istanbul"), ["İstanbul"]);
});

test("whole words", () => {
  assert.deepEqual(found("art, part art’s artist", "art", { wholeWord: true }), ["art", "art"]);
  assert.deepEqual(found("今天天气", "天气", { wholeWord: true }), ["天气"]);
});

test("Korean syllables are not taken apart", () => {
  assert.deepEqual(found("가한", "가하"), []);
  assert.deepEqual(found("한국어 한국", "한국"), ["한국", "한국"]);
});

test("matches do not overlap, nothing in a query is special, and an empty one finds nothing", () => {
  assert.deepEqual(found("aaaa", "aa"), ["aa", "aa"]);
  assert.deepEqual(found("a.c abc .*", ".*"), [".*"]);
  assert.deepEqual(found("abc", ""), []);
  assert.deepEqual(found("abc", "\u0301"), []);
});

test("a replacement of all matches leaves none", () => {
  const segments = document("Meyer und meyer", "Niemand", "MEYER 🦊 Meyer");
  const matches = findMatches(segments, "meyer");
  assert.equal(matches.length, 4);
  const after = replaceAll(segments, matches, "Maier");
  assert.deepEqual(
    after.map((segment) => segment.text),
    ["Maier und Maier", "Niemand", "Maier 🦊 Maier"],
  );
  assert.equal(findMatches(after, "meyer").length, 0);
});

test("a text is compared anew only after it has changed", () => {
  const segments = document("Meyer und Söhne", "Niemand", "Meyer 🦊");
  findMatches(segments, "meyer");
  const normalize = String.prototype.normalize;
  let count = 0;
  String.prototype.normalize = function (form) {
    count++;
    return normalize.call(this, form);
  };
  try {
    const changed = segments.with(1, { ...segments[1], text: "Meyer" });
    assert.equal(findMatches(changed, "mey").length, 3);
  } finally {
    String.prototype.normalize = normalize;
  }
  assert.equal(count, 4, "twice each: the query and the changed text");
});
