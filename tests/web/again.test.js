/** What the page asks for when a recording, or selected segments, are transcribed again. */

import "./page.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { bodyOf, partOfSelection } from "../../app/web/job/again.js";

const SEGMENTS = [0, 2, 4, 6].map((start) => ({
  id: `${start}`,
  start,
  end: start + 1.5,
  text: "Hello.",
  speaker: null,
  words: [],
}));

test("only segments side by side are a part", () => {
  assert.deepEqual(partOfSelection(SEGMENTS, new Set(["2", "4"])), { start: 2, end: 5.5 });
  assert.equal(partOfSelection(SEGMENTS, new Set(["2", "6"])), null);
  assert.equal(partOfSelection(SEGMENTS, new Set(["gone"])), null);
});

test("a request says what differs from before", () => {
  const job = /** @type {any} */ ({
    language: "en",
    model: "small",
    options: { prompt: "Hi.", hotwords: "Ann", diarize: true },
  });
  const words = { prompt: "Hi.", hotwords: "Ann" };
  const same = { language: "", model: "small", ...words, who: "voices", count: 0, keep: true };
  assert.deepEqual(bodyOf(job, {}, same), { keep_corrections: true });
  assert.deepEqual(bodyOf(job, { start: 1, end: 2 }, { ...same, prompt: "", who: "", language: "en" }), {
    start: 1,
    end: 2,
    prompt: null,
    diarize: false,
    channels: "mix",
    keep_corrections: true,
  });
  const other = { ...same, language: "de", count: 3, model: "large", hotwords: "Bob, Cem" };
  assert.deepEqual(bodyOf(job, {}, other), {
    language: "de",
    model: "large",
    hotwords: "Bob, Cem",
    num_speakers: 3,
    keep_corrections: false,
  });
  const lesson = { ...job, languages: { en: 0.7, de: 0.3 } };
  assert.deepEqual(bodyOf(lesson, {}, { ...same, language: "en" }), {
    language: "en",
    keep_corrections: true,
  });
});
