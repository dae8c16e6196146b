/** The screen that the address names: `#/`, `#/jobs/ID` or `#/fleet`. */

import { signal } from "../vendor/ui.js";

/** @typedef {{screen: "list"} | {screen: "job", id: string} | {screen: "fleet"}} Route */

/** @type {import("../vendor/ui.js").Signal<Route>} */
export const route = signal(parseRoute(location.hash));

addEventListener("hashchange", () => {
  route.value = parseRoute(location.hash);
});

/**
 * @param {string} hash
 * @returns {Route}
 */
export function parseRoute(hash) {
  const job = /^#\/jobs\/([0-9a-f]+)$/.exec(hash);
  if (job) return { screen: "job", id: job[1] };
  return hash === "#/fleet" ? { screen: "fleet" } : { screen: "list" };
}

/** @param {string} hash Such as `#/fleet`. */
export function go(hash) {
  location.hash = hash;
}
