/** Asks for the API key when the service wants one. */

import { keyQuestion } from "../core/api.js";
import { closeDialog, showModal } from "../core/dialog.js";
import { address, service } from "../core/service.js";
import { t } from "../core/text.js";
import { html } from "../vendor/ui.js";

export function KeyDialog() {
  const question = keyQuestion.value;
  if (!question) return null;
  /**
   * @param {Event} event
   * @param {string | null} key
   */
  const answer = (event, key) => {
    closeDialog(event);
    question.answer(key);
  };
  const cancel = (/** @type {Event} */ event) => answer(event, null);
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const key = String(new FormData(form).get("key") ?? "").trim();
    if (key) answer(event, key);
  };
  return html`<dialog class="dialog raised" ref=${showModal} onCancel=${cancel} aria-labelledby="key-title">
    <form onSubmit=${submit}>
      <h2 id="key-title">${t("key.title")}</h2>
      <p class="muted">${t("key.why")}</p>
      ${service.login && html`<p><a class="button primary" href=${address("/login")}>${t("key.login")}</a></p>`}
      <label class="field">
        <span>${t("key.label")}</span>
        <input name="key" type="password" autocomplete="current-password" required
          aria-invalid=${question.isWrong} aria-describedby=${question.isWrong ? "key-wrong" : undefined} />
      </label>
      ${question.isWrong && html`<p class="notice danger" id="key-wrong" role="alert">${t("key.wrong")}</p>`}
      <div class="toolbar dialog-actions">
        <button class="button quiet" type="button" onClick=${cancel}>${t("cancel")}</button>
        <button class="button primary" type="submit">${t("key.use")}</button>
      </div>
    </form>
  </dialog>`;
}
