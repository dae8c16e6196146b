/** One field of the options. */

import { t } from "../core/text.js";
import en from "../texts/en.js";
import { html } from "../vendor/ui.js";
import { inputValue } from "./options_model.js";
import { changed, defaults, models, setOption } from "./options_store.js";

/** @import { OptionField } from "./options_model.js" */
/** @import { TextKey } from "../core/text.js" */

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
  return html`<label class="field">
    <span>${label(field.name)}</span>
    ${field.kind === "choice" && choice(field, current, initial, order, names, change)}
    ${field.kind === "number" && number(field, current, initial, change)}
    ${field.kind === "text" && text(current, isLong, change)}
    ${hint(field.name)}
  </label>`;
}

/**
 * @param {OptionField} field
 * @param {unknown} current
 * @param {unknown} initial
 * @param {string[]} order
 * @param {Record<string, string>} names
 * @param {(event: Event) => void} change
 */
function choice({ name }, current, initial, order, names, change) {
  const nameOf = (/** @type {string} */ value) =>
    names[value] ?? optional(`option.${name}.${value}`) ?? value;
  const first = optional(`option.${name}.default`) ?? nameOf(String(initial));
  return html`<select value=${current ?? ""} onChange=${change}>
    <option value="" selected=${current === undefined}>${first}</option>
    ${order.map((value) => html`<option value=${value} selected=${value === current}>${nameOf(value)}</option>`)}
  </select>`;
}

/**
 * @param {OptionField} field
 * @param {unknown} current
 * @param {unknown} initial
 * @param {(event: Event) => void} change
 */
function number({ min, max, step }, current, initial, change) {
  const placeholder = typeof initial === "number" ? String(initial) : t("options.automatic");
  return html`<input type="number" inputmode="decimal" min=${min} max=${max} step=${step ?? "any"}
    value=${current ?? ""} placeholder=${placeholder} onChange=${change} />`;
}

/**
 * @param {unknown} current
 * @param {boolean} isLong
 * @param {(event: Event) => void} change
 */
function text(current, isLong, change) {
  const value = String(current ?? "");
  return isLong
    ? html`<textarea dir="auto" rows="2" maxlength="4000" value=${value} onChange=${change}></textarea>`
    : html`<input dir="auto" value=${value} onChange=${change} />`;
}

/** @param {string} name */
function hint(name) {
  const found = optional(`option.${name}.hint`);
  return found && html`<small>${found}</small>`;
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
