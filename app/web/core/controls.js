/** The controls that all screens have: buttons with icons, choices, files and forms. */

import { html, useRef } from "../vendor/ui.js";
import { Icon } from "./icons.js";

/** @typedef {import("./icons.js").IconName} IconName */
/** @typedef {Record<string, unknown>} Attributes All that is not named is an attribute of the element. */

/**
 * A button that shows an icon, and its label below the pointer alone.
 * @param {{icon?: IconName, label: string, title?: string, class?: string, children?: unknown} & Attributes} props
 *   `children`: shown instead of the icon.
 */
export function IconButton({ icon, label, title = label, class: extra = "", children, ...attributes }) {
  return html`<button type="button" class="icon-button ${extra}" aria-label=${label} title=${title} ...${attributes}>
    ${icon ? html`<${Icon} name=${icon} />` : children}
  </button>`;
}

/**
 * @template {string | number} T
 * @param {{value: T, choices: readonly (readonly [T, string])[], choose: (value: string) => void} & Attributes} props
 *   `choices`: values with their names.
 */
export function Select({ value, choices, choose, ...attributes }) {
  return html`<select ...${attributes} value=${value} onChange=${(/** @type {Event} */ event) => choose(fieldValue(event))}>
    ${choices.map(([choice, name]) => html`<option value=${choice} selected=${choice === value}>${name}</option>`)}
  </select>`;
}

/**
 * A button that asks for files.
 * @param {{class?: string, icon?: IconName, label: string, take: (files: File[]) => void} & Attributes} props
 */
export function FilesButton({ class: className = "button", icon, label, take, ...attributes }) {
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  /** @param {Event} event */
  const change = (event) => {
    const field = /** @type {HTMLInputElement} */ (event.currentTarget);
    take([...(field.files ?? [])]);
    field.value = ""; // the same file can be chosen again
  };
  return html`<button class=${className} onClick=${() => input.current?.click()}>${icon && html`<${Icon} name=${icon} />`}${label}</button>
    <input ref=${input} type="file" hidden aria-label=${label} onChange=${change} ...${attributes} />`;
}

/** What a field has. @param {Event} event Of the field. */
export function fieldValue({ currentTarget }) {
  return /** @type {HTMLInputElement | HTMLSelectElement} */ (currentTarget).value;
}

/** What a form does when it is sent. @param {(fields: FormData) => void} act @returns {(event: SubmitEvent) => void} */
export function onSubmit(act) {
  return (event) => {
    event.preventDefault();
    act(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget)));
  };
}
