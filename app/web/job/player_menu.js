/** What the player can do besides: options, and on phones the buttons that find no place. */

import { Icon } from "../core/icons.js";
import { t } from "../core/text.js";
import { html, useEffect, useRef, useSignal } from "../vendor/ui.js";
import { toggleLoop } from "./player_keys.js";
import { showsCaptions, skipsBack } from "./player_settings.js";

/** @param {import("./player_controls.js").ControlsProps} props */
export function PlayerMenu({ session, playback, waveform, media, hasPicture }) {
  const isOpen = useSignal(false);
  const root = useRef(/** @type {HTMLDivElement | null} */ (null));
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useClosing(isOpen, root, button);
  return html`<div class="player-more" ref=${root}>
    <button class="icon-button" ref=${button} aria-label=${t("player.more")} title=${t("player.more")}
      aria-expanded=${isOpen.value} onClick=${() => (isOpen.value = !isOpen.value)}>
      <${Icon} name="more" />
    </button>
    ${
      isOpen.value &&
      html`<div class="menu" role="group" aria-label=${t("player.more")}>
      <${Choice} label=${t("player.skipsBack")} isOn=${skipsBack.value} toggle=${() => (skipsBack.value = !skipsBack.value)} />
      <${Choice} label=${t("player.loop")} isOn=${playback.loop.value !== null} toggle=${() => toggleLoop(session, playback)} />
      <button class="narrow-only" onClick=${() => waveform.zoom(1)}><${Icon} name="zoomIn" />${t("player.zoomIn")}</button>
      <button class="narrow-only" onClick=${() => waveform.zoom(-1)}><${Icon} name="zoomOut" />${t("player.zoomOut")}</button>
      ${hasPicture && html`<${PictureChoices} media=${media} />`}
    </div>`
    }
  </div>`;
}

/** @param {{media: HTMLVideoElement | null}} props */
function PictureChoices({ media }) {
  return html`
    <${Choice} class="narrow-only" label=${t("player.captions")} isOn=${showsCaptions.value}
      toggle=${() => (showsCaptions.value = !showsCaptions.value)} />
    <button class="narrow-only" onClick=${() => media?.requestFullscreen?.()}>
      <${Icon} name="fullscreen" />${t("player.fullscreen")}
    </button>
  `;
}

/** @param {{label: string, isOn: boolean, toggle: () => void, class?: string}} props */
function Choice({ label, isOn, toggle, class: extra }) {
  return html`<button class=${extra} aria-pressed=${isOn} onClick=${toggle}>
    <span class="player-check">${isOn && html`<${Icon} name="check" />`}</span>${label}
  </button>`;
}

/**
 * Escape, and a click elsewhere, close the menu.
 * @param {import("../vendor/ui.js").Signal<boolean>} isOpen
 * @param {{current: HTMLElement | null}} root
 * @param {{current: HTMLElement | null}} button
 */
function useClosing(isOpen, root, button) {
  useEffect(() => {
    if (!isOpen.value) return;
    const ending = new AbortController();
    const options = { signal: ending.signal };
    addEventListener(
      "pointerdown",
      (event) => {
        if (!root.current?.contains(/** @type {Node} */ (event.target))) isOpen.value = false;
      },
      options,
    );
    root.current?.addEventListener(
      "keydown",
      (event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        isOpen.value = false;
        button.current?.focus();
      },
      options,
    );
    return () => ending.abort();
  }, [isOpen.value]);
}
