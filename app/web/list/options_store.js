/** The options that new jobs get. The browser remembers them. */

import { requestJson } from "../core/api.js";
import { service } from "../core/service.js";
import { remembered } from "../core/storage.js";
import { computed, signal } from "../vendor/ui.js";
import { changedOptions } from "./options_model.js";

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
