import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import { uploadQueue } from "../../app/web/list/upload_queue.js";
import { mayKeep, newRow, restoredRow } from "../../app/web/list/upload_rows.js";

/** @import { SendHandlers, StoredUpload, UploadRow } from "../../app/web/list/upload_rows.js" */

const SIZE = 5_000_000;

/** @param {number} status @param {{code?: string, retryAfter?: number}} [more] */
const refusal = (status, more = {}) => Object.assign(new Error(`status ${status}`), { status, ...more });

/** What a test decides about one call of the transport. @typedef {{row: UploadRow, handlers: SendHandlers, resolve: () => void, reject: (error: Error) => void}} Call */

/** A queue, to which a row of each name is added. @param {...string} names */
function setUp(...names) {
  /** @type {Call[]} */
  const sends = [];
  /** @type {{row: UploadRow, resolve: (job: unknown) => void, reject: (error: Error) => void}[]} */
  const submissions = [];
  /** @type {Map<string, StoredUpload>} */
  const stored = new Map();
  /** @type {unknown[]} */
  const made = [];
  /** @type {string[]} */
  const discarded = [];
  const server = { offset: /** @type {number | Promise<number>} */ (0), list: Promise.resolve() };
  const queue = uploadQueue({
    transport: {
      send: (row, handlers) =>
        new Promise((resolve, reject) => {
          handlers.signal.addEventListener("abort", () => reject(handlers.signal.reason));
          sends.push({ row, handlers, resolve, reject });
        }),
      offset: async () => server.offset,
      submit: (row) => new Promise((resolve, reject) => void submissions.push({ row, resolve, reject })),
      discard: async (uploadId) => void discarded.push(uploadId),
    },
    storage: {
      put: async (row) => void stored.set(row.id, row),
      putFile: async () => true,
      remove: async (id) => void stored.delete(id),
    },
    onJob: async (job) => {
      made.push([job, queue.rows.value.length]);
      await server.list;
    },
  });
  queue.add(names.map((name) => row(name)));
  return { queue, sends, submissions, stored, made, discarded, server };
}

/** @param {string} name @param {Partial<StoredUpload>} [about] */
function row(name, about = {}) {
  return newRow(
    { name, size: SIZE, ...about },
    { options: { language: "de" }, tab: "1", file: new File(["x"], name) },
  );
}

const settle = async () => {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
};

/** @param {ReturnType<typeof setUp>["queue"]} queue */
const states = (queue) => queue.rows.value.map(({ state }) => state);

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
});

test("two are sent at a time, the others wait for their turn", async () => {
  const { queue, sends, submissions } = setUp("a", "b", "c", "d");
  assert.deepEqual(states(queue), ["sending", "sending", "waiting", "waiting"]);
  sends[1].resolve();
  await settle();
  assert.deepEqual(states(queue), ["sending", "submitting", "waiting", "waiting"]);
  submissions[0].resolve({ id: "1" });
  await settle();
  assert.deepEqual(
    sends.map((call) => call.row.stored.name),
    ["a", "b", "c"],
  );
});

test("the row goes once the list has its job", async () => {
  const { queue, sends, submissions, made, stored } = setUp("a");
  sends[0].handlers.onBegin("u1");
  sends[0].resolve();
  await settle();
  assert.equal(submissions[0].row.stored.uploadId, "u1");
  assert.ok([...stored.values()][0].isComplete, "a closed tab knows that only the job is missing");
  submissions[0].resolve({ id: "1" });
  await settle();
  assert.deepEqual(made, [[{ id: "1" }, 1]]);
  assert.equal(queue.rows.value.length, 0);
  assert.equal(stored.size, 0);
});

test("a cut connection is tried again after growing pauses, without an end", async () => {
  const { queue, sends } = setUp("a");
  let pause = 1000;
  for (let attempt = 0; attempt < 40; attempt++) {
    sends[attempt].handlers.onBegin("u1");
    sends[attempt].reject(refusal(0));
    await settle();
    assert.deepEqual(states(queue), ["delayed"]);
    mock.timers.tick(pause - 1);
    assert.equal(sends.length, attempt + 1);
    mock.timers.tick(1);
    assert.equal(sends.length, attempt + 2);
    pause = Math.min(pause * 2, 30_000);
  }
  assert.equal(sends[40].row.stored.uploadId, "u1");
});

