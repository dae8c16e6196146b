import assert from "node:assert/strict";
import { test } from "node:test";
import * as edits from "../../app/web/job/edits.js";
import { faults, LENGTH_S, oneOf, randomDocument, randomEdit, randomFrom } from "./random_documents.js";

/** @typedef {import("../../app/web/job/types.js").Segment} Segment */

/** @param {string} text @param {number} start */
function wordsOf(text, start) {
  const words = text.split(" ");
  return words.map((word, index) => ({
    word,
    start: start + index,
    end: start + index + 0.8,
    probability: 0.9,
  }));
}

/**
 * @param {string} id
 * @param {number} start
 * @param {string} text One word for each second.
 * @param {Partial<Segment>} [rest]
 * @returns {Segment}
 */
function segment(id, start, text, rest = {}) {
  const words = wordsOf(text, start);
  return { id, start, end: start + words.length, text, speaker: null, words, ...rest };
}

const TALK = [
  segment("a", 0, "The quick brown fox."),
  segment("b", 5, "It jumps."),
  segment("c", 8, "Over the dog."),
];

test("random corrections never make what the service refuses, and leave other segments alone", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = randomFrom(seed);
    let segments = randomDocument(random);
    assert.deepEqual(faults(segments), []);
    for (let step = 0; step < 80; step++) {
      const { name, segments: after } = randomEdit(random, segments);
      assert.deepEqual(faults(after), [], `seed ${seed}, step ${step}: ${name}`);
      const before = new Set(segments);
      const touched = after.filter((other) => !before.has(other)).length;
      if (name !== "replace") assert.ok(touched <= 2, `${name} made ${touched} segments anew`);
      segments = after;
    }
  }
});

test("words that stay in a changed text keep their objects", () => {
  const [changed, ...rest] = edits.setText(TALK, "a", "The very quick red fox.");
  assert.deepEqual(
    changed.words.map((word) => word.word),
    ["The", "quick", "fox."],
  );
  assert.equal(changed.words[2], TALK[0].words[3]);
  assert.ok(rest.every((other, index) => other === TALK[index + 1]));
});

test("a text of a script without spaces keeps the words around a change", () => {
  const words = ["今天", "天气", "很好"].map((word, index) => ({
    word,
    start: index,
    end: index + 1,
    probability: 1,
  }));
  const talk = [{ id: "a", start: 0, end: 3, text: "今天天气很好", speaker: null, words }];
  const [changed] = edits.setText(talk, "a", "今天的天气不好");
  assert.deepEqual(changed.words, [words[0], words[1]]);
});

test("line breaks become spaces, and control characters go", () => {
  assert.equal(edits.setText(TALK, "b", "It\r\njumps\u0007.")[1].text, "It jumps.");
});

test("a text that does not change leaves the document the same", () => {
  assert.equal(edits.setText(TALK, "b", "It jumps."), TALK);
  assert.equal(edits.setText(TALK, "unknown", "x"), TALK);
});

test("times stop at the neighbours, at each other and at the ends of the recording", () => {
  const times = (/** @type {Parameters<typeof edits.setTimes>} */ ...args) => {
    const { start, end } = /** @type {Segment} */ (
      edits.setTimes(...args).find((other) => other.id === args[1])
    );
    return [start, end];
  };
  assert.deepEqual(times(TALK, "b", 1, 20, 12), [4, 8]);
  assert.deepEqual(times(TALK, "a", -3, 2, 12), [0, 2]);
  assert.deepEqual(times(TALK, "c", 9, 99, 12), [9, 12]);
  assert.deepEqual(times(TALK, "b", 6, 5.5, 12), [6, 6.05]);
  const other = TALK.with(2, { ...TALK[2], speaker: "Ada" });
  assert.deepEqual(times(other, "b", 5, 9, 12), [5, 9], "another speaker may talk at the same time");
});

test("a split goes between the words around the place, and each part keeps its words", () => {
  const [first, second] = edits.split(TALK, "a", 10);
  assert.deepEqual([first.text, first.end, first.words.length], ["The quick", 1.9, 2]);
  assert.deepEqual([second.text, second.start, second.end, second.words.length], ["brown fox.", 1.9, 4, 2]);
  assert.match(second.id, /^new-/);
});

test("a split without words goes by the share of the text, and one within a word by its share of the word", () => {
  const bare = [{ ...TALK[0], words: [] }];
  assert.equal(edits.split(bare, "a", 10)[0].end, 2);
  const [first, second] = edits.split(TALK, "a", 6);
  assert.deepEqual([first.text, first.end, second.text], ["The qu", 1.32, "ick brown fox."]);
  assert.deepEqual([first.words.length, second.words.length], [1, 2]);
});

test("no split leaves an empty part", () => {
  for (const offset of [-1, 0, 20, 99]) assert.equal(edits.split(TALK, "a", offset), TALK);
});

test("corrections keep the language of a segment, and that of the first of joined ones", () => {
  const spoken = TALK.map((one, index) => ({ ...one, ...(index === 1 && { language: "fr" }) }));
  /** @param {readonly Segment[]} segments */
  const languages = (segments) => segments.map(({ language }) => language);
  assert.deepEqual(languages(edits.split(spoken, "b", 3)), [undefined, "fr", "fr", undefined]);
  assert.deepEqual(languages(edits.join(spoken, "b")), [undefined, "fr"]);
  assert.deepEqual(languages(edits.insert(spoken, 2, 7, 8)), [undefined, "fr", "fr", undefined]);
});

