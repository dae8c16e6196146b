/** Values that the browser remembers. A browser that stores nothing forgets them with the page. */

import { effect, signal } from "../vendor/ui.js";

const PREFIX = "whisperfleet.";

/**
 * A signal whose value outlives the page.
 * @template T
 * @param {string} name
 * @param {T} initial
 * @returns {import("../vendor/ui.js").Signal<T>}
 */
export function remembered(name, initial) {
  const value = signal(load(name, initial));
  let isFirst = true;
  effect(() => {
    const current = value.value;
    if (!isFirst) save(name, current);
    isFirst = false;
  });
  return value;
}

/**
 * A remembered value that all tabs share: a change in one of them is one in the others.
 * @template T
 * @param {string} name
 * @param {T} initial
 * @returns {import("../vendor/ui.js").Signal<T>}
 */
export function shared(name, initial) {
  const value = remembered(name, initial);
  globalThis.addEventListener?.("storage", ({ key }) => {
    if (key === PREFIX + name) value.value = load(name, initial);
  });
  return value;
}

/**
 * @template T
 * @param {string} name
 * @param {T} initial Returned if nothing is stored.
 * @returns {T}
 */
export function load(name, initial) {
  try {
    const text = localStorage.getItem(PREFIX + name);
    return text === null ? initial : JSON.parse(text);
  } catch {
    return initial;
  }
}

/**
 * @param {string} name
 * @param {unknown} value `undefined` and null remove it.
 */
export function save(name, value) {
  try {
    if (value === undefined || value === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // Private windows and full disks: the value lasts as long as the page.
  }
}
