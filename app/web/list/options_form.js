/** The options of new jobs: who speaks, and all others behind one fold. */

import { service } from "../core/service.js";
import { load, save } from "../core/storage.js";
import { language, t } from "../core/text.js";
import en from "../texts/en.js";
import { html, signal, useEffect } from "../vendor/ui.js";
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
/** @import { TextKey } from "../core/text.js" */

const isOpen = signal(load("optionsOpen", false));

export function Options() {
  useEffect(() => void loadModels(), []);
  const count = Object.keys(changed.value).length;
  /** @param {Event} event */
  const toggle = (event) => {
    isOpen.value = /** @type {HTMLDetailsElement} */ (event.currentTarget).open;
    save("optionsOpen", isOpen.value);
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

export function SpeakerOptions() {
  if (!("diarize" in defaults())) return null; // an older service
  const who = whoOf(changed.value);
  /** @param {Event} event */
  const choose = (event) => {
    const { value } = /** @type {HTMLSelectElement} */ (event.currentTarget);
    const options = whoOptions(/** @type {import("./options.js").Who} */ (value));
    for (const [name, option] of Object.entries(options)) setOption(name, option);
  };
  const field = (/** @type {string} */ name) =>
    html`<${OptionInput} key=${name} field=${fieldOf(name, defaults()[name])} />`;
  return html`<div class="field">
      <label for="option-who">${t("option.who")}</label>
      <select id="option-who" value=${who} onChange=${choose}>
        <${WhoChoices} who=${who} />
      </select>
    </div>
    ${who === "voices" && field("num_speakers")}
    ${who && field("speaker_names")}`;
}

/** @typedef {{id: string, onChange: (event: Event) => void, "aria-describedby": string | undefined}} About */

/**
 * @param {object} props
 * @param {OptionField} props.field
 * @param {string[]} [props.order] The choices besides the default, if the field does not know them.
 * @param {Record<string, string>} [props.names] Of the choices.
 * @param {boolean} [props.isLong] A text of several lines.
 */
export function OptionInput({ field, order = field.choices ?? [], names = {}, isLong = false }) {
  const initial = field.name === "model" ? models.value[0] : defaults()[field.name];
  const current = changed.value[field.name];
  /** @param {Event} event */
  const change = (event) => {
    const input = /** @type {HTMLInputElement} */ (event.currentTarget);
    if (!input.checkValidity()) return void input.reportValidity();
    setOption(field.name, inputValue(field, field.kind === "check" ? input.checked : input.value, initial));
  };
  if (field.kind === "check") {
    return html`<label class="check">
      <input type="checkbox" checked=${current ?? initial} onChange=${change} />
      <span>${label(field.name)}</span>
    </label>`;
  }
  const hint = optional(`option.${field.name}.hint`);
  const id = `option-${field.name}`;
  const about = { id, onChange: change, "aria-describedby": hint && `${id}-hint` };
  return html`<div class="field">
    <label for=${id}>${label(field.name)}</label>
    ${field.kind === "choice" && choice(about, field, current, initial, order, names)}
    ${field.kind === "number" && number(about, field, current, initial)}
    ${field.kind === "text" && text(about, current, isLong)}
    ${hint && html`<small id=${`${id}-hint`}>${hint}</small>`}
  </div>`;
}

/**
 * @param {About} about
 * @param {OptionField} field
 * @param {unknown} current
 * @param {unknown} initial
 * @param {string[]} order
 * @param {Record<string, string>} names
 */
function choice(about, { name }, current, initial, order, names) {
  const nameOf = (/** @type {string} */ value) =>
    names[value] ?? optional(`option.${name}.${value}`) ?? value;
  const first = optional(`option.${name}.default`) ?? nameOf(String(initial));
  return html`<select ...${about} value=${current ?? ""}>
    <option value="" selected=${current === undefined}>${first}</option>
    ${order.map((value) => html`<option value=${value} selected=${value === current}>${nameOf(value)}</option>`)}
  </select>`;
}

/**
 * @param {About} about
 * @param {OptionField} field
 * @param {unknown} current
 * @param {unknown} initial
 */
function number(about, { min, max, step }, current, initial) {
  const placeholder = typeof initial === "number" ? String(initial) : t("options.automatic");
  return html`<input ...${about} type="number" inputmode="decimal" min=${min} max=${max} step=${step ?? "any"}
    value=${current ?? ""} placeholder=${placeholder} />`;
}

/**
 * It counts while it is typed: a drop elsewhere ends no typing.
 * @param {About} about
 * @param {unknown} current
 * @param {boolean} isLong
 */
function text(about, current, isLong) {
  const value = String(current ?? "");
  return isLong
    ? html`<textarea ...${about} onInput=${about.onChange} dir="auto" rows="2" maxlength="4000" value=${value}></textarea>`
    : html`<input ...${about} onInput=${about.onChange} dir="auto" value=${value} />`;
}

/** @param {string} name An option that this page does not know yet keeps the name of the API. */
function label(name) {
  return optional(`option.${name}`) ?? name;
}

/**
 * @param {string} key
 * @returns {string | undefined} undefined if there is no such text.
 */
function optional(key) {
  return key in en ? t(/** @type {TextKey} */ (key)) : undefined;
}

/** What tells speakers apart. @param {{who: string}} props */
export function WhoChoices({ who }) {
  return WHO.map(
    ([value, text]) => html`<option value=${value} selected=${who === value}>${t(text)}</option>`,
  );
}

const WHO = /** @type {const} */ ([
  ["", "option.who.none"],
  ["voices", "option.who.voices"],
  ["channels", "option.who.channels"],
]);
