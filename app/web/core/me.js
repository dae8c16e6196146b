/** Who uses the page, and what it may show and do for them. */

import { computed, effect, signal } from "../vendor/ui.js";
import { ApiError, apiKey, requestJson } from "./api.js";
import { mayPass } from "./events.js";
import { service } from "./service.js";
import { sharedLink } from "./shared_link.js";

/**
 * @typedef {{id: string, correct: boolean, audio: boolean, revisions: boolean, expires_at: string}} SharedLink
 * @typedef {{owner: string | null, operator: boolean, shared: SharedLink | null}} Me
 */

const RETRY_MS = 5000;
const EVERYONE = { owner: null, operator: true, shared: null };

/** null: not known yet, or refused. @type {import("../vendor/ui.js").Signal<Me | null>} */
export const me = signal(service.keys ? null : EVERYONE);
/** Whether the service has answered, if only that it does not know. */
export const isAsked = signal(!service.keys);

export const isOperator = computed(() => me.value?.operator === true);
/** Of the transcript on the screen. */
export const mayCorrect = computed(() => !sharedLink || me.value?.shared?.correct === true);
export const hasRevisions = computed(() => !sharedLink || me.value?.shared?.revisions === true);
export const hasSound = computed(() => !sharedLink || me.value?.shared?.audio === true);

/** Ask now, and after each change of the key. */
export function watchMe() {
  if (!service.keys) return;
  effect(() => {
    ask(apiKey.value);
  });
}

/** @param {string} key */
async function ask(key) {
  try {
    const answer = await requestJson("/v1/me", { cache: "no-store" });
    me.value = answer;
  } catch (error) {
    if (key !== apiKey.peek()) return; // the next one is asked about already
    if (error instanceof ApiError && mayPass(error)) return void setTimeout(ask, RETRY_MS, key);
    me.value = null;
  }
  isAsked.value = true;
}
