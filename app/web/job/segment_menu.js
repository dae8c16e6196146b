/** The menu of a segment. */

import { Menu } from "../core/menu.js";
import { t } from "../core/text.js";
import { html } from "../vendor/ui.js";
import { insertAfter, joinWithNext, removeSegment, splitSegment } from "./segment_actions.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */

/** @param {{screen: Screen, id: string, isLast: boolean, tabindex: number}} props */
export function SegmentMenu({ screen, id, isLast, tabindex }) {
  const { view } = screen;
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
  const items = entries
    .filter(([icon]) => !isLast || icon !== "join")
    .map(([icon, key, run]) => ({ icon, label: t(key), run }));
  return html`<${Menu} label=${t("edit.more")} icon="more" iconOnly items=${items} tabindex=${tabindex} />`;
}
