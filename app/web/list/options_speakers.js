/** Who speaks: one choice for two options that exclude each other, and what goes with them. */

import { t } from "../core/text.js";
import { html } from "../vendor/ui.js";
import { OptionInput } from "./options_fields.js";
import { fieldOf, whoOf, whoOptions } from "./options_model.js";
import { changed, defaults, setOption } from "./options_store.js";

export function SpeakerOptions() {
  if (!("diarize" in defaults())) return null; // an older service
  const who = whoOf(changed.value);
  /** @param {Event} event */
  const choose = (event) => {
    const { value } = /** @type {HTMLSelectElement} */ (event.currentTarget);
    const options = whoOptions(/** @type {import("./options_model.js").Who} */ (value));
    for (const [name, option] of Object.entries(options)) setOption(name, option);
  };
  const field = (/** @type {string} */ name) =>
    html`<${OptionInput} key=${name} field=${fieldOf(name, defaults()[name])} />`;
  return html`<div class="options-grid">
    <div class="field">
      <label for="option-who">${t("option.who")}</label>
      <select id="option-who" value=${who} onChange=${choose}>
        <option value="" selected=${who === ""}>–</option>
        <option value="voices" selected=${who === "voices"}>${t("option.who.voices")}</option>
        <option value="channels" selected=${who === "channels"}>${t("option.who.channels")}</option>
      </select>
    </div>
    ${who === "voices" && field("num_speakers")}
    ${who && field("speaker_names")}
  </div>`;
}
