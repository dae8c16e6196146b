/** The running recording: its level, its time, and how to end it. */

import { clock } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { t } from "../core/text.js";
import { html, useEffect, useRef, useState } from "../vendor/ui.js";
import { session } from "./microphone.js";

export function MicrophoneBar() {
  const current = session.value;
  const stop = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useEffect(() => {
    // The button that has started it is gone, and the focus with it.
    if (document.activeElement === document.body) stop.current?.focus();
  }, [current]);
  if (!current) return null;
  return html`<div class="microphone" role="group" aria-label=${t("microphone.label")}>
    <span class="microphone-light" aria-hidden="true"></span>
    <${Elapsed} since=${current.startedAt} />
    <${Level} level=${current.level} />
    <button ref=${stop} class="button primary" onClick=${() => current.end(true)}><${Icon} name="stop" />${t("microphone.stop")}</button>
    <button class="icon-button" aria-label=${t("microphone.discard")} title=${t("microphone.discard")}
      onClick=${() => current.end(false)}><${Icon} name="trash" /></button>
  </div>`;
}

/** @param {{since: number}} props */
function Elapsed({ since }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 250);
    return () => clearInterval(timer);
  }, []);
  return html`<span class="numbers" role="timer">${clock((now - since) / 1000)}</span>`;
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
