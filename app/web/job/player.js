/** The player: docked at the lower edge of the window, with its waveform. The picture of a film is small or large. */

import { t } from "../core/text.js";
import { effect, html, useEffect, useMemo, useSignal, useSignalEffect } from "../vendor/ui.js";
import { createCaptions } from "./captions_track.js";
import { createSource } from "./media_source.js";
import { Controls, Transport } from "./player_controls.js";
import { useLoop, useMediaSession, usePlayerKeys } from "./player_keys.js";
import { isSmall, keepPosition, muted, positionOf, showsCaptions, volume } from "./player_settings.js";
import { createWaveform } from "./waveform.js";
import { WaveformBar } from "./waveform_bar.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("./types.js").Job} Job */
/** @typedef {import("./playback.js").Playback} Playback */
/** @typedef {import("./media_source.js").MediaSource} MediaSource */

const KEPT_EVERY_MS = 5000;
const TYPED_MS = 300; // without a change, until the captions show it

/** @param {{screen: import("./segment_actions.js").Screen}} props */
export function Player({ screen }) {
  const { session, playback, view } = screen;
  const media = useSignal(/** @type {HTMLVideoElement | null} */ (null));
  const source = useSignal(/** @type {MediaSource | null} */ (null));
  const hasPicture = useSignal(false);
  const waveform = useMemo(() => createWaveform(session, playback), [session, playback]);
  useMedia(session, playback, media, source, hasPicture);
  useCaptions(view, media, hasPicture);
  usePosition(session.id, playback);
  usePlayerKeys(screen, hasPicture.value);
  useLoop(screen);
  useMediaSession(session, playback);
  const setMedia = useMemo(
    () => (/** @type {HTMLVideoElement | null} */ element) => (media.value = element),
    [],
  );
  const size = hasPicture.value ? (isSmall() ? "small" : "large") : "none";
  return html`
    <div class="player-picture" data-size=${size} onClick=${() => clickPicture(playback)}>
      <video ref=${setMedia} playsinline preload="metadata" tabindex="-1"></video>
    </div>
    <section class="player" aria-label=${t("player.label")}>
      <div class="player-bar">
        <${Transport} playback=${playback} />
        <${WaveformBar} session=${session} waveform=${waveform} playback=${playback} speakers=${view.speakers} />
        <${Controls} screen=${screen} waveform=${waveform} media=${media.value} hasPicture=${hasPicture.value} />
      </div>
      ${source.value && html`<${SourceState} source=${source.value} />`}
    </section>
  `;
}
/** On the full screen the browser's own controls answer. @param {Playback} playback */
function clickPicture(playback) {
  if (!document.fullscreenElement) playback.toggle();
}

/**
 * Let the media element play the job's recording.
 * @param {Session} session
 * @param {Playback} playback
 * @param {import("../vendor/ui.js").Signal<HTMLVideoElement | null>} media
 * @param {import("../vendor/ui.js").Signal<MediaSource | null>} source
 * @param {import("../vendor/ui.js").Signal<boolean>} hasPicture
 */
function useMedia(session, playback, media, source, hasPicture) {
  const element = media.value; // null at the first drawing
  useEffect(() => {
    if (!element) return;
    playback.duration.value ||= session.job.peek()?.duration ?? 0;
    playback.resume(positionOf(session.id));
    const detach = playback.attach(element);
    const opened = createSource(() => /** @type {Job} */ (session.job.peek()), element);
    source.value = opened;
    const ending = new AbortController();
    const look = () => (hasPicture.value = element.videoWidth > 0);
    for (const type of ["loadedmetadata", "resize"])
      element.addEventListener(type, look, { signal: ending.signal });
    opened.open();
    return () => {
      ending.abort();
      detach();
      opened.close();
    };
  }, [element]);
  useSignalEffect(() => {
    void session.job.value?.progress.stage;
    source.value?.reconsider();
  });
  useSignalEffect(() => {
    if (!media.value) return;
    [media.value.volume, media.value.muted] = [volume.value, muted.value];
  });
}

/**
 * @param {import("./transcript_view.js").View} view
 * @param {import("../vendor/ui.js").Signal<HTMLVideoElement | null>} media
 * @param {import("../vendor/ui.js").Signal<boolean>} hasPicture
 */
function useCaptions({ cues, hasCaptions }, media, hasPicture) {
  const captions = useMemo(() => media.value && createCaptions(media.value), [media.value]);
  useEffect(() => {
    if (!captions) return;
    return effect(() => {
      hasCaptions.value = showsCaptions.value && hasPicture.value;
      if (!hasCaptions.value) return captions.hide();
      const rows = cues.rows.value;
      const timer = setTimeout(() => captions.show(rows), TYPED_MS);
      return () => clearTimeout(timer);
    });
  }, [captions]);
}

/**
 * Remember where the reader is.
 * @param {string} id
 * @param {Playback} playback
 */
function usePosition(id, playback) {
  useEffect(() => {
    const keep = () => keepPosition(id, playback.time.peek(), playback.duration.peek());
    const timer = setInterval(() => playback.playing.peek() && keep(), KEPT_EVERY_MS);
    addEventListener("pagehide", keep);
    return () => {
      clearInterval(timer);
      removeEventListener("pagehide", keep);
      keep();
    };
  }, [id]);
}

/** @param {{source: MediaSource}} props */
function SourceState({ source }) {
  const state = source.state.value;
  if (state.kind === "preparing" || state.kind === "waiting") {
    return html`<p class="toolbar player-note small muted" role="status">${t(`player.${state.kind}`)}</p>`;
  }
  if (state.kind !== "failed") return null;
  return html`<p class="toolbar player-note small" role="status">
    <span dir="auto">${state.message}</span>
    ${state.canRetry && html`<button class="button quiet" onClick=${source.open}>${t("player.retry")}</button>`}
  </p>`;
}
