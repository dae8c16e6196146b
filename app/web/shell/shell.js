/** The frame around all screens. */

import { Announcer } from "../core/announcer.js";
import { IconButton } from "../core/controls.js";
import { isDemo, isReachable } from "../core/health.js";
import { HelpDialog, openHelp, useShortcuts } from "../core/keys.js";
import { isAsked, isOperator } from "../core/me.js";
import { go, route } from "../core/router.js";
import { address } from "../core/service.js";
import { sharedLink } from "../core/shared_link.js";
import { remembered } from "../core/storage.js";
import { t } from "../core/text.js";
import { Toasts } from "../core/toasts.js";
import { FleetScreen } from "../fleet/fleet_screen.js";
import { JobScreen } from "../job/job_screen.js";
import { IntakeEverywhere } from "../list/intake_page.js";
import { ListScreen, listTop } from "../list/list_screen.js";
import { html, useEffect } from "../vendor/ui.js";
import { KeyDialog } from "./key_dialog.js";
import { openSettings, SettingsDialog } from "./settings_dialog.js";
import { UserName } from "./sign_in.js";

const isDemoKnown = remembered("demoKnown", false);

const LIST_KEY = /** @type {const} */ ({ keys: "t", text: "help.transcripts", run: () => go("#/") });
const FLEET_KEY = /** @type {const} */ ({ keys: "f", text: "help.fleet", run: () => go("#/fleet") });

export function Shell() {
  const { screen } = route.value;
  useShortcuts(
    [
      { keys: "?", text: "help.open", run: openHelp },
      ...(sharedLink ? [] : [LIST_KEY]),
      ...(isOperator.value ? [FLEET_KEY] : []),
    ],
    [isOperator.value],
    "page",
  );
  useFocusOnNewScreens();
  return html`
    <a class="visually-hidden button" href="#main" onClick=${skipToMain}>${t("nav.skip")}</a>
    <header class="top-bar"><div>
      <a class="name" href=${sharedLink ? undefined : "#/"} aria-label=${sharedLink ? undefined : "whisperfleet"}><img src=${address("/web/icon.svg")} alt="" /><span>whisperfleet</span></a>
      ${
        !sharedLink &&
        html`<nav aria-label=${t("nav.label")}>
        <a class="button quiet" href="#/" aria-current=${screen === "fleet" ? undefined : "page"}>${t("nav.transcripts")}</a>
        ${isOperator.value && html`<a class="button quiet" href="#/fleet" aria-current=${screen === "fleet" ? "page" : undefined}>${t("nav.fleet")}</a>`}
      </nav>`
      }
      <span class="space"></span>
      <${UserName} />
      <${IconButton} class="wide-only" label=${t("help.open")} onClick=${openHelp}>?<//>
      <${IconButton} icon="settings" label=${t("settings.title")} onClick=${openSettings} />
    </div></header>
    <${Banner} />
    <main class="screen" id="main" tabindex="-1"><${Screen} /></main>
    ${!sharedLink && html`<${IntakeEverywhere} />`}
    <${Toasts} />
    <${Announcer} />
    <${HelpDialog} />
    <${SettingsDialog} />
    <${KeyDialog} />
  `;
}

function Banner() {
  if (!isReachable.value) return html`<p class="banner danger" role="alert">${t("error.unreachable")}</p>`;
  if (!isDemo.value || isDemoKnown.value) return null;
  return html`<p class="banner warning" role="note">${t("demo")}
    <${IconButton} icon="close" label=${t("close")} onClick=${() => (isDemoKnown.value = true)} />
  </p>`;
}

function Screen() {
  const shown = route.value;
  const isWaiting = !isAsked.value && (sharedLink || shown.screen === "fleet");
  if (isWaiting) return html`<p class="muted" aria-busy="true">${t("loading")}</p>`;
  if (shown.screen === "job")
    return html`<${JobScreen} key=${shown.id} id=${shown.id} at=${shown.at ?? null} />`;
  if (shown.screen === "fleet" && isOperator.value) return html`<${FleetScreen} />`;
  return html`<${ListScreen} />`;
}

let isFirstScreen = true;

/** After a link to another screen, the keyboard goes on at its beginning; the list stays where it was. */
function useFocusOnNewScreens() {
  const shown = route.value;
  useEffect(() => {
    if (!isFirstScreen) document.getElementById("main")?.focus({ preventScroll: true });
    if (!isFirstScreen) scrollTo(0, shown.screen === "list" ? listTop : 0);
    isFirstScreen = false;
  }, [shown.screen, "id" in shown && shown.id]);
}

/** @param {Event} event */
function skipToMain(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}
