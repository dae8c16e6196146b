/** The options of new jobs, behind one fold. */

import { service } from "../core/service.js";
import { load, save } from "../core/storage.js";
import { language, t } from "../core/text.js";
import { html, signal, useEffect } from "../vendor/ui.js";
import { OptionInput } from "./options_fields.js";
import { fieldOf, languagesByName, moreFields } from "./options_model.js";
import { SpeakerOptions } from "./options_speakers.js";
import { changed, defaults, loadModels, models, resetOptions } from "./options_store.js";

const isOpen = signal(load("optionsOpen", false));

export function OptionsFold() {
  useEffect(() => void loadModels(), []);
  const count = Object.keys(changed.value).length;
  /** @param {Event} event */
  const toggle = (event) => {
    isOpen.value = /** @type {HTMLDetailsElement} */ (event.currentTarget).open;
    save("optionsOpen", isOpen.value);
  };
  return html`<details class="options" open=${isOpen.value} onToggle=${toggle}>
    <summary>
      <span>${t("options.title")}</span>
      ${count > 0 && html`<span class="badge accent">${t("options.changed", { count })}</span>`}
    </summary>
    ${isOpen.value && html`<${OptionsForm} isChanged=${count > 0} />`}
  </details>`;
}

/** @param {{isChanged: boolean}} props */
function OptionsForm({ isChanged }) {
  const main = (/** @type {string} */ name) => fieldOf(name, defaults()[name]);
  const languages = languagesByName(service.languages ?? {}, language.value);
  const more = moreFields(defaults());
  return html`<div class="options-form">
    <div class="options-grid">
      <${OptionInput} field=${{ name: "language", kind: "choice" }}
        names=${Object.fromEntries(languages.map(({ code, name }) => [code, name]))} order=${languages.map(({ code }) => code)} />
      <${OptionInput} field=${main("task")} />
      ${models.value.length > 1 && html`<${OptionInput} field=${{ name: "model", kind: "choice" }} order=${models.value.slice(1)} />`}
      <${OptionInput} field=${main("profile")} />
      <${OptionInput} field=${main("max_line_chars")} />
    </div>
    <${SpeakerOptions} />
    <div class="options-grid long">
      <${OptionInput} field=${main("prompt")} isLong />
      <${OptionInput} field=${main("hotwords")} isLong />
    </div>
    ${
      more.length > 0 &&
      html`<details class="options-more">
        <summary>${t("options.more")}</summary>
        <${Grid} fields=${more.filter(({ kind }) => kind !== "check")} />
        <${Grid} fields=${more.filter(({ kind }) => kind === "check")} />
      </details>`
    }
    <div class="toolbar">
      <p class="small muted">${t("options.remembered")}</p>
      <span class="space"></span>
      <button class="button quiet" type="button" disabled=${!isChanged} onClick=${resetOptions}>${t("options.reset")}</button>
    </div>
  </div>`;
}

/** @param {{fields: import("./options_model.js").OptionField[]}} props */
function Grid({ fields }) {
  return html`<div class="options-grid">
    ${fields.map((field) => html`<${OptionInput} key=${field.name} field=${field} />`)}
  </div>`;
}
