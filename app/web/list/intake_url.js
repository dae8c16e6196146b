/** The address of a recording. */

import { t } from "../core/text.js";
import { html, useEffect, useRef, useState } from "../vendor/ui.js";
import { addUrls } from "./upload_store.js";
import { urlsIn } from "./uploads_choice.js";

/** @param {{close: () => void}} props */
export function UrlForm({ close }) {
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const [isWrong, setWrong] = useState(false);
  useEffect(() => {
    const opener = document.activeElement;
    input.current?.focus();
    return () => opener instanceof HTMLElement && opener.focus();
  }, []);
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    event.preventDefault();
    const urls = urlsIn(input.current?.value ?? "");
    setWrong(!urls.length);
    if (!urls.length) return;
    addUrls(urls);
    close();
  };
  return html`<form class="url-form" novalidate onSubmit=${submit} onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Escape" && close()}>
    <label class="field">
      <span>${t("intake.urlLabel")}</span>
      <input ref=${input} type="url" inputmode="url" placeholder="https://" dir="ltr"
        aria-invalid=${isWrong} aria-describedby=${isWrong ? "url-wrong" : undefined} />
      ${isWrong && html`<small id="url-wrong" class="wrong" role="alert">${t("intake.urlWrong")}</small>`}
    </label>
    <button class="button primary" type="submit">${t("intake.urlAdd")}</button>
    <button class="button quiet" type="button" onClick=${close}>${t("cancel")}</button>
  </form>`;
}
