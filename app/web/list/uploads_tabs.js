/** Which tab works on which upload: two would disturb each other. */

import { address } from "../core/service.js";

const ANSWER_MS = 300;
const channel = new BroadcastChannel(`uploads to ${address("/")}`);

/** @type {(ids: string[]) => void} */
let onAnswer = () => {};

/**
 * Answer other tabs.
 * @param {() => string[]} held The uploads of this tab.
 */
export function answerTabs(held) {
  channel.onmessage = ({ data }) => {
    if (data.isQuestion) channel.postMessage({ isQuestion: false, ids: held() });
    else onAnswer(data.ids);
  };
}

/** @returns {Promise<Set<string>>} The uploads of all other open tabs. */
export async function heldElsewhere() {
  /** @type {Set<string>} */
  const held = new Set();
  onAnswer = (ids) => {
    for (const id of ids) held.add(id);
  };
  channel.postMessage({ isQuestion: true });
  await new Promise((resolve) => setTimeout(resolve, ANSWER_MS));
  return held;
}
