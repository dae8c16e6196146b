/** The page's own settings: language, colours and key. */

import { Select } from "../core/controls.js";
import { Dialog } from "../core/dialog.js";
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
  return html`<${Dialog} name="settings" onClose=${close}>
    <${Choice} label=${t("settings.language")} setting=${chosenLanguage} names=${LANGUAGE_NAMES} />
    <${Choice} label=${t("settings.theme")} setting=${theme} names=${{ light: t("settings.light"), dark: t("settings.dark") }} />
    ${!sharedLink && html`<${Terms} />`}
    <${Identity} />
    <p class="small muted">
      whisperfleet ${service.version}${!sharedLink && html` · <a href=${address("/docs")}>${t("settings.docs")}</a>`}
    </p>
  <//>`;
}

/** @param {{label: string, setting: import("../vendor/ui.js").Signal<string>, names: Record<string, string>}} props */
function Choice({ label, setting, names }) {
  const choices = [["", t("settings.automatic")], ...Object.entries(names)];
  return html`<label class="field"><span>${label}</span>
    <${Select} value=${setting.value} choices=${choices} choose=${(/** @type {string} */ value) => (setting.value = value)} /></label>`;
}
