/** What can be done with the segments that are selected together. */

import { announce } from "../core/announcer.js";
import { Icon } from "../core/icons.js";
import { t } from "../core/text.js";
import { html, useEffect } from "../vendor/ui.js";
import { assignSpeaker } from "./segment_actions.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */

/** @param {{screen: Screen}} props */
export function SelectionTools({ screen }) {
  const { selection, current } = screen.view;
  const ids = selection.ids.value;
  const count = ids.size;
  useEffect(() => {
    if (count) announce(t("speakers.selected", { count }));
  }, [count]);
  if (!count) return null;
  const place = () => {
    const id = current.peek();
    return id !== null && ids.has(id) ? id : [...ids][0];
  };
  const leave = () => {
    selection.end();
    screen.view.go(place());
  };
  /** @param {SubmitEvent} event */
  const assign = (event) => {
    event.preventDefault();
    const data = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    assignSpeaker(screen, place(), String(data.get("speaker")));
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    leave();
  };
  return html`<form class="selection-tools" onSubmit=${assign} onKeyDown=${press}>
    <span class="small">${t("speakers.selected", { count })}</span>
    <input class="input" name="speaker" required pattern=".*\\S.*" dir="auto" list="speaker-names" autocomplete="off"
      aria-label=${t("edit.speaker")} placeholder=${t("edit.speaker")} />
    <button class="button primary">${t("edit.setSpeaker")}</button>
    <button type="button" class="icon-button" aria-label=${t("history.unselect")} title=${t("history.unselect")}
      onClick=${leave}><${Icon} name="close" /></button>
  </form>`;
}

/**
 * Ask for the speaker of the selection, or of the current segment.
 * @param {Screen} screen
 */
export function askForSpeaker({ view }) {
  const id = view.current.peek();
  if (view.selection.ids.peek().size)
    /** @type {HTMLElement | null} */ (document.querySelector(".selection-tools input"))?.focus();
  else if (id !== null) view.edit(id, null, "speaker");
}
