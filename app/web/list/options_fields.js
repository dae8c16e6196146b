/** One field of the options. */

import { t } from "../core/text.js";
import en from "../texts/en.js";
import { html } from "../vendor/ui.js";
import { inputValue } from "./options_model.js";
import { changed, defaults, models, setOption } from "./options_store.js";

/** @import { OptionField } from "./options_model.js" */
/** @import { TextKey } from "../core/text.js" */

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
