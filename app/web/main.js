/** Starts the page. */

import { loadTexts } from "./core/text.js";
import { checkHealth } from "./shell/health.js";
import { Shell } from "./shell/shell.js";
import { html, render } from "./vendor/ui.js";

await loadTexts();
render(html`<${Shell} />`, /** @type {HTMLElement} */ (document.getElementById("page")));
checkHealth();
