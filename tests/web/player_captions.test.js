import assert from "node:assert/strict";
import { test } from "node:test";
import { escapeCue } from "../../app/web/job/captions_track.js";

test("a caption shows text, never marks", () => {
  assert.equal(escapeCue("<b>A & B</b> -->"), "&lt;b&gt;A &amp; B&lt;/b&gt; --&gt;");
});
