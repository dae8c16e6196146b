import "./page.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  changedOptions,
  fieldOf,
  inputValue,
  languagesByName,
  moreFields,
  whoOf,
  whoOptions,
} from "../../app/web/list/options.js";

const DEFAULTS = {
  task: "transcribe",
  language: null,
  multilingual: null,
  prompt: null,
  hotwords: null,
  beam_size: 5,
  word_timestamps: false,
  profile: null,
  max_line_chars: "auto",
  max_cps: "auto",
  fps: null,
  chinese: "keep",
  brand_new: "x",
};

test("only options that differ from the defaults are sent", () => {
  const values = { language: "de", task: "transcribe", beam_size: 5, multilingual: true, max_line_chars: 37 };
  assert.deepEqual(changedOptions(values, DEFAULTS, []), {
    language: "de",
    multilingual: true,
    max_line_chars: 37,
  });
});

test("remembered options that the service does not know are left out", () => {
  assert.deepEqual(changedOptions({ gone: 1, model: "large-v3" }, DEFAULTS, ["demo"]), {});
  assert.deepEqual(changedOptions({ model: "large-v3" }, DEFAULTS, ["demo", "large-v3"]), {
    model: "large-v3",
  });
  const unknown = changedOptions({ model: "large-v3" }, DEFAULTS, []);
  assert.deepEqual(unknown, { model: "large-v3" }, "the models are not known yet");
});

test("an input gives a value of the option's type, and none for the default", () => {
  const chars = fieldOf("max_line_chars", "auto");
  assert.equal(inputValue(chars, "42", "auto"), 42);
  assert.equal(inputValue(chars, " ", "auto"), undefined);
  assert.equal(inputValue(fieldOf("beam_size", 5), "5", 5), undefined);
  assert.equal(inputValue(fieldOf("allow_partial", false), true, false), true);
  assert.equal(inputValue(fieldOf("allow_partial", false), false, false), undefined);
  assert.equal(inputValue(fieldOf("prompt", null), "Dr. Meyer", null), "Dr. Meyer");
  assert.equal(inputValue(fieldOf("fps", null), "23.976", null), 23.976);
});

test("each option of the service has a field, those of a newer service too", () => {
  const fields = moreFields(DEFAULTS);
  assert.deepEqual(
    fields.map(({ name, kind }) => [name, kind]),
    [
      ["multilingual", "choice"],
      ["beam_size", "number"],
      ["max_cps", "number"],
      ["fps", "number"],
      ["chinese", "choice"],
      ["brand_new", "text"],
    ],
  );
  assert.deepEqual(fields[4].choices, ["traditional", "simplified"]);
});

test("voices and channels exclude each other, and take along what means nothing without them", () => {
  /** @type {Record<string, unknown>} */
  const voices = { num_speakers: 2, speaker_names: "Ada", ...whoOptions("voices") };
  assert.equal(whoOf(voices), "voices");
  assert.equal(voices.num_speakers, 2);
  const channels = { ...voices, ...whoOptions("channels") };
  assert.equal(whoOf(channels), "channels");
  assert.deepEqual(
    [channels.diarize, channels.num_speakers, channels.speaker_names],
    [undefined, undefined, "Ada"],
  );
  const neither = { ...channels, ...whoOptions("") };
  assert.equal(whoOf(neither), "");
  assert.ok(Object.values(neither).every((value) => value === undefined));
});

test("languages have the reader's names, in the order of the reader's alphabet", () => {
  const languages = { en: "english", de: "german", haw: "hawaiian", es: "spanish" };
  assert.deepEqual(
    languagesByName(languages, "de").map(([, name]) => name),
    ["Deutsch", "Englisch", "Hawaiisch", "Spanisch"],
  );
  assert.equal(languagesByName({ qqx: "unheard" }, "en")[0][1], "Unheard");
});
