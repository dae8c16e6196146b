/** The running recording: its level, its time, and how to pause and end it. */

import { clock } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { route } from "../core/router.js";
import { t } from "../core/text.js";
import { html, useEffect, useRef, useState } from "../vendor/ui.js";
import { recording } from "./microphone.js";

/** Whether the screen is that of the recording's job, with its text. */
export const isOnScreen = () =>
  route.value.screen === "job" && "id" in route.value && route.value.id === recording.value?.job.value;

export function MicrophoneBar() {
  const current = recording.value;
  const stop = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useEffect(() => {
    // The button that has started it is gone, and the focus with it.
    if (document.activeElement === document.body) stop.current?.focus();
  }, [current]);
  if (!current) return null;
  const state = current.state.value;
  const isRunning = state === "running";
  const note = current.trouble.value || (isRunning ? "" : t(`microphone.${state}`));
  return html`<div class="microphone" role="group" aria-label=${t("microphone.label")} data-state=${state}>
    <span class="microphone-light" aria-hidden="true"></span>
    <${Elapsed} seconds=${current.seconds} />
    <${Level} level=${current.level} />
    ${
      state !== "ending" &&
      html`<button class="button" onClick=${current.toggle}><${Icon} name=${isRunning ? "pause" : "microphone"} />${t(isRunning ? "microphone.pause" : "microphone.goOn")}</button>
      <button ref=${stop} class="button primary" onClick=${current.stop}><${Icon} name="stop" />${t("microphone.stop")}</button>`
    }
    ${current.job.value && !isOnScreen() && html`<a class="button quiet" href=${`#/jobs/${current.job.value}`}>${t("microphone.show")}</a>`}
    <span class="microphone-note small" role="status">${note}</span>
  </div>`;
}

/** @param {{seconds: () => number}} props */
function Elapsed({ seconds }) {
  const [now, setNow] = useState(seconds());
  useEffect(() => {
    const timer = setInterval(() => setNow(seconds()), 250);
    return () => clearInterval(timer);
  }, [seconds]);
  return html`<span class="numbers" role="timer">${clock(now)}</span>`;
}

/** @param {{level: () => number}} props */
function Level({ level }) {
  const meter = useRef(/** @type {HTMLMeterElement | null} */ (null));
  useEffect(() => {
    let frame = 0;
    const draw = () => {
      if (meter.current) meter.current.value = level();
      frame = requestAnimationFrame(draw);
    };
    draw();
    return () => cancelAnimationFrame(frame);
  }, [level]);
  return html`<meter ref=${meter} class="microphone-level" min="0" max="1" aria-label=${t("microphone.level")}></meter>`;
}
