/** Undo, search, what can be done with a selection, and whether everything is saved. */

import { announce } from "../core/announcer.js";
import { IconButton, onSubmit } from "../core/controls.js";
import { useShortcuts } from "../core/keys.js";
import { t } from "../core/text.js";
import { isSmall } from "../core/window_size.js";
import { html, useEffect } from "../vendor/ui.js";
import { partOfSelection } from "./again.js";
import { goToProblem, joinCue, moveEdge, NUDGE_S, playCue, playedAt, splitCue } from "./cue_actions.js";
import { CueChoice } from "./cue_choice.js";
import { focusField } from "./find_bar.js";
import { SaveStatus } from "./saving_status.js";
import { assignSpeaker, goToUnsure, joinSelected, removeSegments, travel } from "./segment_actions.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */
/** @typedef {import("./find.js").Search} Search */

/** @param {{screen: Screen, search: Search, speakers: unknown, children?: unknown}} props `children`: what stands at its end. */
export function EditToolbar({ screen, search, speakers, children }) {
  const { session } = screen;
  useEditingKeys(screen, search);
  const isEditable = session.editable.value;
  const leave = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape" && !event.defaultPrevented) goToCurrent(screen);
  };
  return html`<div class="toolbar edit-toolbar" role="toolbar" aria-label=${t("edit.toolbar")} onKeyDown=${leave}>
    <${LayoutSwitch} view=${screen.view} />
    ${!isSmall.value && html`<${CueChoice} view=${screen.view} />`}
    ${
      isEditable &&
      html`<${Tool} icon="undo" text="edit.undo" keys="Control+Z" isOff=${!session.canUndo.value} run=${() => travel(screen, "undo")} />
      <${Tool} icon="redo" text="edit.redo" keys="Control+Shift+Z" isOff=${!session.canRedo.value} run=${() => travel(screen, "redo")} />
      <${Tool} icon="unsure" text="edit.nextUnsure" keys="N" run=${() => goToUnsure(screen, 1)} />`
    }
    <${Tool} icon="search" text="find.open" keys="Control+F" run=${() => openSearch(search, "find")} />
    ${speakers}
    <span class="space"></span>
    ${isEditable && html`<${SelectionTools} screen=${screen} />`}
    <${RefusedPlace} screen=${screen} />
    ${(isEditable || session.dirty.value) && html`<${SaveStatus} session=${session} />`}
    ${children}
  </div>`;
}

const LAYOUTS = /** @type {const} */ (["text", "subtitles"]);

/** @param {{view: import("./transcript_view.js").View}} props */
function LayoutSwitch({ view }) {
  /** @param {"text" | "subtitles"} layout */
  const choose = (layout) => {
    view.stop();
    view.layout.value = layout;
  };
  return html`<span class="switch" role="group" aria-label=${t("layout.label")}>
    ${LAYOUTS.map(
      (layout) => html`<button aria-pressed=${view.layout.value === layout} title=${t(`layout.${layout}Hint`)}
        onClick=${() => choose(layout)}>${t(`layout.${layout}`)}</button>`,
    )}
  </span>`;
}

/**
 * @param {{icon: import("../core/icons.js").IconName, text: import("../core/text.js").TextKey, keys?: string, isOff?: boolean, run: () => void}} props
 */
function Tool({ icon, text, keys, isOff = false, run }) {
  const title = keys ? `${t(text)} (${keys.replace("Control", t("edit.control"))})` : t(text);
  return html`<${IconButton} icon=${icon} label=${t(text)} title=${title} data-tool=${text} disabled=${isOff} onClick=${run} />`;
}

/** The segment that the service does not store. @param {{screen: Screen}} props */
function RefusedPlace({ screen }) {
  const id = screen.session.refusal.value?.id;
  if (!id || screen.session.saveState.value !== "refused") return null;
  return html`<button class="button quiet" onClick=${() => screen.view.edit(id)}>${t("edit.showPlace")}</button>`;
}

/** From elsewhere, the arrows lead to the segments. @param {Screen} screen */
function goToCurrent({ view }) {
  const id = view.current.peek() ?? view.list.seen();
  if (id) view.go(id);
}

/**
 * @param {Search} search
 * @param {"find" | "replace"} mode
 */
function openSearch(search, mode) {
  const selected = getSelection()?.toString().trim() ?? "";
  if (selected && selected.length < 100) search.query.value = selected;
  search.mode.value = mode;
  focusField(search); // where it was open already
}

/**
 * @param {Screen} screen
 * @param {Search} search
 */
