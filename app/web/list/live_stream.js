/** The stream of a recording: its sound on the way to the service, over connections that may break. */

import { apiKey, request, unreachable } from "../core/api.js";
import { mayPass } from "../core/events.js";
import { address } from "../core/service.js";
import { save } from "../core/storage.js";
import { errorText, t } from "../core/text.js";
import { signal } from "../vendor/ui.js";
import { soundStorage } from "./upload_storage.js";

/** @typedef {{type: string, [name: string]: any}} LiveEvent As docs/http.md has them. */

/**
 * @typedef {object} StoredStream What outlives the page.
 * @property {string} query Of a new stream.
 * @property {string} session Its id; empty: there is none yet.
 * @property {string} lastEvent The id of the last one that came.
 * @property {string} job
 * @property {number} startsAt Where the stream begins in the job, in s: a job may go on with another one.
 * @property {boolean} isEnding Nothing follows what is recorded.
 * @property {boolean} withTab
 */

/** @typedef {{first: number, parts: Uint8Array<ArrayBuffer>[]}} Unsent Sound in parts; `first`: the place of the first one. */

export const STORED = "recording";
export const PARTS_PER_S = 10;
const PART_BYTES = 4800;
const PATH = "/v1/realtime";
const NO_HANDSHAKE = 426; // the answer to all other requests
const TICK_MS = 1000;
const ASK_MS = 2000; // how much the service has
const DEAD_MS = 20_000; // the browser notices a dead connection only after minutes
const RETRY_MS = 2000;
const QUEUED_BYTES = 1 << 20; // of the socket
const LATE_PARTS = 4 * PARTS_PER_S; // the browser keeps what the service does not have after that time
const MOST_PARTS = 1800 * PARTS_PER_S;
const [NORMAL, ABNORMAL, RESTART, BROKEN] = [1000, 1006, 1012, 4000]; // codes of a close: only the first ends the stream
/** The stream has ended, and another one can follow it. */
const TOO_LONG = "stream_too_long";
const OVER = ["stream_not_found", "event_not_kept", TOO_LONG];

/** @typedef {ReturnType<typeof openStream>} LiveStream */

/**
 * @param {StoredStream} stored
 * @param {Unsent} unsent Of an earlier page.
 * @param {object} handlers
 * @param {(event: LiveEvent) => void} handlers.onEvent
 * @param {(reason: Error | null) => void} handlers.onEnd null: the service has all of it.
 */
