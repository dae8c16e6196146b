/** The page's own settings: language, colours and key. */

import { DialogHead, showModal } from "../core/keys.js";
import { address, service } from "../core/service.js";
import { sharedLink } from "../core/shared_link.js";
import { Terms } from "../core/terms.js";
import { chosenLanguage, LANGUAGE_NAMES, t } from "../core/text.js";
import { html, signal } from "../vendor/ui.js";
import { Identity } from "./sign_in.js";
import { theme } from "./theme.js";

const isOpen = signal(false);

export function openSettings() {
  isOpen.value = true;
}

export function SettingsDialog() {
  if (!isOpen.value) return null;
  const close = () => {
    isOpen.value = false;
  };
  return html`<dialog class="dialog" ref=${showModal} onClose=${close} aria-labelledby="settings-title">
    <${DialogHead} name="settings" />
    <div class="settings">
      <${Choice} label=${t("settings.language")} value=${chosenLanguage}
        choices=${{ "": t("settings.automatic"), ...LANGUAGE_NAMES }} />
      <${Choice} label=${t("settings.theme")} value=${theme}
        choices=${{ "": t("settings.automatic"), light: t("settings.light"), dark: t("settings.dark") }} />
      ${!sharedLink && html`<${Terms} />`}
      <${Identity} />
      <p class="small muted">
        whisperfleet ${service.version}${!sharedLink && html` · <a href=${address("/docs")}>${t("settings.docs")}</a>`}
      </p>
    </div>
  </dialog>`;
}

/** @param {{label: string, value: import("../vendor/ui.js").Signal<string>, choices: Record<string, string>}} props */
function Choice({ label, value, choices }) {
  /** @param {Event} event */
  const change = (event) => {
    value.value = /** @type {HTMLSelectElement} */ (event.target).value;
  };
  return html`<label class="field">
    <span>${label}</span>
    <select value=${value.value} onChange=${change}>
      ${Object.entries(choices).map(
        ([choice, name]) => html`<option value=${choice} selected=${choice === value.value}>${name}</option>`,
      )}
    </select>
  </label>`;
}
