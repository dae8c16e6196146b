import assert from "node:assert/strict";
import { test } from "node:test";
import { captionsOf, changes, escapeCue } from "../../app/web/job/captions.js";

/**
 * @param {string} text
 * @param {number} secondsPerWord 0: the words have no times.
 */
function segment(text, secondsPerWord) {
  const words = text.split(" ").map((word, index) => ({
    word,
    start: index * secondsPerWord,
    end: (index + 0.9) * secondsPerWord,
    probability: 1,
  }));
  const end = words.length * (secondsPerWord || 1);
  return { id: "s1", start: 0, end, text, speaker: null, words: secondsPerWord ? words : [] };
}

test("a short segment is one caption", () => {
  assert.deepEqual(captionsOf(segment("Hello there", 1)), [{ start: 0, end: 2, text: "Hello there" }]);
});

test("a segment of many characters is split before a word, at its time", () => {
  const text = Array.from({ length: 40 }, (_, index) => `word${index}`).join(" ");
  const captions = captionsOf(segment(text, 0.1));
  assert.ok(captions.length > 1);
  assert.ok(captions.every((caption) => caption.text.length <= 84));
  assert.equal(captions.map((caption) => caption.text).join(" "), text);
  for (const [index, caption] of captions.entries()) {
    assert.equal(caption.end, captions[index + 1]?.start ?? 4);
  }
});

test("a long segment is split by its time", () => {
  const captions = captionsOf(segment("one two three four five six seven eight nine ten", 1));
  assert.ok(captions.length > 1);
  assert.ok(captions.every((caption) => caption.end - caption.start <= 7));
});

test("text without word times is split where its words would be spoken", () => {
  const text = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");
  const captions = captionsOf(segment(text, 0));
  assert.ok(captions.every((caption) => caption.text.length <= 84 && caption.end - caption.start <= 7.5));
  assert.equal(captions.map((caption) => caption.text).join(" "), text);
  assert.equal(captions.at(-1)?.end, 60);
});

test("words that are corrected do not join captions", () => {
  const long = segment(Array.from({ length: 40 }, (_, index) => `word${index}`).join(" "), 1);
  const corrected = { ...long, text: long.text.replaceAll("word", "Wort"), words: [] };
  assert.ok(captionsOf(corrected).every((caption) => caption.text.length <= 84));
});

test("text without spaces is split where its words are", () => {
  const words = Array.from({ length: 30 }, (_, index) => ({
    word: "字幕表示",
    start: index * 0.2,
    end: index * 0.2 + 0.2,
    probability: 1,
  }));
  const text = words.map(({ word }) => word).join("");
  const captions = captionsOf({ id: "s1", start: 0, end: 6, text, speaker: null, words });
  assert.ok(captions.length > 1);
  assert.equal(captions.map((caption) => caption.text).join(""), text);
});

test("a caption shows text, never marks", () => {
  assert.equal(escapeCue("<b>A & B</b> -->"), "&lt;b&gt;A &amp; B&lt;/b&gt; --&gt;");
});

test("only changed segments get new captions", () => {
  const [a, b, c] = [segment("a", 1), segment("b", 1), segment("c", 1)];
  assert.deepEqual(changes(new Set([a, b]), [b, c]), { removed: [a], added: [c] });
});
