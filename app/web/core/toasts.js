/** Short messages at the lower edge, with at most one action such as "Undo". */

import { html, signal } from "../vendor/ui.js";
import { announce } from "./announcer.js";
import { IconButton } from "./controls.js";
import { t } from "./text.js";

/**
 * @typedef {object} Toast
 * @property {number} id
 * @property {string} text
 * @property {boolean} isError
 * @property {{label: string, run: () => void} | undefined} action
 * @property {() => boolean} holds Whether it is still true. May read signals.
 * @property {() => void} close
 */

const SHOWN_MS = 7000;

/** @type {import("../vendor/ui.js").Signal<Toast[]>} */
const toasts = signal([]);
let lastId = 0;

/**
 * Show a message. Errors stay until they are closed.
 * @param {string} text
 * @param {{isError?: boolean, action?: Toast["action"], holds?: Toast["holds"]}} [options]
 * @returns {() => void} Closes it.
 */
export function toast(text, { isError = false, action, holds = () => true } = {}) {
  const id = ++lastId;
  const close = () => {
    toasts.value = toasts.value.filter((other) => other.id !== id);
  };
  toasts.value = [...toasts.value, { id, text, isError, action, holds, close }].slice(-4);
  announce(text);
  if (!isError) setTimeout(close, SHOWN_MS);
  return close;
}

/** What anything that was thrown says. @param {unknown} error */
export function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/** @param {unknown} error Anything that was thrown. */
export function toastError(error) {
  toast(messageOf(error), { isError: true });
}

export function Toasts() {
  return html`<div class="toasts">${toasts.value.filter(({ holds }) => holds()).map((shown) => html`<${ToastView} key=${shown.id} ...${shown} />`)}</div>`;
}

/** @param {Toast} props */
function ToastView({ text, isError, action, close }) {
  const act = () => {
    close();
    action?.run();
  };
  return html`<div class=${isError ? "toast raised danger" : "toast raised"}>
    <span dir="auto">${text}</span>
    ${action && html`<button class="button quiet" onClick=${act}>${action.label}</button>`}
    <${IconButton} icon="close" label=${t("close")} onClick=${close} />
  </div>`;
}
