import assert from "node:assert/strict";
import test from "node:test";
import { eventParser } from "../../app/web/core/event_parser.js";

/** @param {string[]} parts */
function parsed(parts) {
  /** @type {import("../../app/web/core/event_parser.js").ServerEvent[]} */
  const events = [];
  const parse = eventParser((event) => events.push(event), "0");
  parts.forEach(parse);
  return events;
}

test("events come whole, however the stream is cut", () => {
  const stream = "id: 1\r\nevent: job\r\ndata: a\r\ndata:  b\r\n\r\n: heartbeat\n\ndata:c\n\n";
  const expected = [
    { type: "job", data: "a\n b", id: "1" },
    { type: "message", data: "c", id: "1" },
  ];
  assert.deepEqual(parsed([stream]), expected);
  assert.deepEqual(parsed([...stream]), expected);
});

test("an event that is cut off is none", () => {
  assert.deepEqual(parsed(["data: a\n"]), []);
});

test("only line breaks end a line, not every character that looks like one", () => {
  const text = "a\u2028b\u2029c\u0085d";
  assert.deepEqual(parsed([`data: ${text}\n\n`]), [{ type: "message", data: text, id: "0" }]);
});
