/** The texts of the page in the reader's language. */

import { batch, computed, effect, signal } from "../vendor/ui.js";
import { clock } from "./format.js";
import { shared } from "./storage.js";

/** @typedef {keyof typeof import("../texts/en.js").default} TextKey */
/** @typedef {Record<string, string | number>} Values */
/** @typedef {Record<TextKey, string | Record<string, string>>} Texts */

/** @type {Record<string, () => Promise<{default: Texts}>>} */
const LOADERS = {
  en: () => import("../texts/en.js"),
  de: () => import("../texts/de.js"),
  es: () => import("../texts/es.js"),
};

export const LANGUAGE_NAMES = { en: "English", de: "Deutsch", es: "Español" };

/** The language that the reader has chosen; empty: that of the browser. */
export const chosenLanguage = shared("language", "");

const wantedLanguage = computed(() => {
  const wanted = [chosenLanguage.value, ...navigator.languages];
  return wanted.map((code) => code.slice(0, 2)).find((code) => code in LOADERS) ?? "en";
});

/** The language of the texts: the wanted one, once it is loaded. */
export const language = signal("en");

/** @type {import("../vendor/ui.js").Signal<Partial<Texts>>} */
const texts = signal({});
const plurals = computed(() => new Intl.PluralRules(language.value));

effect(() => {
  loadTexts(wantedLanguage.value);
});

effect(() => {
  document.documentElement.lang = language.value;
});

/**
 * Take the texts of a language, unless the reader has chosen another one meanwhile.
 * @param {string} code
 */
export async function loadTexts(code = wantedLanguage.peek()) {
  try {
    const loaded = (await LOADERS[code]()).default;
    if (code !== wantedLanguage.peek()) return;
    batch(() => {
      texts.value = loaded;
      language.value = code;
    });
  } catch {
    // The service cannot be reached: the texts stay as they are.
  }
}

/**
 * What an error of the service says, in the reader's language if the page knows its code or the option at fault.
 * @param {{message: string, code?: string | null, param?: string | null}} error
 * @returns {string}
 */
export function errorText({ message, code, param }) {
  const known = /** @type {Record<string, string> | undefined} */ (texts.value["error.known"]);
  const option = textIfAny(`option.${param}`);
  return known?.[code ?? ""] ?? (option ? t("error.option", { option }) : message);
}

/**
 * What is wrong with a recording, in the reader's language if the page knows its code.
 * @param {import("../job/types.js").RecordingWarning} warning
 * @returns {string}
 */
export function warningText({ code, message, start, end }) {
  const known = /** @type {Record<string, string> | undefined} */ (texts.value["warning.known"]);
  return filled(known?.[code] ?? message, { start: clock(start ?? 0), end: clock(end ?? 0) });
}

/**
 * A text. A component that calls this is drawn again when the language changes.
 * @param {TextKey} key
 * @param {Values} [values] For the `{name}` in it. `count` also chooses between its plural forms.
 * @returns {string}
 */
export function t(key, values = {}) {
  const entry = texts.value[key] ?? key;
  const form =
    typeof entry === "string" ? entry : (entry[plurals.value.select(Number(values.count))] ?? entry.other);
  return filled(form, values);
}

/** A text of a name that the page may not know: a later version of the service has it. @param {string} key */
export function textIfAny(key) {
  return key in texts.value ? t(/** @type {TextKey} */ (key)) : undefined;
}

/** @param {number} part 0 to 1 */
export function percent(part) {
  return new Intl.NumberFormat(language.value, { style: "percent" }).format(part);
}

/**
 * A text with values in the places of their names.
 * @param {string} text
 * @param {Values} values
 */
function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}
