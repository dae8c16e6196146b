/** The options of new jobs: who speaks, and all others behind one fold. */

import { Select } from "../core/controls.js";
import { service } from "../core/service.js";
import { remembered } from "../core/storage.js";
import { language, t, textIfAny } from "../core/text.js";
import { html, useEffect } from "../vendor/ui.js";
import {
  changed,
  defaults,
  fieldOf,
  inputValue,
  languagesByName,
  loadModels,
  models,
  moreFields,
  resetOptions,
  setOption,
  whoOf,
  whoOptions,
} from "./options.js";

/** @import { OptionField } from "./options.js" */

const isOpen = remembered("optionsOpen", false);

export function Options() {
  useEffect(() => void loadModels(), []);
  const count = Object.keys(changed.value).length;
  /** @param {Event} event */
  const toggle = (event) => {
    isOpen.value = /** @type {HTMLDetailsElement} */ (event.currentTarget).open;
  };
  return html`<div class="options">
    <${SpeakerOptions} />
    <details open=${isOpen.value} onToggle=${toggle}>
      <summary>
        <span>${t("options.title")}</span>
        ${count > 0 && html`<span class="badge accent">${t("options.changed", { count })}</span>`}
      </summary>
      ${isOpen.value && html`<${OptionsForm} isChanged=${count > 0} />`}
    </details>
  </div>`;
}

/** @param {{isChanged: boolean}} props */
function OptionsForm({ isChanged }) {
  const main = (/** @type {string} */ name) => fieldOf(name, defaults()[name]);
  const languages = languagesByName(service.languages ?? {}, language.value);
  const others = models.value.slice(1).map((name) => [name, name]);
  const more = moreFields(defaults());
  return html`<div class="options-form">
    <div class="options-grid">
      <${OptionInput} field=${{ name: "language", kind: "choice" }} choices=${languages} />
      <${OptionInput} field=${main("task")} />
      ${others.length > 0 && html`<${OptionInput} field=${{ name: "model", kind: "choice" }} choices=${others} />`}
      <${OptionInput} field=${main("profile")} />
      <${OptionInput} field=${main("max_line_chars")} />
    </div>
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

/** @param {{fields: import("./options.js").OptionField[]}} props */
function Grid({ fields }) {
  return html`<div class="options-grid">
    ${fields.map((field) => html`<${OptionInput} key=${field.name} field=${field} />`)}
  </div>`;
}

function SpeakerOptions() {
  if (!("diarize" in defaults())) return null; // an older service
  const who = whoOf(changed.value);
  /** @param {import("./options.js").Who} next */
  const choose = (next) => {
    for (const [name, option] of Object.entries(whoOptions(next))) setOption(name, option);
  };
  const field = (/** @type {string} */ name) =>
    html`<${OptionInput} key=${name} field=${fieldOf(name, defaults()[name])} />`;
  return html`<div class="field">
      <label for="option-who">${t("option.who")}</label>
      <${WhoChoice} id="option-who" who=${who} choose=${choose} />
    </div>
    ${who === "voices" && field("num_speakers")}
    ${who && field("speaker_names")}`;
}

/**
 * @param {object} props
 * @param {OptionField} props.field
 * @param {[string, string][]} [props.choices] Besides the default, with their names, if the field does not know them.
 * @param {boolean} [props.isLong] A text of several lines.
 */
function OptionInput({ field, choices, isLong = false }) {
  const { name, kind, min, max, step } = field;
  const initial = name === "model" ? models.value[0] : defaults()[name];
  const current = changed.value[name];
  const set = (/** @type {string | boolean} */ input) => setOption(name, inputValue(field, input, initial));
  /** @param {Event} event */
  const change = (event) => {
    const input = /** @type {HTMLInputElement} */ (event.currentTarget);
    if (!input.checkValidity()) return void input.reportValidity();
    set(kind === "check" ? input.checked : input.value);
  };
  const label = textIfAny(`option.${name}`) ?? name; // one that this page does not know yet
  if (kind === "check") {
    return html`<label class="check">
      <input type="checkbox" checked=${current ?? initial} onChange=${change} />
      <span>${label}</span>
    </label>`;
  }
  const hint = textIfAny(`option.${name}.hint`);
  const id = `option-${name}`;
  const about = { id, value: current ?? "", "aria-describedby": hint && `${id}-hint` };
  const nameOf = (/** @type {string} */ value) => textIfAny(`option.${name}.${value}`) ?? value;
  const first = ["", textIfAny(`option.${name}.default`) ?? nameOf(String(initial))];
  const others = choices ?? field.choices?.map((value) => [value, nameOf(value)]) ?? [];
  const placeholder = typeof initial === "number" ? String(initial) : t("options.automatic");
  const typed = { ...about, onChange: change, onInput: change, dir: "auto" }; // a drop elsewhere ends no typing
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${kind === "choice" && html`<${Select} ...${about} choices=${[first, ...others]} choose=${set} />`}
    ${
      kind === "number" &&
      html`<input ...${about} onChange=${change} type="number" inputmode="decimal" min=${min} max=${max} step=${step ?? "any"} placeholder=${placeholder} />`
    }
    ${kind === "text" && (isLong ? html`<textarea ...${typed} rows="2" maxlength="4000"></textarea>` : html`<input ...${typed} />`)}
    ${hint && html`<small id=${`${id}-hint`}>${hint}</small>`}
  </div>`;
}

/** What tells speakers apart. @param {{who: string, choose: (who: string) => void, id?: string}} props */
export function WhoChoice({ who, ...attributes }) {
  const choices = [
    ["", t("option.who.none")],
    ["voices", t("option.who.voices")],
    ["channels", t("option.who.channels")],
  ];
  return html`<${Select} ...${attributes} value=${who} choices=${choices} />`;
}
