import assert from "node:assert/strict";
import { test } from "node:test";
import { compareRevisions, compareTexts } from "../../app/web/job/revision_diff.js";

/** @param {ReturnType<typeof compareTexts>} parts */
const marked = (parts) =>
  parts.map(({ kind, text }) => ({ same: text, added: `+${text}+`, removed: `-${text}-` })[kind]).join("");

/**
 * @param {string} id
 * @param {number} start
 * @param {string} text
 */
const segment = (id, start, text) => ({ id, start, end: start + 1, text, speaker: null, words: [] });

test("words that differ are marked, and the rest is not", () => {
  assert.equal(marked(compareTexts("the cat sat", "the dog sat")), "the -cat-+dog+ sat");
  assert.equal(marked(compareTexts("the cat", "the big cat")), "the +big +cat");
  assert.equal(marked(compareTexts("all the same", "all the same")), "all the same");
  assert.equal(marked(compareTexts("", "new")), "+new+");
  assert.equal(marked(compareTexts("gone", "")), "-gone-");
});

test("words that change one after the other are one change", () => {
  assert.equal(
    marked(compareTexts("see red house now", "see blue barn now")),
    "see -red house-+blue barn+ now",
  );
});

test("texts without spaces are compared word by word", () => {
  const parts = compareTexts("今天天气很好", "今天天气不好");
  assert.ok(
    parts.some(({ kind, text }) => kind === "same" && text.startsWith("今天")),
    marked(parts),
  );
});

test("the parts give both texts", () => {
  const words = ["a", "b", "c,", "d.", "e"];
  let state = 7;
  const random = () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
  for (let round = 0; round < 300; round++) {
    const [from, to] = [0, 1].map(() =>
      Array.from({ length: Math.floor(random() * 9) }, () => words[Math.floor(random() * words.length)]).join(
        " ",
      ),
    );
    const parts = compareTexts(from, to);
    const without = (/** @type {string} */ kind) =>
      parts
        .filter((part) => part.kind !== kind)
        .map((part) => part.text)
        .join("");
    assert.equal(without("removed"), to);
    assert.equal(without("added"), from);
  }
});

test("very long texts are replaced as a whole", () => {
  const [from, to] = ["x ".repeat(2000), "y ".repeat(2000)];
  const parts = compareTexts(from, to);
  assert.deepEqual(
    parts.map((part) => part.kind),
    ["removed", "added", "same"],
  );
});

test("segments are compared by their ids, in the order of time", () => {
  const before = [segment("1", 0, "one"), segment("2", 1, "two"), segment("4", 3, "four")];
  const shown = [segment("1", 0, "one"), segment("3", 2, "three"), { ...segment("4", 3, "four"), end: 5 }];
  const changes = compareRevisions(shown, before);
  assert.deepEqual(
    changes.map(({ id, kind, isMoved }) => [id, kind, isMoved]),
    [
      ["1", "same", false],
      ["2", "removed", false],
      ["3", "added", false],
      ["4", "changed", true],
    ],
  );
  assert.deepEqual(changes[1].parts, [{ kind: "removed", text: "two" }]);
});

test("a segment whose text differs shows its words", () => {
  const [change] = compareRevisions([segment("1", 0, "the cat")], [segment("1", 0, "the dog")]);
  assert.equal(change.kind, "changed");
  assert.equal(marked(change.parts), "the -dog-+cat+");
});

test("another speaker is no other time", () => {
  const before = segment("1", 0, "hello");
  const [change] = compareRevisions([{ ...before, speaker: "Ben" }], [before]);
  assert.deepEqual(
    [change.kind, change.isMoved, change.speakers],
    ["changed", false, { from: null, to: "Ben" }],
  );
});
