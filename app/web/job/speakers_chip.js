/** One speaker of the panel. A click on the name changes it everywhere. */

import { language, t } from "../core/text.js";
import { html, useLayoutEffect, useRef, useState } from "../vendor/ui.js";
import { MOST_SPEAKER_CHARS } from "./edits_segment.js";

/**
 * @typedef {object} ChipProps
 * @property {import("./speakers.js").Speaker} speaker
 * @property {boolean} canRename
 * @property {(name: string, next: string, isByKey: boolean) => Promise<boolean>} rename Returns whether it is done.
 * @property {{isChosen: boolean, toggle: (name: string) => void} | null} choice While speakers are chosen.
 */

/** @param {ChipProps} props */
export function SpeakerChip({ speaker: { name, share, colour }, canRename, rename, choice }) {
  const [isEditing, setEditing] = useState(false);
  const [wantsFocus, setWantsFocus] = useState(false);
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useLayoutEffect(() => {
    if (wantsFocus && !isEditing) button.current?.focus();
  }, [isEditing]);
  const percent = new Intl.NumberFormat(language.value, { style: "percent" }).format(share);
  const face = html`<span class=${`swatch ${colour}`} aria-hidden="true"></span>
    <span class="speaker-name" dir="auto">${name}</span>
    <small class="muted numbers">${percent}</small>`;
  if (choice) {
    return html`<label class="speaker">
      <input type="checkbox" checked=${choice.isChosen} onChange=${() => choice.toggle(name)} />${face}
    </label>`;
  }
  if (isEditing) {
    /** @type {FieldProps["finish"]} */
    const finish = async (next, isByKey) => {
      const isDone = await rename(name, next, isByKey);
      setWantsFocus(isByKey);
      setEditing(!isDone);
      return isDone;
    };
    return html`<span class="speaker"><span class=${`swatch ${colour}`} aria-hidden="true"></span>
      <${NameField} name=${name} finish=${finish} /></span>`;
  }
  return html`<button class="speaker" ref=${button} data-speaker=${name} disabled=${!canRename} onClick=${() => setEditing(true)}
    title=${t("speakers.rename", { name })}>${face}</button>`;
}

/** @typedef {{name: string, finish: (next: string, isByKey: boolean) => Promise<boolean>}} FieldProps */

/** @param {FieldProps} props */
function NameField({ name, finish }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const isEnding = useRef(false);
  useLayoutEffect(() => field.current?.select(), []);
  /** @param {string} next @param {boolean} isByKey */
  const end = async (next, isByKey) => {
    if (isEnding.current) return; // a field that goes loses the keyboard, too
    isEnding.current = true;
    isEnding.current = await finish(next, isByKey);
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    // Undo and redo of the field are the browser's.
    if ((event.ctrlKey || event.metaKey) && /^[zy]$/i.test(event.key)) event.stopPropagation();
    if (event.isComposing || (event.key !== "Enter" && event.key !== "Escape")) return;
    event.preventDefault();
    event.stopPropagation();
    end(event.key === "Enter" ? (field.current?.value ?? name) : name, true);
  };
  return html`<input class="input" ref=${field} dir="auto" list="speaker-names" autocomplete="off"
    maxlength=${MOST_SPEAKER_CHARS} aria-label=${t("speakers.rename", { name })} value=${name} onKeyDown=${press}
    onBlur=${() => end(field.current?.value ?? name, false)} />`;
}
