/** The screen that the address names: `#/`, `#/?q=WORDS&status=STATUS&tag=TAG&trash=true`, `#/jobs/ID?at=SEGMENT` or `#/fleet`. */

import { effect, signal } from "../vendor/ui.js";
import { sharedLink, takeLink } from "./shared_link.js";

/** @typedef {{screen: "list", query?: string} | {screen: "job", id: string, at?: string} | {screen: "fleet"}} Route */

/** @type {import("../vendor/ui.js").Signal<Route>} */
export const route = signal(parseRoute(location.hash));

/** The address of the list as it was shown last: with its search. */
export const listHash = signal("#/");

effect(() => {
  const shown = route.value;
  if (shown.screen === "list") listHash.value = hashOf(shown.query);
});

addEventListener("hashchange", () => {
  // What was read with one key is not shown with another.
  if (takeLink() || sharedLink) location.reload();
  route.value = parseRoute(location.hash);
});

/**
 * @param {string} hash
 * @returns {Route}
 */
export function parseRoute(hash) {
  const job = /^#\/jobs\/([0-9a-f]+)(?:\?at=([\w-]+))?$/.exec(hash);
  if (job) return { screen: "job", id: job[1], ...(job[2] && { at: job[2] }) };
  if (hash === "#/fleet") return { screen: "fleet" };
  const query = /^#\/\?(.+)$/.exec(hash)?.[1];
  return query ? { screen: "list", query } : { screen: "list" };
}

/**
 * Change what the list shows, without an entry in the browser's history.
 * @param {URLSearchParams} query
 */
export function replaceListQuery(query) {
  const hash = hashOf(query.toString());
  history.replaceState(history.state, "", hash);
  route.value = parseRoute(hash);
}

/** @param {string | undefined} query */
function hashOf(query) {
  return query ? `#/?${query}` : "#/";
}

/** @param {string} hash Such as `#/fleet`. */
export function go(hash) {
  location.hash = hash;
}
