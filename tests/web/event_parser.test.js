import assert from "node:assert/strict";
import { test } from "node:test";
import { eventParser } from "../../app/web/core/event_parser.js";

/** The events of a text that arrives in parts of one size. @param {string} text @param {number} size */
function parsed(text, size) {
  /** @type {import("../../app/web/core/event_parser.js").ServerEvent[]} */
  const events = [];
  const parse = eventParser((event) => events.push(event), "0");
  for (let start = 0; start < text.length; start += size) parse(text.slice(start, start + size));
  return events;
}

test("events are read from parts of any size", () => {
  const text =
    ": heartbeat\n\nid: 1\nevent: job\ndata: a\ndata:  b\n\r\ndata\r\n\r\nid: 2\n\nevent: x\n\ndata: end\n\n";
  for (const size of [1, 2, 7, text.length]) {
    assert.deepEqual(parsed(text, size), [
      { type: "job", data: "a\n b", id: "1" },
      { type: "message", data: "", id: "1" },
      { type: "message", data: "end", id: "2" },
    ]);
  }
});

test("only the line breaks of the format end a line, not those that a text may have", () => {
  const data = '{"text": "one\u2028two\u2029three\u0085four\u000bfive"}';
  assert.deepEqual(parsed(`event: job.segments\ndata: ${data}\n\n`, 5), [
    { type: "job.segments", data, id: "0" },
  ]);
});
