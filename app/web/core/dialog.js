/** Dialogs, with the page behind them out of reach. */

import { html } from "../vendor/ui.js";
import { IconButton } from "./controls.js";
import { t } from "./text.js";

/** @typedef {"again" | "conflict" | "details" | "help" | "preview" | "revisions" | "settings" | "share"} DialogName */

/**
 * A dialog with its title, and a button that closes it.
 * @param {{name: DialogName, onClose: () => void, failure?: string, children?: unknown}} props `failure`: of what it was to do.
 */
export function Dialog({ name, onClose, failure, children }) {
  const title = `${name}-title`;
  return html`<dialog class="dialog raised ${name}" ref=${showModal} onClose=${onClose} aria-labelledby=${title}>
    <div class="toolbar">
      <h2 id=${title}>${t(`${name}.title`)}</h2>
      <span class="space"></span>
      <${IconButton} icon="close" label=${t("close")} onClick=${closeDialog} />
    </div>
    ${failure && html`<p class="notice danger" role="alert" dir="auto">${failure}</p>`}
    ${children}
  </dialog>`;
}

/** Close the dialog around a button: the focus goes back to where it was. @param {Event} event */
export function closeDialog({ currentTarget }) {
  /** @type {HTMLElement} */ (currentTarget).closest("dialog")?.close();
}

/** Use as `ref` of a `<dialog>`. @param {HTMLDialogElement | null} element */
export function showModal(element) {
  if (element && !element.open) element.showModal();
}
