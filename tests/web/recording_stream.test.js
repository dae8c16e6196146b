import "./page.js";
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { openStream } from "../../app/web/list/live_stream.js";

const STORED = {
  query: "job=true",
  session: "",
  lastEvent: "",
  job: "",
  startsAt: 0,
  isEnding: false,
  withTab: false,
};

/** The connections of the page, oldest first. @type {Socket[]} */
let sockets = [];
/** Why the stream ended, once it has. @type {(Error | null)[]} */
let ends = [];

class Socket {
  bufferedAmount = 0;
  /** @type {any[]} */
  sent = [];
  /** @type {((message: {data: string}) => void) | null} */
  onmessage = null;
  /** @type {((close: {code: number}) => void) | null} */
  onclose = null;
  code = 0;

  /** @param {string} url */
  constructor(url) {
    this.query = new URL(url).searchParams;
    sockets.push(this);
  }

  /** @param {string} text */
  send(text) {
    this.sent.push(JSON.parse(text));
  }

  /** @param {number} code */
  close(code) {
    this.code = code;
  }

  /** The service says so. @param {Record<string, unknown>} event */
  tell(event) {
    this.onmessage?.({ data: JSON.stringify({ event_id: `event_${this.sent.length}`, ...event }) });
  }

  /** @param {number} parts That the service has. @param {string} [type] */
  has(parts, type = "session.created") {
    this.tell({ type, job_id: "j1", session: { id: "s1", received_bytes: 4800 * parts } });
  }

  /** The numbers of the parts that were sent. */
  get parts() {
    const audio = this.sent.filter(({ type }) => type === "input_audio_buffer.append");
    return audio.map((event) => Buffer.from(event.audio, "base64")[0]);
  }
}

beforeEach(() => {
  mock.timers.enable({ apis: ["setInterval", "Date"], now: 1e12 });
  Object.assign(globalThis, { WebSocket: Socket });
  [sockets, ends] = [[], []];
});

afterEach(() => mock.timers.reset());

/** @param {Partial<typeof STORED>} [stored] @param {number} [unsent] */
function opened(stored, unsent = 0) {
  const parts = Array.from({ length: unsent }, (_, place) => part(place));
  const handlers = {
    onEvent: () => {},
    onEnd: (/** @type {Error | null} */ reason) => void ends.push(reason),
  };
  return openStream({ ...STORED, ...stored }, { first: 0, parts }, handlers);
}

/** @param {number} number */
const part = (number) => new Uint8Array(4800).fill(number);

test("sound waits for the service, and what a broken connection lost is sent again", () => {
  const stream = opened();
  for (const number of [0, 1]) stream.append(part(number));
  sockets[0].has(0);
  for (const number of [2, 3]) stream.append(part(number));
  assert.deepEqual(sockets[0].parts, [0, 1, 2, 3]);
  sockets[0].tell({ type: "input_audio_buffer.speech_started", event_id: "event_9" });
  sockets[0].onclose?.({ code: 1006 });
  assert.ok(stream.trouble.value);
  stream.append(part(4));
  mock.timers.tick(3000);
  assert.deepEqual([...sockets[1].query.values()], ["s1", "event_9"]);
  sockets[1].has(3);
  assert.deepEqual(sockets[1].parts, [3, 4]);
  assert.equal(stream.trouble.value, "");
});

test("a connection that says nothing is left, without ending the stream", () => {
  opened();
  sockets[0].has(0);
  mock.timers.tick(21_000);
  mock.timers.tick(3000);
  assert.equal(sockets[0].code, 4000);
  assert.equal(sockets.length, 2);
});

test("a recording ends once the service has all of it", () => {
  const stream = opened();
  sockets[0].has(0);
  stream.append(part(0));
  stream.finish();
  assert.equal(sockets[0].sent.at(-1).type, "session.update");
  assert.deepEqual(ends, []);
  sockets[0].has(1, "session.updated");
  assert.deepEqual(ends, [null]);
  assert.equal(sockets[0].code, 1000);
});

/** @param {Socket} socket @param {string} code */
function refuse(socket, code) {
  socket.tell({ type: "error", error: { code, type: "invalid_request_error", message: "No." } });
  socket.onclose?.({ code: 1008 });
}

test("where the service has lost the stream, another one goes on with its job", () => {
  opened({ session: "s0", job: "j1" }, 3);
  refuse(sockets[0], "stream_not_found");
  assert.equal(sockets[1].query.get("job_id"), "j1");
  sockets[1].has(1);
  assert.deepEqual(sockets[1].parts, [1, 2]);
});

test("where the job has ended, what the service lacks becomes a new one", () => {
  const stream = opened({ session: "s0", job: "j0" }, 2);
  refuse(sockets[0], "stream_not_found");
  refuse(sockets[1], "job_not_found");
  assert.deepEqual([...sockets[2].query.keys()], ["job"]);
  sockets[2].has(0);
  stream.append(part(2));
  assert.deepEqual(sockets[2].parts, [0, 1, 2]);
});

test("where the job has ended and nothing is left, the recording has ended, too", () => {
  opened({ session: "s0", job: "j0" });
  refuse(sockets[0], "stream_not_found");
  refuse(sockets[1], "job_not_found");
  assert.equal(ends.length, 1);
});

test("a service that takes no stream says why, and nothing is tried again", () => {
  opened();
  sockets[0].tell({
    type: "error",
    error: { code: "quota", type: "rate_limit_error", message: "Too many." },
  });
  sockets[0].onclose?.({ code: 1008 });
  mock.timers.tick(60_000);
  assert.deepEqual([ends.map((reason) => reason?.message), sockets.length], [["Too many."], 1]);
});