test("bytes that arrive shorten the next pause again", async () => {
  const { sends } = setUp("a");
  for (const ms of [1000, 2000, 4000]) {
    sends.at(-1)?.reject(refusal(0));
    await settle();
    mock.timers.tick(ms);
  }
  sends[3].handlers.onProgress(1000);
  sends[3].handlers.onProgress(2000);
  sends[3].reject(refusal(502));
  await settle();
  mock.timers.tick(1000);
  assert.equal(sends.length, 5);
});

test("all go on at once when the network is back", async () => {
  const { queue, sends } = setUp("a", "b");
  for (const call of sends.slice()) call.reject(refusal(0));
  await settle();
  assert.deepEqual(states(queue), ["delayed", "delayed"]);
  queue.wake();
  assert.deepEqual(states(queue), ["sending", "sending"]);
});

test("while the connection is cut, waiting rows do not start to fail as well", async () => {
  const { queue, sends } = setUp("a", "b", "c");
  sends[0].reject(refusal(0));
  sends[1].reject(refusal(0));
  await settle();
  assert.deepEqual(states(queue), ["delayed", "delayed", "waiting"]);
});

test("a full queue of the service is waited for as long as it says, while others are uploaded", async () => {
  const { queue, sends, submissions } = setUp("a", "b", "c");
  sends[0].resolve();
  await settle();
  submissions[0].reject(refusal(429, { retryAfter: 10 }));
  await settle();
  assert.deepEqual(states(queue), ["delayed", "sending", "sending"]);
  sends[1].resolve();
  sends[2].resolve();
  await settle();
  for (const call of submissions.slice(1)) call.resolve({});
  await settle();
  mock.timers.tick(9999);
  assert.equal(submissions.length, 3);
  mock.timers.tick(1);
  await settle();
  assert.equal(submissions.length, 4);
  assert.equal(submissions[3].row.stored.name, "a");
});

test("a budget that is used up is not waited for", async () => {
  const { queue, sends, submissions } = setUp("a", "b");
  sends[0].reject(refusal(429, { code: "insufficient_quota" }));
  sends[1].resolve();
  await settle();
  submissions[0].reject(refusal(429, { code: "insufficient_quota" }));
  await settle();
  assert.deepEqual(states(queue), ["failed", "failed"]);
});

test("an upload that the service no longer has starts anew, and says so if bytes are lost", async () => {
  for (const [status, sent, isRestarted] of /** @type {const} */ ([
    [410, 4_000_000, true],
    [404, 4_000, false],
  ])) {
    const { queue, sends } = setUp();
    queue.add([row("a", { uploadId: "old" })]);
    sends[0].handlers.onProgress(sent);
    sends[0].reject(refusal(status));
    await settle();
    assert.equal(sends.length, 2);
    assert.equal(sends[1].row.stored.uploadId, "");
    assert.equal(queue.rows.value[0].isRestarted, isRestarted);
  }
});

test("a path that does not exist is an error, not a reason to start anew without end", async () => {
  const { queue, sends } = setUp("a");
  sends[0].reject(refusal(404));
  await settle();
  assert.deepEqual(states(queue), ["failed"]);
  assert.equal(sends.length, 1);
});

test("a refused recording keeps the message of the service, and is sent again on demand alone", async () => {
  const { queue, sends, submissions } = setUp("a");
  sends[0].resolve();
  await settle();
  submissions[0].reject(refusal(400));
  await settle();
  assert.deepEqual(states(queue), ["failed"]);
  assert.equal(queue.rows.value[0].message, "status 400");
  mock.timers.tick(600_000);
  assert.equal(submissions.length, 1);
  queue.resume(queue.rows.value[0].stored.id, { task: "transcribe" });
  await settle();
  assert.equal(sends.length, 1, "the bytes have arrived already");
  assert.deepEqual(submissions[1].row.stored.options, { task: "transcribe" });
});

