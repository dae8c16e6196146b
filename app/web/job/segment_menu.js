/** The menu of a segment. */

import { Menu } from "../core/menu.js";
import { t } from "../core/text.js";
import { html } from "../vendor/ui.js";
import { assignSpeaker, insertAfter, joinWithNext, removeSegment, splitSegment } from "./segment_actions.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */

/** @typedef {import("../core/menu.js").MenuItem} MenuItem */

const MOST_SPEAKERS = 9; // as many as have keys

/** @param {{screen: Screen, segment: import("./types.js").Segment, isLast: boolean, tabindex: number}} props */
export function SegmentMenu({ screen, segment, isLast, tabindex }) {
  const { view } = screen;
  const { id } = segment;
  /** @type {[string, import("../core/text.js").TextKey, () => void][]} */
  const entries = [
    ["edit", "edit.edit", () => view.edit(id)],
    ["clock", "edit.times", () => view.edit(id, null, "start")],
    ["person", "edit.setSpeaker", () => view.edit(id, null, "speaker")],
    ["cut", "edit.split", () => splitSegment(screen, id)],
    ["join", "edit.join", () => joinWithNext(screen, id)],
    ["plus", "edit.insert", () => insertAfter(screen, id)],
    ["trash", "edit.remove", () => removeSegment(screen, id)],
  ];
  /** @type {MenuItem[]} */
  const items = entries
    .filter(([icon]) => !isLast || icon !== "join")
    .map(([icon, key, run]) => ({ icon, label: t(key), run }));
  const speakers = view.speakers.value.slice(0, MOST_SPEAKERS).map(({ name }) => ({
    label: name,
    checked: segment.speaker === name,
    run: () => assignSpeaker(screen, id, name),
  }));
  if (speakers.length) items.push("separator", ...speakers);
  return html`<${Menu} label=${t("edit.more")} icon="more" iconOnly items=${items} tabindex=${tabindex} />`;
}
