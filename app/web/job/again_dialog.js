/** Asks how to transcribe a recording, or a part of it, again; shows the progress, and why it failed. */

import { onSubmit, Select } from "../core/controls.js";
import { Dialog } from "../core/dialog.js";
import { clock } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { service } from "../core/service.js";
import { language, t } from "../core/text.js";
import { toastError } from "../core/toasts.js";
import { languagesByName, loadModels, models, whoOf } from "../list/options.js";
import { WhoChoice } from "../list/options_form.js";
import { html, useEffect, useState } from "../vendor/ui.js";
import { bodyOf } from "./again.js";
import { JobProgress } from "./job_facts.js";

/** @typedef {import("./again.js").Again} Again */

/** @param {{job: import("./types.js").Job, again: Again, part: import("./again.js").Part}} props */
export function AgainDialog({ job, again, part }) {
  const [spoken, setSpoken] = useState("");
  const [who, setWho] = useState(/** @type {string} */ (whoOf(job.options)));
  const [failure, setFailure] = useState("");
  const [isBusy, setBusy] = useState(false);
  useEffect(() => void loadModels(), []);
  const isOther = spoken !== "" && spoken !== job.language;
  const submit = onSubmit(async (data) => {
    if (isBusy) return;
    const text = (/** @type {string} */ name) => String(data.get(name) ?? "").trim();
    const words = { prompt: text("prompt"), hotwords: text("hotwords") };
    const chosen = { language: spoken, model: text("model"), ...words, who };
    setBusy(true);
    setFailure("");
    try {
      await again.start(
        bodyOf(job, part, { ...chosen, count: Number(text("count")), keep: data.has("keep") }),
      );
    } catch (error) {
      setFailure(/** @type {Error} */ (error).message);
    }
    setBusy(false);
  });
  const close = () => {
    again.asked.value = null;
  };
  const languages = languagesByName(service.languages ?? {}, language.value);
  return html`<${Dialog} name="again" onClose=${close} failure=${failure}>
    <p class="muted">${part.start === undefined ? t("again.why") : t("again.whyPart", { start: clock(part.start), end: clock(part.end ?? 0) })}</p>
    <form onSubmit=${submit} aria-busy=${isBusy}>
      <label class="field"><span>${t("option.language")}</span>
        <${Select} value=${spoken} choices=${[["", t("again.asBefore")], ...languages]} choose=${setSpoken} /></label>
      ${
        models.value.length > 1 &&
        html`<label class="field"><span>${t("option.model")}</span><select name="model">
          ${models.value.map((name) => html`<option selected=${name === job.model}>${name}</option>`)}</select></label>`
      }
      <${Words} job=${job} name="prompt" />
      <${Words} job=${job} name="hotwords" />
      <label class="field"><span>${t("option.who")}</span><${WhoChoice} who=${who} choose=${setWho} /></label>
      ${
        who === "voices" &&
        html`<label class="field"><span>${t("option.num_speakers")}</span>
          <input class="numbers" name="count" type="number" min="1" max="100" step="1" placeholder=${t("options.automatic")} /></label>`
      }
      <label class="check"><input type="checkbox" name="keep" defaultChecked disabled=${isOther} />
        <span>${t(isOther ? "again.keepNot" : "again.keep")}</span></label>
      <div class="toolbar dialog-actions"><button class="button primary"><${Icon} name="retry" />${t("again.start")}</button></div>
    </form>
  <//>`;
}

/** @param {{job: import("./types.js").Job, name: "prompt" | "hotwords"}} props */
function Words({ job, name }) {
  const id = `again-${name}`;
  return html`<div class="field">
    <label for=${id}>${t(`option.${name}`)}</label>
    <textarea id=${id} name=${name} rows="2" maxlength="4000" dir="auto" aria-describedby=${`${id}-hint`}
      defaultValue=${String(job.options[name] ?? "")}></textarea>
    <small id=${`${id}-hint`}>${t(`option.${name}.hint`)}</small>
  </div>`;
}

/** What runs, or why it failed. @param {{again: Again}} props */
export function AgainNotice({ again }) {
  const [child, failure] = [again.child.value, again.failure.value];
  if (child) {
    return html`<div class="notice again-notice">
      <p role="status">${t("again.running")}</p>
      <div class="toolbar small"><${JobProgress} job=${child} /><span class="space"></span>
        <button class="button quiet" onClick=${() => again.cancel().catch(toastError)}><${Icon} name="stop" />${t("history.cancelJob")}</button></div>
    </div>`;
  }
  if (!failure) return null;
  const { body } = failure;
  return html`<div class="notice warning again-notice" role="alert">
    <p dir="auto">${failure.message}</p>
    <div class="toolbar">
      ${body && html`<button class="button" onClick=${() => again.start(body).catch(toastError)}><${Icon} name="retry" />${t("again.onTop")}</button>`}
      <button class="button quiet" onClick=${() => (again.failure.value = null)}>${t("close")}</button>
    </div>
  </div>`;
}
