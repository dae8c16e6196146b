/** Starts the page. */

import { checkHealth } from "./shell/health.js";
import { Shell } from "./shell/shell.js";
import { html, render } from "./vendor/ui.js";

render(html`<${Shell} />`, /** @type {HTMLElement} */ (document.getElementById("page")));
checkHealth();
