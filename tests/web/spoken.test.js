import "./page.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { heard, unwritten } from "../../app/web/job/spoken.js";

/** @typedef {import("../../app/web/job/types.js").Segment} Segment */

/** @param {number} start @param {number} end @param {string} text @returns {Segment} */
const segment = (start, end, text) => ({ id: `s${start}`, start, end, text, speaker: null, words: [] });

const TEXT = "conversation.item.input_audio_transcription";
const STARTED = { type: "input_audio_buffer.speech_started", item_id: "a", audio_start_ms: 1000 };

/** @param {import("../../app/web/list/live_stream.js").LiveEvent[]} events */
const after = (...events) => events.reduce(heard, new Map());

/** @param {string} delta @param {string} [item_id] */
const delta = (delta, item_id = "a") => ({ type: `${TEXT}.delta`, item_id, delta });

/** @param {string} transcript @param {number} end */
const completed = (transcript, end) => ({
  type: `${TEXT}.completed`,
  item_id: "a",
  transcript,
  words: [{ word: "x", start: 1, end }],
});

test("words grow behind the transcript until they are in it", () => {
  const open = after(STARTED, delta("The first"), delta(" words of it"));
  const shown = unwritten(open, [segment(0, 0.8, "Before.")]);
  assert.deepEqual(
    shown.map(({ text, start, spoken }) => [text, start, spoken]),
    [["The first words of it", 1, "open"]],
  );
  // A long turn comes into the transcript in parts, whose words may be other ones.
  const part = [segment(0, 0.8, "Before."), segment(1.1, 2, "The thirst")];
  assert.deepEqual(
    unwritten(open, part).map(({ text, start }) => [text, start]),
    [["words of it", 2]],
  );
  const done = heard(open, completed("The first words of it.", 3));
  assert.deepEqual(
    unwritten(done, part).map(({ text, spoken }) => [text, spoken]),
    [["words of it.", "final"]],
  );
  assert.deepEqual(unwritten(done, [...part, segment(2.1, 3, "words.")]), []);
});

test("a turn that ends late stays before the next one", () => {
  const next = { ...STARTED, item_id: "b", audio_start_ms: 4000 };
  const turns = after(STARTED, delta("One"), next, delta("Two", "b"), completed("One.", 3));
  assert.deepEqual(
    unwritten(turns, []).map(({ text }) => text),
    ["One.", "Two"],
  );
});

test("a job that goes on with another stream has its own times", () => {
  const turns = after({ ...STARTED, startsAt: 60 }, { ...completed("One.", 3), startsAt: 60 });
  assert.deepEqual(
    unwritten(turns, [segment(0, 50, "Before.")]).map(({ start, end }) => [start, end]),
    [[61, 63]],
  );
});

test("a turn without text leaves nothing", () => {
  assert.deepEqual(unwritten(after(STARTED, { type: `${TEXT}.failed`, item_id: "a" }), []), []);
  assert.deepEqual(unwritten(after(STARTED, { ...completed("", 3), words: [] }), []), []);
});
