/** Whether the service answers. Known within five seconds, on every screen. */

import { signal } from "../vendor/ui.js";
import { address } from "./service.js";

const PAUSE_MS = 2000;
const ANSWER_MS = 2500;

export const isReachable = signal(true);
/** The service runs with the demo model. */
export const isDemo = signal(false);

let answeredAt = -Infinity; // ms

/** Note that the service has sent something. */
export function noteAnswer() {
  answeredAt = Date.now();
  isReachable.value = true;
}

/** Ask from now on, as long as the page is seen and nothing else shows it. */
export async function watchHealth() {
  await ask();
  for (;;) {
    const left = answeredAt + PAUSE_MS - Date.now();
    if (left <= 0 && document.visibilityState === "visible") await ask();
    await new Promise((resolve) => setTimeout(resolve, left > 0 ? left : PAUSE_MS));
  }
}

async function ask() {
  const signal = AbortSignal.timeout(ANSWER_MS);
  const askedAt = Date.now();
  try {
    const response = await fetch(address("/health"), { cache: "no-store", signal });
    if (!response.ok) throw new Error(); // of a proxy
    isDemo.value = (await response.json()).demo;
    noteAnswer();
  } catch {
    // The connections of a browser may all be in use: then another one has sent something.
    isReachable.value = signal.aborted && answeredAt >= askedAt;
  }
}
