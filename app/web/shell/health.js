/** Whether the service runs with the demo model. */

import { requestJson } from "../core/api.js";
import { t } from "../core/text.js";
import { html, signal } from "../vendor/ui.js";

const isDemo = signal(false);

/** Asks once: the model stays as long as the service runs. */
export async function checkHealth() {
  try {
    isDemo.value = (await requestJson("/health")).demo;
  } catch {
    // Other requests will say that the service cannot be reached.
  }
}

export function DemoBanner() {
  if (!isDemo.value) return null;
  return html`<p class="banner" role="note">${t("demo")}</p>`;
}