export function openStream(stored, { first, parts }, { onEvent, onEnd }) {
  const state = { ...stored };
  let next = first; // to be sent
  let kept = first + parts.length; // up to which the browser's storage, or the service, has it
  let isStored = parts.length > 0; // some of it in the browser
  let isOpen = false; // the service has said how much it has
  let hasBegun = stored.session !== "";
  let isClosed = false;
  /** @type {WebSocket | null} */
  let socket = null;
  let [heardAt, askedAt, retryAt] = [0, 0, 0];
  /** Why nothing is sent; empty: all is well. */
  const trouble = signal("");
  // Timers of a hidden page may stand still for a minute; the sound comes on.
  const timer = setInterval(tick, TICK_MS);
  const end = () => first + parts.length;

  function tick() {
    if (isClosed) return;
    const now = Date.now();
    if (!socket) now >= retryAt && connect();
    else if (now - heardAt > DEAD_MS) drop();
    else if (isOpen && now - askedAt >= ASK_MS) {
      askedAt = now;
      // The answer to a change of nothing says how much of the sound has come.
      socket.send(JSON.stringify({ type: "session.update", session: { type: "transcription" } }));
    }
    if (parts.length > LATE_PARTS && kept < end()) {
      const from = Math.max(kept, first);
      void soundStorage.put({ first: from, parts: parts.slice(from - first) });
      isStored = true;
      kept = end();
    }
    save(STORED, state);
  }

  function connect() {
    const { session, lastEvent, query, job } = state;
    const resumed = new URLSearchParams({ session, last_event_id: lastEvent });
    const path = `${PATH}?${session ? resumed : job ? `${query}&job_id=${job}` : query}`;
    const key = apiKey.peek();
    const keys = key ? [`openai-insecure-api-key.${encodeURIComponent(key)}`] : [];
    const opened = new WebSocket(address(path).replace(/^http/, "ws"), ["realtime", ...keys]);
    /** @type {{message: string, code?: string, type?: string} | null} */
    let error = null;
    socket = opened;
    heardAt = Date.now();
    opened.onmessage = ({ data }) => {
      heardAt = Date.now();
      const event = JSON.parse(data);
      if (event.type === "error") error = event.error;
      hear(event);
    };
    opened.onclose = ({ code }) => {
      const wasOpen = isOpen;
      drop();
      if (error && code !== ABNORMAL && code !== RESTART) refused(error);
      else if (!wasOpen) void explain(path, key);
    };
  }

  /** The connection is gone, and perhaps what was sent last. */
  function drop() {
    if (socket) socket.onclose = socket.onmessage = null;
    socket?.close(BROKEN);
    socket = null;
    isOpen = false;
    retryAt = Date.now() + RETRY_MS;
    trouble.value ||= t("microphone.offline");
  }

  /** @param {{message: string, code?: string, type?: string}} error */
  function refused(error) {
    const reason = error.code === "job_deleted" ? null : new Error(errorText(error));
    const isFinal = error.type === "invalid_request_error";
    if (state.session && OVER.includes(error.code ?? "")) {
      // After a restart of the service, the job still waits for what follows.
      Object.assign(state, { session: "", lastEvent: "", job: error.code === TOO_LONG ? "" : state.job });
      retryAt = 0;
      tick();
    } else if (!state.session && state.job && isFinal && parts.length) {
      state.job = "";
      retryAt = 0;
      tick();
    } else if (state.session || !hasBegun || isFinal) close(reason);
    else trouble.value = errorText(error);
  }

  /** Browsers hide why a handshake failed: ask without one. @param {string} path @param {string} key */
  async function explain(path, key) {
    retryAt = Number.POSITIVE_INFINITY;
    const error = await request(path, { cache: "no-store" }).then(unreachable, (reason) => reason);
    const passes = hasBegun && (mayPass(error) || error.status === NO_HANDSHAKE);
    if (passes || key !== apiKey.peek()) retryAt = Date.now();
    else close(error);
  }

  /** @param {LiveEvent} event */
  function hear(event) {
    const { type, event_id, session, job_id } = event;
    if (session && job_id !== state.job) {
      if (isStored) void soundStorage.clear(); // what is left belongs to another job
      [first, kept, isStored] = [0, 0, false];
    }
    if (session) forget(Math.floor(session.received_bytes / PART_BYTES));
    if (type === "session.created") {
      isOpen = hasBegun = true;
      trouble.value = "";
      next = first;
      if (session.id !== state.session) state.startsAt = session.received_bytes / PART_BYTES / PARTS_PER_S;
      Object.assign(state, { session: session.id, job: job_id });
    }
    if (isClosed) return;
    state.lastEvent = event_id;
    onEvent({ ...event, startsAt: state.startsAt });
    send();
  }

  /** The service has the parts before this one. @param {number} received */
  function forget(received) {
    parts.splice(0, Math.max(0, received - first));
    first = Math.max(first, received);
    if (isStored && first >= kept) {
      void soundStorage.clear();
      isStored = false;
    }
    if (state.isEnding && !parts.length) close(null);
  }

  function send() {
    while (isOpen && socket && next < end() && socket.bufferedAmount < QUEUED_BYTES) {
      const audio = btoa(String.fromCharCode(...parts[next++ - first]));
      socket.send(JSON.stringify({ type: "input_audio_buffer.append", audio }));
    }
  }

  /** @param {Error | null} reason */
  function close(reason) {
    isClosed = true;
    clearInterval(timer);
    if (socket) socket.onclose = socket.onmessage = null;
    socket?.close(NORMAL);
    socket = null;
    save(STORED, null);
    void soundStorage.clear();
    onEnd(reason);
  }

  tick();
  return {
    trouble,
    seconds: () => end() / PARTS_PER_S,

    /** @param {Uint8Array<ArrayBuffer>} part @returns {boolean} Whether more can be taken. */
    append(part) {
      parts.push(part);
      send();
      if (end() % PARTS_PER_S === 0) tick();
      return parts.length < MOST_PARTS;
    },

    /** Nothing follows. */
    finish() {
      state.isEnding = true;
      askedAt = 0;
      send();
      tick();
    },
  };
}