function useEditingKeys(screen, search) {
  const isEditable = screen.session.editable.value;
  const isSubtitles = screen.view.layout.value === "subtitles";
  /** @param {"start" | "end"} edge */
  const here = (edge) => (/** @type {KeyboardEvent} */ event) =>
    moveEdge(screen, edge, () => playedAt(screen.playback, event));
  const cues = /** @type {import("../core/keys.js").Shortcut[]} */ ([
    { keys: "i", text: "cue.startHere", run: here("start") },
    { keys: "o", text: "cue.endHere", run: here("end") },
    { keys: "F9", text: "cue.startHere", run: here("start"), inFields: true },
    { keys: "F10", text: "cue.endHere", run: here("end"), inFields: true },
    { keys: ",", text: "cue.startEarlier", run: () => moveEdge(screen, "start", (at) => at - NUDGE_S) },
    { keys: ".", text: "cue.startLater", run: () => moveEdge(screen, "start", (at) => at + NUDGE_S) },
    { keys: "-", text: "cue.endEarlier", run: () => moveEdge(screen, "end", (at) => at - NUDGE_S) },
    { keys: "+", text: "cue.endLater", run: () => moveEdge(screen, "end", (at) => at + NUDGE_S) },
    { keys: "p", text: "cue.play", run: () => playCue(screen) },
    { keys: "b", text: "edit.split", run: () => splitCue(screen) },
    { keys: "j", text: "edit.join", run: () => joinCue(screen) },
    { keys: "e", text: "cue.nextProblem", run: () => goToProblem(screen, 1) },
    { keys: "Shift+e", text: "cue.previousProblem", run: () => goToProblem(screen, -1) },
  ]);
  const editing = /** @type {import("../core/keys.js").Shortcut[]} */ ([
    { keys: "Enter", text: "keys.edit" },
    { keys: "Escape", text: "keys.leave" },
    { keys: "Control+Enter", text: "keys.split" },
    { keys: "Backspace", text: "keys.join" },
    { keys: "Alt+ArrowDown", text: "keys.editNext" },
    { keys: "Delete", text: "keys.remove" },
    { keys: "s", text: "edit.setSpeaker", run: () => askForSpeaker(screen) },
    { keys: "1 – 9", text: "edit.setSpeaker" },
    { keys: "Shift+ArrowDown", text: "keys.select" },
    { keys: "Control+z", text: "edit.undo", run: () => travel(screen, "undo"), inFields: true },
    { keys: "Control+Shift+z", text: "edit.redo", run: () => travel(screen, "redo"), inFields: true },
    { keys: "Control+y", text: "edit.redo", run: () => travel(screen, "redo"), inFields: true },
    { keys: "Control+h", text: "find.replaceMode", run: () => openSearch(search, "replace"), inFields: true },
    { keys: "Control+s", text: "edit.save", run: () => void screen.session.save(), inFields: true },
  ]);
  const go = (/** @type {1 | -1} */ direction, isEdited = false) => goToUnsure(screen, direction, isEdited);
  const toUnsure = /** @type {import("../core/keys.js").Shortcut[]} */ ([
    { keys: "n", text: "edit.nextUnsure", run: () => go(1) },
    { keys: "Shift+n", text: "edit.previousUnsure", run: () => go(-1) },
    { keys: "F8", text: "edit.nextUnsure", run: () => go(1, true), inFields: true },
    { keys: "Shift+F8", text: "edit.previousUnsure", run: () => go(-1, true), inFields: true },
  ]);
  const inputs = [screen, search, isEditable, isSubtitles];
  useShortcuts(
    [
      { keys: "ArrowDown", text: "keys.next", run: () => goToCurrent(screen) },
      { keys: "ArrowUp", text: "keys.previous", run: () => goToCurrent(screen) },
      { keys: "Control+f", text: "find.open", run: () => openSearch(search, "find"), inFields: true },
      ...(isEditable ? toUnsure : []),
    ],
    inputs,
    "move",
  );
  useShortcuts(isEditable ? [...editing, ...(isSubtitles ? cues : [])] : [], inputs);
}

/** @param {{screen: Screen}} props */
function SelectionTools({ screen }) {
  const { again, session } = screen;
  const { selection, current } = screen.view;
  const ids = selection.ids.value;
  const count = ids.size;
  const isPart = selection.part.value !== null;
  const text = isPart ? t("speakers.selectedPart") : t("speakers.selected", { count });
  useEffect(() => {
    if (count) announce(text);
  }, [count, text]);
  if (!count) return null;
  const place = () => {
    const id = current.peek();
    return id !== null && ids.has(id) ? id : [...ids][0];
  };
  const leave = () => {
    selection.end();
    screen.view.go(place());
  };
  const assign = onSubmit((fields) => assignSpeaker(screen, place(), String(fields.get("speaker"))));
  const part = again.offered.value ? partOfSelection(session.segments.value, ids) : null;
  const transcribe = () => {
    again.asked.value = part;
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    leave();
  };
  return html`<form class="toolbar selection-tools" onSubmit=${assign} onKeyDown=${press}>
    <span class="small">${text}</span>
    <input class="input" name="speaker" required pattern=".*\\S.*" dir="auto" list="speaker-names" autocomplete="off"
      aria-label=${t("edit.speaker")} placeholder=${t("edit.speaker")} />
    <button class="button primary">${t("edit.setSpeaker")}</button>
    ${!isPart && count > 1 && html`<${Tool} icon="join" text="edit.joinSelected" run=${() => joinSelected(screen)} />`}
    ${part && html`<${Tool} icon="retry" text="again.openPart" run=${transcribe} />`}
    ${!isPart && html`<${Tool} icon="trash" text="edit.remove" keys="Delete" run=${() => removeSegments(screen, place())} />`}
    <${IconButton} icon="close" label=${t("history.unselect")} onClick=${leave} />
  </form>`;
}

/**
 * Ask for the speaker of the selection, or of the current segment.
 * @param {Screen} screen
 */
function askForSpeaker({ view }) {
  const id = view.current.peek();
  if (view.selection.ids.peek().size)
    /** @type {HTMLElement | null} */ (document.querySelector(".selection-tools input"))?.focus();
  else if (id !== null) view.edit(id, null, "speaker");
}
