/** The running recording: its level, its time, and how to pause and end it. */

import { clock } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { route } from "../core/router.js";
import { t } from "../core/text.js";
import { html, useEffect, useRef } from "../vendor/ui.js";
import { recording } from "./microphone.js";

/** Whether the screen is that of the recording's job, with its text. */
export const isOnScreen = () =>
  route.value.screen === "job" && "id" in route.value && route.value.id === recording.value?.job.value;

export function MicrophoneBar() {
  const current = recording.value;
  const stop = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useEffect(() => {
    // The button that has started it is gone, and the focus with it; a new screen gives it to all of itself.
    if (["BODY", "MAIN"].includes(document.activeElement?.tagName ?? "")) stop.current?.focus();
  }, [current]);
  if (!current) return null;
  const state = current.state.value;
  const { seconds, level } = current.meter.value;
  const isRunning = state === "running";
  const note = current.trouble.value || (state === "ending" ? t("microphone.ending") : "");
  return html`<div class="microphone" role="group" aria-label=${t("microphone.label")} data-state=${state}>
    <span class="microphone-light" aria-hidden="true"></span>
    <span class="numbers" role="timer">${clock(seconds)}</span>
    <meter class="microphone-level" min="0" max="1" value=${level} aria-label=${t("microphone.level")}></meter>
    ${
      state !== "ending" &&
      html`<button class="button" onClick=${current.toggle}><${Icon} name=${isRunning ? "pause" : "microphone"} />${t(isRunning ? "microphone.pause" : "microphone.goOn")}</button>
      <button ref=${stop} class="button primary" onClick=${current.stop}><${Icon} name="stop" />${t("microphone.stop")}</button>`
    }
    ${current.job.value && !isOnScreen() && html`<a class="button quiet" href=${`#/jobs/${current.job.value}`}>${t("microphone.show")}</a>`}
    <span class="microphone-note small" role="status">${note}</span>
  </div>`;
}
