/** The keys of the player: on the page, on headsets and on the system's media controls. */

import { useShortcuts } from "../core/keys.js";
import { useEffect, useSignalEffect } from "../vendor/ui.js";
import { muted, nextRate, showsCaptions } from "./player_settings.js";
import { nameOf } from "./types.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */
/** @typedef {import("./types.js").Session} Session */
/** @typedef {import("./playback.js").Playback} Playback */

const STEP_S = 5;

/**
 * @param {Screen} screen
 * @param {boolean} hasPicture
 */
export function usePlayerKeys(screen, hasPicture) {
  const { playback } = screen;
  const faster = () => (playback.rate.value = nextRate(playback.rate.value, 1));
  const slower = () => (playback.rate.value = nextRate(playback.rate.value, -1));
  /** @type {import("../core/keys.js").Shortcut} */
  const captions = {
    keys: "c",
    text: "player.captions",
    run: () => (showsCaptions.value = !showsCaptions.value),
  };
  useShortcuts(
    [
      { keys: " ", text: "player.playOrPause", run: playback.toggle },
      { keys: "k", text: "player.playOrPause", run: playback.toggle },
      { keys: "ArrowLeft", text: "player.back5", run: () => playback.skip(-STEP_S) },
      { keys: "ArrowRight", text: "player.forward5", run: () => playback.skip(STEP_S) },
      { keys: "Shift+ArrowLeft", text: "player.back1", run: () => playback.skip(-1) },
      { keys: "Shift+ArrowRight", text: "player.forward1", run: () => playback.skip(1) },
      { keys: "<", text: "player.slower", run: slower },
      { keys: ">", text: "player.faster", run: faster },
      { keys: "l", text: "player.loop", run: () => toggleLoop(screen) },
      { keys: "m", text: "player.mute", run: () => (muted.value = !muted.value) },
      ...(hasPicture ? [captions] : []),
    ],
    [screen, hasPicture],
    "play",
  );
}

/** Play the segment or subtitle at the cursor again and again, or go on after it. @param {Screen} screen */
export function toggleLoop({ playback, view }) {
  if (playback.loop.value) {
    playback.loop.value = null;
    return;
  }
  const now = playback.time.value;
  const places = view.places();
  const current = places.find((place) => place.end > now) ?? places.at(-1);
  if (!current) return;
  const { key, start, end } = current;
  if (now < start || now >= end) playback.seek(start);
  playback.loop.value = { key, start, end };
}

/** What is repeated is as it is now, also when its edges are moved. Without it the repeating ends. @param {Screen} screen */
export function useLoop({ playback: { loop }, view }) {
  useSignalEffect(() => {
    if (!loop.value) return;
    const { key, start, end } = loop.value;
    const now = view.places().find((place) => place.key === key);
    if (now?.start !== start || now.end !== end)
      loop.value = now ? { key, start: now.start, end: now.end } : null;
  });
}

/**
 * The title and the keys of headsets, lock screens and keyboards.
 * @param {Session} session
 * @param {Playback} playback
 */
export function useMediaSession(session, playback) {
  const job = session.job.value;
  const title = job ? nameOf(job) : "";
  useEffect(() => {
    const media = navigator.mediaSession;
    if (!media) return;
    media.metadata = new MediaMetadata({ title, artist: "whisperfleet" });
    /** @type {[MediaSessionAction, MediaSessionActionHandler][]} */
    const handlers = [
      ["play", () => playback.play()],
      ["pause", () => playback.pause()],
      ["seekbackward", ({ seekOffset }) => playback.skip(-(seekOffset ?? STEP_S))],
      ["seekforward", ({ seekOffset }) => playback.skip(seekOffset ?? STEP_S)],
      ["seekto", ({ seekTime }) => playback.seek(seekTime ?? 0)],
    ];
    for (const [action, handler] of handlers) media.setActionHandler(action, handler);
    return () => {
      media.metadata = null;
      for (const [action] of handlers) media.setActionHandler(action, null);
    };
  }, [title, playback]);
}
