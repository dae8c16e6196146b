/** What the player can do besides: options, and the buttons that find no place on a phone. */

import { Menu } from "../core/menu.js";
import { t } from "../core/text.js";
import { html } from "../vendor/ui.js";
import { toggleLoop } from "./player_keys.js";
import { showFullScreen, togglePictureInPicture } from "./player_picture.js";
import { showsCaptions, skipsBack } from "./player_settings.js";

const ZOOM_STEPS = 2; // at once: the menu closes after each

/** @param {import("./player_controls.js").ControlsProps} props */
export function PlayerMenu({ session, playback, waveform, media, hasPicture }) {
  const toggleSkip = () => (skipsBack.value = !skipsBack.value);
  const toggleCaptions = () => (showsCaptions.value = !showsCaptions.value);
  /** @type {import("../core/menu.js").MenuItem[]} */
  const items = [
    { label: t("player.skipsBack"), checked: skipsBack.value, run: toggleSkip },
    {
      label: t("player.loop"),
      checked: playback.loop.value !== null,
      run: () => toggleLoop(session, playback),
    },
  ];
  if (waveform.state.value === "ready") {
    items.push(
      { label: t("player.zoomIn"), icon: "zoomIn", run: () => waveform.zoom(ZOOM_STEPS) },
      { label: t("player.zoomOut"), icon: "zoomOut", run: () => waveform.zoom(-ZOOM_STEPS) },
    );
  }
  if (hasPicture && media) {
    items.push(
      { label: t("player.captions"), checked: showsCaptions.value, run: toggleCaptions },
      { label: t("player.fullscreen"), icon: "fullscreen", run: () => showFullScreen(media) },
    );
  }
  if (hasPicture && media && document.pictureInPictureEnabled) {
    const run = () => togglePictureInPicture(media);
    items.push({ label: t("player.pictureInPicture"), icon: "pictureInPicture", run });
  }
  return html`<${Menu} label=${t("player.more")} icon="more" iconOnly items=${items} />`;
}