test("a paused upload makes way for the next one, and goes on where it was", async () => {
  const { queue, sends, stored } = setUp("a", "b", "c");
  const [{ stored: first }] = queue.rows.value;
  sends[0].handlers.onBegin("u1");
  queue.pause(first.id);
  await settle();
  assert.deepEqual(states(queue), ["paused", "sending", "sending"]);
  assert.ok(sends[0].handlers.signal.aborted);
  assert.ok(stored.get(first.id)?.isPaused, "it is still paused after a reload");
  queue.resume(first.id);
  assert.deepEqual(states(queue), ["waiting", "sending", "sending"]);
  sends[1].resolve();
  await settle();
  await queue.remove(queue.rows.value[1].stored.id);
  assert.equal(sends[3].row.stored.uploadId, "u1");
});

test("a removed upload is removed from the service and from the browser", async () => {
  const { queue, sends, stored, discarded } = setUp("a");
  sends[0].handlers.onBegin("u1");
  await queue.remove(queue.rows.value[0].stored.id);
  assert.ok(sends[0].handlers.signal.aborted);
  assert.deepEqual(discarded, ["u1"]);
  assert.equal(stored.size, 0);
});

test("after a reload without the file, the row asks for it and shows how far it was", async () => {
  const { queue, sends, server } = setUp();
  server.offset = 3_000_000;
  const { stored } = row("a", { uploadId: "u1" });
  queue.add([restoredRow(stored, null)]);
  await settle();
  assert.deepEqual(states(queue), ["fileNeeded"]);
  assert.equal(queue.rows.value[0].progress.value.sent, 3_000_000);
  queue.attach(stored.id, new Blob(["x"]));
  assert.equal(sends[0].row.stored.uploadId, "u1");
});

test("an upload that was complete when the tab was closed needs no file, only its job", async () => {
  const { queue, submissions, server } = setUp();
  server.offset = SIZE;
  queue.add([restoredRow(row("a", { uploadId: "u1" }).stored, null)]);
  await settle();
  assert.equal(submissions[0].row.stored.uploadId, "u1");
});

test("a file that has changed on the disk has to be chosen again", async () => {
  const { queue, sends } = setUp("a");
  sends[0].reject(Object.assign(new Error("changed"), { name: "NotReadableError" }));
  await settle();
  assert.deepEqual(states(queue), ["fileNeeded"]);
});

test("the next upload does not wait until the list has the job of the last one", async () => {
  const { queue, sends, submissions, server } = setUp();
  server.list = new Promise(() => {});
  queue.add(["a", "b", "c", "d"].map((name) => row(name)));
  for (const at of [0, 1]) {
    sends[at].resolve();
    await settle();
    submissions[at].resolve({});
    await settle();
  }
  assert.deepEqual(states(queue), ["submitting", "submitting", "sending", "sending"]);
});

test("a file that is chosen again while the service is asked or away belongs to its row", async () => {
  for (const answer of [new Promise(() => {}), Promise.reject(refusal(0))]) {
    const { queue, sends, server } = setUp();
    server.offset = /** @type {Promise<number>} */ (answer);
    const { stored } = row("a", { uploadId: "u1" });
    queue.add([restoredRow(stored, null)]);
    await settle();
    queue.attach(stored.id, new Blob(["x"]));
    await settle();
    assert.deepEqual(states(queue), ["sending"]);
    assert.equal(sends.length, 1);
    assert.equal(sends[0].row.stored.uploadId, "u1");
  }
});

test("the browser keeps files up to a limit for each, and for all together", () => {
  /** @param {number} size @param {boolean} isKept */
  const rowOf = (size, isKept) => ({ ...row("a", { size }), isKept });
  const kept = [rowOf(9e8, true), rowOf(9e8, true), rowOf(9e8, true), rowOf(9e8, false)];
  assert.ok(mayKeep([], 1e9));
  assert.ok(!mayKeep([], 1e9 + 1));
  assert.ok(mayKeep(kept, 9e8));
  assert.ok(!mayKeep([...kept, rowOf(9e8, true)], 9e8));
});
