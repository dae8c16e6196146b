/** The options that new jobs get: their fields, and what of them is sent. The browser remembers them. */

import { requestJson } from "../core/api.js";
import { service } from "../core/service.js";
import { remembered } from "../core/storage.js";
import { computed, signal } from "../vendor/ui.js";

/** @type {import("../vendor/ui.js").Signal<Record<string, unknown>>} */
const values = remembered("options", {});

/** The models of the service; the default one is first. @type {import("../vendor/ui.js").Signal<string[]>} */
export const models = signal([]);

/** Those that differ from the defaults. */
export const changed = computed(() => changedOptions(values.value, defaults(), models.value));

/** @returns {Record<string, unknown>} */
export function defaults() {
  return service.options ?? {};
}

/** @returns {Record<string, unknown>} What a new job is submitted with. */
export function chosenOptions() {
  return { ...changed.value };
}

/**
 * @param {string} name
 * @param {unknown} value `undefined`: the default.
 */
export function setOption(name, value) {
  const { [name]: _, ...others } = values.value;
  values.value = value === undefined ? others : { ...others, [name]: value };
}

export function resetOptions() {
  values.value = {};
}

/** Ask which models there are, unless that is known. */
export async function loadModels() {
  if (models.value.length) return;
  try {
    const { data } = await requestJson("/v1/models");
    const names = data.map((/** @type {{id: string}} */ model) => model.id);
    models.value = names.filter((/** @type {string} */ name) => !service.aliases?.includes(name));
  } catch {
    // The field stays away; the service then uses its default.
  }
}

/**
 * @typedef {"check" | "number" | "text" | "choice"} FieldKind
 * @typedef {object} OptionField
 * @property {string} name As the API names it.
 * @property {FieldKind} kind
 * @property {string[]} [choices] Besides the default.
 * @property {number} [min]
 * @property {number} [max]
 * @property {number} [step]
 */

/** Shown first, in a form of their own. */
export const MAIN = ["language", "task", "model", "profile", "max_line_chars", "prompt", "hotwords"];
/** Jobs always have word times; who speaks is one choice, with a form of its own. */
const HIDDEN = [
  "word_timestamps",
  ...["diarize", "channels", "num_speakers", "min_speakers", "max_speakers", "speaker_names"],
];

/** @type {Record<string, string[]>} */
export const CHOICES = {
  task: ["transcribe", "translate"],
  profile: ["netflix", "bbc", "broadcast", "social"],
  chinese: ["keep", "traditional", "simplified"],
  multilingual: ["false", "true"],
};

/** The service checks the same: these ranges spare the user a refusal. Lowest, highest, step. */
/** @type {Record<string, [number, number, number]>} */
const RANGES = {
  temperature: [0, 1, 0.1],
  beam_size: [1, 20, 1],
  vad_threshold: [0.01, 0.99, 0.01],
  min_speech_ms: [0, 10_000, 1],
  min_silence_ms: [0, 10_000, 1],
  speech_pad_ms: [0, 1000, 1],
  max_line_chars: [10, 200, 1],
  max_lines: [1, 4, 1],
  max_cps: [5, 100, 0.5],
  min_cue_s: [0.1, 5, 0.01],
  max_cue_s: [1, 30, 0.1],
  min_gap_s: [0, 1, 0.001],
  fps: [10, 120, 0.001],
  start_offset_s: [0, 1, 0.01],
  start: [0, 1_000_000, 0.001],
  end: [0, 1_000_000, 0.001],
  num_speakers: [1, 100, 1],
};

/**
 * @param {string} name
 * @param {unknown} initial The default.
 * @returns {OptionField}
 */
export function fieldOf(name, initial) {
  if (CHOICES[name])
    return { name, kind: "choice", choices: CHOICES[name].filter((choice) => choice !== initial) };
  if (typeof initial === "boolean") return { name, kind: "check" };
  const [min, max, step] = RANGES[name] ?? [];
  if (RANGES[name] || typeof initial === "number") return { name, kind: "number", min, max, step };
  return { name, kind: "text" };
}

/**
 * The options that have no place among the main ones.
 * @param {Record<string, unknown>} defaults
 * @returns {OptionField[]}
 */
export function moreFields(defaults) {
  return Object.entries(defaults)
    .filter(([name]) => !MAIN.includes(name) && !HIDDEN.includes(name))
    .map(([name, initial]) => fieldOf(name, initial));
}

/** @typedef {"" | "voices" | "channels"} Who What tells speakers apart. */

/** @param {Record<string, unknown>} options @returns {Who} */
export function whoOf({ diarize, channels }) {
  if (diarize) return "voices";
  return channels === "separate" ? "channels" : "";
}

/**
 * The options that a choice sets. Those that mean nothing with it get their defaults.
 * @param {Who} who
 * @returns {Record<string, unknown>} `undefined`: the default.
 */
export function whoOptions(who) {
  return {
    diarize: who === "voices" || undefined,
    channels: who === "channels" ? "separate" : undefined,
    ...(who !== "voices" && { num_speakers: undefined }),
    ...(who === "" && { speaker_names: undefined }),
  };
}

/**
 * The value of a field, or undefined for the default.
 * @param {OptionField} field
 * @param {string | boolean} input
 * @param {unknown} initial The default.
 * @returns {unknown}
 */
export function inputValue(field, input, initial) {
  const blank = typeof input === "string" && input.trim() === "";
  const value = field.kind === "number" && !blank ? Number(input) : input;
  return blank || value === initial || Number.isNaN(value) ? undefined : value;
}

/**
 * What is sent with a job: values that differ from the defaults, and that the service knows.
 * @param {Record<string, unknown>} values
 * @param {Record<string, unknown>} defaults
 * @param {string[]} models Empty: they are not known yet.
 * @returns {Record<string, unknown>}
 */
export function changedOptions(values, defaults, models) {
  const isChanged = (/** @type {[string, unknown]} */ [name, value]) =>
    name === "model"
      ? !models.length || models.includes(String(value))
      : name in defaults && value !== defaults[name];
  return Object.fromEntries(
    Object.entries(values)
      .filter(([, value]) => value !== undefined)
      .filter(isChanged),
  );
}

/**
 * The languages of recordings by name, in the order of the reader's alphabet.
 * @param {Record<string, string>} languages English names by code.
 * @param {string} reader The reader's language.
 * @returns {[code: string, name: string][]}
 */
export function languagesByName(languages, reader) {
  const names = new Intl.DisplayNames(reader, { type: "language", fallback: "none" });
  return Object.entries(languages)
    .map(
      ([code, english]) =>
        /** @type {[string, string]} */ ([code, capital(names.of(code) ?? english, reader)]),
    )
    .sort(([, one], [, other]) => one.localeCompare(other, reader));
}

/**
 * @param {string} text
 * @param {string} language
 */
function capital(text, language) {
  const [first = "", ...rest] = text;
  return first.toLocaleUpperCase(language) + rest.join("");
}
