/** The texts of the page in the reader's language. */

import de from "../texts/de.js";
import en from "../texts/en.js";
import es from "../texts/es.js";
import { computed, effect } from "../vendor/ui.js";
import { remembered } from "./storage.js";

/** @typedef {keyof typeof en} TextKey */
/** @typedef {Record<string, string | number>} Values */

/** @type {Record<string, Record<TextKey, string | Record<string, string>>>} */
const ALL = { en, de, es };

export const LANGUAGE_NAMES = { en: "English", de: "Deutsch", es: "Español" };

/** The language that the reader has chosen; empty: that of the browser. */
export const chosenLanguage = remembered("language", "");

export const language = computed(() => {
  const wanted = [chosenLanguage.value, ...navigator.languages];
  return wanted.map((code) => code.slice(0, 2)).find((code) => code in ALL) ?? "en";
});

const plurals = computed(() => new Intl.PluralRules(language.value));

effect(() => {
  document.documentElement.lang = language.value;
});

/**
 * A text. A component that calls this is drawn again when the language changes.
 * @param {TextKey} key
 * @param {Values} [values] For the `{name}` in it. `count` also chooses between its plural forms.
 * @returns {string}
 */
export function t(key, values = {}) {
  const entry = ALL[language.value][key] ?? en[key];
  const form =
    typeof entry === "string" ? entry : (entry[plurals.value.select(Number(values.count))] ?? entry.other);
  return form.replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}
