/** The menu of a segment. */

import { Icon } from "../core/icons.js";
import { t } from "../core/text.js";
import { html, useEffect, useLayoutEffect, useRef } from "../vendor/ui.js";
import { insertAfter, joinWithNext, removeSegment, splitSegment } from "./segment_actions.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */

/**
 * @param {{screen: Screen, segment: import("./types.js").Segment, isLast: boolean, isOpen: boolean, tabindex: number}} props
 */
export function SegmentMenu({ screen, segment, isLast, isOpen, tabindex }) {
  const { view } = screen;
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const toggle = () => {
    view.menu.value = isOpen ? null : segment.id;
  };
  const close = () => {
    view.menu.value = null;
    button.current?.focus({ preventScroll: true });
  };
  /** @param {() => void} action */
  const choose = (action) => () => {
    close();
    action();
  };
  const { id } = segment;
  /** @type {[Parameters<typeof Icon>[0]["name"], import("../core/text.js").TextKey, () => void][]} */
  const entries = [
    ["edit", "edit.edit", () => view.edit(id)],
    ["clock", "edit.times", () => view.edit(id, null, "start")],
    ["person", "edit.setSpeaker", () => view.edit(id, null, "speaker")],
    ["cut", "edit.split", () => splitSegment(screen, id)],
    ["join", "edit.join", () => joinWithNext(screen, id)],
    ["plus", "edit.insert", () => insertAfter(screen, id)],
    ["trash", "edit.remove", () => removeSegment(screen, id)],
  ];
  return html`<span class="segment-menu">
    <button class="icon-button" ref=${button} tabindex=${tabindex} aria-label=${t("edit.more")} title=${t("edit.more")}
      aria-haspopup="menu" aria-expanded=${isOpen} onClick=${toggle}><${Icon} name="more" /></button>
    ${
      isOpen &&
      html`<${OpenMenu} close=${close}>
      ${entries
        .filter(([, key]) => !isLast || key !== "edit.join")
        .map(
          ([icon, key, action]) =>
            html`<button role="menuitem" tabindex="-1" onClick=${choose(action)}><${Icon} name=${icon} />${t(key)}</button>`,
        )}
    <//>`
    }
  </span>`;
}

/** @param {{close: () => void, children?: unknown}} props */
function OpenMenu({ close, children }) {
  const menu = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => {
    const element = /** @type {HTMLElement} */ (menu.current);
    element.classList.toggle("above", element.getBoundingClientRect().bottom > innerHeight - 8);
    /** @type {HTMLElement | null} */ (element.querySelector("button"))?.focus({ preventScroll: true });
  }, []);
  useEffect(() => {
    const outside = (/** @type {PointerEvent} */ event) => {
      if (!menu.current?.parentElement?.contains(/** @type {Node} */ (event.target))) close();
    };
    addEventListener("pointerdown", outside);
    return () => removeEventListener("pointerdown", outside);
  }, []);
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const items = /** @type {HTMLElement[]} */ ([...(menu.current?.querySelectorAll("button") ?? [])]);
    const at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const target = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    event.stopPropagation();
    if (event.key === "Escape" || event.key === "Tab") close();
    else if (target === undefined) return;
    else items.at(target % items.length)?.focus();
    event.preventDefault();
  };
  return html`<div class="menu" role="menu" ref=${menu} onKeyDown=${press}>${children}</div>`;
}
