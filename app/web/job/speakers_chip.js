/** One speaker of the panel: to rename, to choose, or to look at. */

import { language, t } from "../core/text.js";
import { html, useLayoutEffect, useRef } from "../vendor/ui.js";
import { MOST_SPEAKER_CHARS } from "./edits_segment.js";

/**
 * @typedef {object} ChipProps
 * @property {import("./speakers.js").Speaker} speaker
 * @property {boolean} canRename
 * @property {boolean} isRenaming
 * @property {() => void} begin Renaming it.
 * @property {() => void} end Without another name.
 * @property {(next: string) => void} rename
 * @property {{isChosen: boolean, toggle: () => void} | null} choice While speakers are chosen.
 */

/** @param {ChipProps} props */
export function SpeakerChip({ speaker, canRename, isRenaming, begin, end, rename, choice }) {
  const { name, share, colour } = speaker;
  const swatch = html`<span class=${`swatch ${colour}`} aria-hidden="true"></span>`;
  if (isRenaming) {
    return html`<span class="speaker">${swatch}<${NameField} name=${name} rename=${rename} end=${end} /></span>`;
  }
  const percent = new Intl.NumberFormat(language.value, { style: "percent" }).format(share);
  const face = html`${swatch}<span class="speaker-name" dir="auto">${name}</span> <small class="muted numbers">${percent}</small>`;
  return choice
    ? html`<label class="speaker"><input type="checkbox" checked=${choice.isChosen} onChange=${choice.toggle} />${face}</label>`
    : html`<button class="speaker" data-speaker=${name} disabled=${!canRename} onClick=${begin}
        title=${t("speakers.rename", { name })}>${face}</button>`;
}

/** @param {Pick<ChipProps, "rename" | "end"> & {name: string}} props */
function NameField({ name, rename, end }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useLayoutEffect(() => field.current?.select(), []);
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    // Undo and redo of the field are the browser's.
    if ((event.ctrlKey || event.metaKey) && /^[zy]$/i.test(event.key)) event.stopPropagation();
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    rename(/** @type {HTMLInputElement} */ (event.target).value);
  };
  return html`<input class="input" ref=${field} dir="auto" list="speaker-names" autocomplete="off" maxlength=${MOST_SPEAKER_CHARS}
    aria-label=${t("speakers.rename", { name })} value=${name} onKeyDown=${press} onBlur=${end} />`;
}
