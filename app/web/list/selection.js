/** The selected rows of the list. */

import { computed, effect, signal } from "../vendor/ui.js";
import { jobs } from "./job_store.js";

/** The ids of the selected jobs. @type {import("../vendor/ui.js").Signal<ReadonlySet<string>>} */
export const selected = signal(new Set());

export const selectedJobs = computed(() => (jobs.value ?? []).filter((job) => selected.value.has(job.id)));

/** @type {string | null} */
let anchor = null; // the row clicked last

effect(() => {
  const shown = jobs.value?.map((job) => job.id) ?? [];
  selected.value = stillShown(selected.peek(), shown);
});

/**
 * @param {string} id
 * @param {boolean} isRange Shift is held: the rows since the last click, too.
 */
export function select(id, isRange) {
  const shown = jobs.value?.map((job) => job.id) ?? [];
  selected.value = afterClick(selected.value, shown, id, isRange ? anchor : null);
  anchor = id;
}

/** @param {boolean} isOn */
export function selectAll(isOn) {
  selected.value = new Set(isOn ? jobs.value?.map((job) => job.id) : []);
  anchor = null;
}

/**
 * The selection after a click on a row's box. With `anchor`, all rows between both get the state of the clicked one.
 * @param {ReadonlySet<string>} selected
 * @param {readonly string[]} shown The ids of all rows, in order.
 * @param {string} id
 * @param {string | null} anchor The row clicked before, with Shift.
 * @returns {Set<string>}
 */
export function afterClick(selected, shown, id, anchor) {
  const result = new Set(selected);
  const isOn = !result.has(id);
  const [from, to] = [shown.indexOf(anchor ?? id), shown.indexOf(id)].sort((a, b) => a - b);
  const clicked = from < 0 ? [id] : shown.slice(from, to + 1);
  for (const each of clicked) isOn ? result.add(each) : result.delete(each);
  return result;
}

/**
 * The selection without rows that are no longer shown. The same object if nothing changes.
 * @param {ReadonlySet<string>} selected
 * @param {readonly string[]} shown
 * @returns {ReadonlySet<string>}
 */
export function stillShown(selected, shown) {
  const rows = new Set(shown);
  const left = [...selected].filter((id) => rows.has(id));
  return left.length === selected.size ? selected : new Set(left);
}
