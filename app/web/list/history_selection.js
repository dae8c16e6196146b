/** The selected rows of the list. */

import { computed, effect, signal } from "../vendor/ui.js";
import { jobs } from "./job_store.js";
import { afterClick, stillShown } from "./selection.js";

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