test("joined texts have a space, but not in scripts without spaces", () => {
  const [joined, rest] = edits.join(TALK, "a");
  assert.deepEqual([joined.text, joined.end, joined.words.length], ["The quick brown fox. It jumps.", 7, 6]);
  assert.equal(rest, TALK[2]);
  const unspaced = ["这是一只猫。", "它在跑", "สวัสดี", "한국어", "말"].map((text, index) =>
    segment(`${index}`, index, text),
  );
  assert.equal(edits.join(unspaced, "0")[0].text, "这是一只猫。它在跑");
  assert.equal(edits.join(unspaced, "1")[1].text, "它在跑สวัสดี");
  assert.equal(edits.join(unspaced, "3")[3].text, "한국어 말");
  assert.equal(edits.join(TALK, "c"), TALK, "the last one has no next");
});

test("split and join bring back text, times and words", () => {
  const random = randomFrom(7);
  for (const original of randomDocument(random).filter((other) => other.text.includes(" "))) {
    const offset = oneOf(random, [...original.text.matchAll(/ /g)]).index;
    const [joined] = edits.join(edits.split([original], original.id, offset), original.id);
    const isSpaced = !/[\u0e00-\u9fff] |\s[\u0e00-\u9fff]/.test(original.text.slice(offset - 1, offset + 2));
    if (isSpaced) assert.deepEqual(joined, original);
  }
});

test("an inserted segment gets the free time, the speaker before it and no text", () => {
  const [, added] = edits.insert(TALK, 1, 3, 9, 12);
  assert.deepEqual([added.start, added.end, added.text, added.speaker], [4, 5, "", null]);
  assert.equal(edits.insert([segment("a", 0, "One two"), segment("b", 2, "three")], 1, 1, 3, 12).length, 2);
  assert.equal(edits.insert([], 0, 3, 5, LENGTH_S)[0].end, 5);
});

test("a speaker who talks already then ends when the next segment begins", () => {
  const talk = [segment("a", 0, "One two three"), segment("b", 1, "four five", { speaker: "Ada" })];
  const [first, second] = edits.setSpeakers(talk, new Set(["b"]), null);
  assert.deepEqual([first.end, second.start, second.end, second.speaker], [1, 1, 3, null]);
  assert.equal(edits.setSpeakers(talk, new Set(["b"]), "  Ada "), talk);
});

test("several segments get a speaker, and one who talks twice at once ends where the next begins", () => {
  const talk = [
    segment("a", 0, "One two three"),
    segment("b", 1, "four five", { speaker: "Ada" }),
    segment("c", 6, "six", { speaker: "Ada" }),
  ];
  const after = edits.setSpeakers(talk, new Set(["a", "b"]), " Bob ");
  assert.deepEqual(
    after.map(({ speaker, end }) => [speaker, end]),
    [
      ["Bob", 1],
      ["Bob", talk[1].end],
      ["Ada", talk[2].end],
    ],
  );
  assert.equal(after[2], talk[2]);
  assert.equal(edits.setSpeakers(after, new Set(["a", "b"]), "Bob"), after);
});

test("the second part of a split segment has the speaker of its first word", () => {
  const words = ["One", "two", "three"].map((word, place) => ({
    word,
    start: place,
    end: place + 0.8,
    probability: 1,
    speaker: place ? "Bob" : "Ada",
  }));
  const talk = [{ ...segment("a", 0, "One two three"), end: 3, speaker: "Ada", words }];
  const parts = edits.split(talk, "a", 4);
  assert.deepEqual(
    parts.map(({ text, speaker }) => [text, speaker]),
    [
      ["One", "Ada"],
      ["two three", "Bob"],
    ],
  );
  // Once corrected, a segment has one speaker, as in the service.
  const corrected = [
    ...parts,
    ...edits.setText(talk, "a", "One two"),
    ...edits.setSpeakers(talk, new Set(["a"]), "Cem"),
  ];
  assert.ok(corrected.every((part) => part.words.length && part.words.every((word) => !("speaker" in word))));
});

test("replacing keeps the words around each match", () => {
  const matches = [
    { id: "a", start: 4, end: 9 },
    { id: "c", start: 5, end: 8 },
  ];
  const after = edits.replaceAll(TALK, matches, "slow");
  assert.deepEqual(
    after.map((other) => other.text),
    ["The slow brown fox.", "It jumps.", "Over slow dog."],
  );
  assert.deepEqual(
    after[0].words.map((word) => word.word),
    ["The", "brown", "fox."],
  );
  assert.equal(after[1], TALK[1]);
  assert.equal(edits.replaceAll(TALK, [], "x"), TALK);
});

test("what is cut out has segments of its own", () => {
  const texts = (/** @type {ReturnType<typeof edits.cutOut>} */ { segments, ids }) =>
    segments.map(({ id, text }) => (ids.has(id) ? `[${text}]` : text));
  const cut = (/** @type {string[]} */ ids, /** @type {number} */ start, /** @type {number} */ end) =>
    texts(edits.cutOut(TALK, new Set(ids), start, end));
  assert.deepEqual(cut(["a"], 4, 9), ["The", "[quick]", "brown fox.", "It jumps.", "Over the dog."]);
  assert.deepEqual(cut(["a", "b", "c"], 10, 4), ["The quick", "[brown fox.]", "[It jumps.]", "[Over]", "the dog."]); // biome-ignore format: a row
  assert.deepEqual(cut(["b", "c"], 0, 13), ["The quick brown fox.", "[It jumps.]", "[Over the dog.]"]);
});
