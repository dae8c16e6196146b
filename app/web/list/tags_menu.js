/** The tags of the selected recordings: each is given to all of them, or taken off, as one step that can be undone. */

import { request } from "../core/api.js";
import { Menu } from "../core/menu.js";
import { t } from "../core/text.js";
import { toast, toastError } from "../core/toasts.js";
import { NameField } from "../job/speaker_menu.js";
import { html, useState } from "../vendor/ui.js";
import { jobs, refresh } from "./job_store.js";

/** @typedef {import("../job/types.js").Job} Job */

const MOST_OFFERED = 20;

/** @param {{chosen: Job[]}} props */
export function TagsMenu({ chosen }) {
  const [isNew, setNew] = useState(false);
  const leave = () => document.getElementById("history-all")?.focus(); // this ends the field
  const add = (/** @type {string} */ name) => {
    leave();
    if (name.trim()) changeTag(chosen, name.trim(), true);
  };
  if (isNew) {
    return html`<span class="speaker" onKeyDown=${(/** @type {KeyboardEvent} */ { key }) => key === "Escape" && leave()}>
      <${NameField} label=${t("tags.new")} value="" name=${add} end=${() => setNew(false)} /></span>`;
  }
  const known = new Set([...chosen, ...(jobs.value ?? [])].flatMap(({ tags = [] }) => tags));
  const items = [...known].slice(0, MOST_OFFERED).map((tag) => {
    const checked = chosen.every(({ tags }) => tags?.includes(tag));
    return { label: tag, checked, run: () => void changeTag(chosen, tag, !checked) };
  });
  const another = { label: t("tags.new"), icon: "plus", run: () => setNew(true) };
  return html`<${Menu} label=${t("tags.change", { count: chosen.length })} icon="tag" iconOnly items=${[...items, another]} />`;
}

/**
 * Give jobs a tag, or take it off those that have it. What others change meanwhile stays.
 * @param {readonly Job[]} chosen
 * @param {string} tag
 * @param {boolean} isOn
 */
async function changeTag(chosen, tag, isOn) {
  const results = await Promise.allSettled(chosen.map(({ id }) => changeOne(id, tag, isOn)));
  const changed = chosen.filter((_, index) => results[index].status === "fulfilled" && results[index].value);
  const failed = results.find((result) => result.status === "rejected");
  if (failed) toastError(failed.reason);
  const undo = { label: t("history.undo"), run: () => void changeTag(changed, tag, !isOn) };
  const text = t(isOn ? "tags.added" : "tags.removed", { tag, count: changed.length });
  if (changed.length) toast(text, { action: undo });
  await refresh(true); // of old rows too
}

/**
 * @param {string} id
 * @param {string} tag
 * @param {boolean} isOn
 * @returns {Promise<boolean>} Whether it was otherwise.
 */
async function changeOne(id, tag, isOn) {
  const path = `/v1/jobs/${id}`;
  const answer = await request(path, { cache: "no-store" });
  const { tags } = await answer.json();
  if (tags.includes(tag) === isOn) return false;
  const json = { tags: isOn ? [...tags, tag] : tags.filter((/** @type {string} */ other) => other !== tag) };
  const version = answer.headers.get("ETag") ?? "*";
  await request(path, { method: "PATCH", headers: { "If-Match": version }, json });
  return true;
}
