/** Starts the page. */

import { watchHealth } from "./core/health.js";
import { watchMe } from "./core/me.js";
import { loadTexts } from "./core/text.js";
import { Shell } from "./shell/shell.js";
import { html, render } from "./vendor/ui.js";

await loadTexts();
render(html`<${Shell} />`, /** @type {HTMLElement} */ (document.getElementById("page")));
watchHealth();
watchMe();
