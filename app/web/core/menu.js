/** A button that opens a menu, as the ARIA Authoring Practices describe it. */

import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/ui.js";
import { Icon } from "./icons.js";
import { placed } from "./placement.js";

/** @typedef {import("../vendor/ui.js").ComponentChildren} ComponentChildren */

/**
 * @typedef {object} Action An item of a menu.
 * @property {string} label
 * @property {string} [hint] A second line.
 * @property {string} [icon]
 * @property {boolean} [checked] Of an item that is switched on and off.
 * @property {boolean} [danger]
 * @property {() => void} [run]
 * @property {MenuItems} [items] That take the place of the others when it is chosen.
 */

/** @typedef {readonly (Action | "separator" | false | null | undefined)[]} MenuItems What is false is not there. */

/**
 * @typedef {object} MenuProps
 * @property {string} label Of the button.
 * @property {MenuItems} items
 * @property {string} [icon] Shown before the label.
 * @property {boolean} [iconOnly] The label is for screen readers.
 * @property {ComponentChildren} [face] Shown instead of the icon and the label.
 * @property {string} [className] Of the button. Default: `button`, or `icon-button`.
 * @property {boolean} [disabled]
 * @property {number} [tabindex] Of the button.
 */

let lastId = 0;

/** @param {MenuProps} props */
export function Menu({ label, items, icon, iconOnly = false, face, className, disabled = false, tabindex }) {
  const [first, setFirst] = useState(/** @type {"start" | "end" | null} */ (null)); // null: the menu is closed
  const [id] = useState(() => `menu-${++lastId}`);
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));

  /** @param {KeyboardEvent} event */
  const openByArrow = (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    setFirst(event.key === "ArrowDown" ? "start" : "end");
  };
  const close = (/** @type {boolean} */ returnsFocus) => {
    setFirst(null);
    if (returnsFocus) button.current?.focus();
  };
  return html`<span class="menu-anchor">
    <button ref=${button} type="button" class=${className ?? (iconOnly ? "icon-button" : "button")}
      aria-haspopup="menu" aria-expanded=${first !== null} aria-controls=${first === null ? undefined : id}
      aria-label=${label} title=${iconOnly ? label : undefined} disabled=${disabled} tabindex=${tabindex}
      onClick=${() => setFirst(first === null ? "start" : null)} onKeyDown=${openByArrow}>
      ${face ?? html`${icon && html`<${Icon} name=${icon} />`}${!iconOnly && html`<span>${label}</span><${Icon} name="chevron" />`}`}
    </button>
    ${first && html`<${MenuList} id=${id} label=${label} items=${items} first=${first} button=${button} close=${close} />`}
  </span>`;
}

/**
 * @typedef {object} ListProps
 * @property {string} id
 * @property {string} label
 * @property {MenuItems} items
 * @property {"start" | "end"} first Where the focus begins.
 * @property {import("../vendor/ui.js").RefObject<HTMLButtonElement | null>} button
 * @property {(returnsFocus: boolean) => void} close
 */

/** @param {ListProps} props */
function MenuList({ id, label, items: all, first, button, close }) {
  const [chosen, choose] = useState(/** @type {MenuItems | null} */ (null));
  const items = (chosen ?? all).filter((item) => !!item);
  const list = useRef(/** @type {HTMLDivElement | null} */ (null));
  useOpen(list, button, first, chosen);
  useOutside(list, button, () => close(false));

  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (event.key === "Tab") return close(true); // and the browser goes on from the button
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = targetOf(event.key, itemsIn(list.current));
    if (event.key !== "Escape" && !target) return;
    event.preventDefault();
    event.stopPropagation(); // a dialog around it stays open
    if (target) target.focus();
    else close(true);
  };
  /** @param {Action} item */
  const take = (item) => {
    if (item.items) return choose(item.items);
    close(true);
    item.run?.();
  };
  return html`<div ref=${list} id=${id} class="menu raised" role="menu" aria-label=${label} popover="manual" onKeyDown=${onKeyDown}>
    ${items.map((item, index) =>
      item === "separator"
        ? html`<hr key=${index} role="separator" />`
        : html`<button key=${index} type="button" role=${item.checked === undefined ? "menuitem" : "menuitemcheckbox"}
            aria-checked=${item.checked} tabindex="-1" class=${item.danger ? "danger" : ""} onClick=${() => take(item)}>
            ${item.checked === undefined ? item.icon && html`<${Icon} name=${item.icon} />` : html`<span class="menu-check">${item.checked && html`<${Icon} name="check" />`}</span>`}
            <span class="menu-text"><span>${item.label}${item.items && " …"}</span>${item.hint && html`<small class="small muted">${item.hint}</small>`}</span>
          </button>`,
    )}
  </div>`;
}

/**
 * @param {HTMLElement | null} list
 * @returns {HTMLElement[]}
 */
function itemsIn(list) {
  return [...(list?.querySelectorAll("[role^=menuitem]") ?? [])].map(
    (item) => /** @type {HTMLElement} */ (item),
  );
}

/**
 * The item that a key leads to: by arrows, Home and End, or by its first letter.
 * @param {string} key
 * @param {HTMLElement[]} items
 */
function targetOf(key, items) {
  const current = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  if (key === "ArrowDown") return items[(current + 1) % items.length];
  if (key === "ArrowUp") return items.at(Math.max(current, 0) - 1);
  if (key === "Home") return items[0];
  if (key === "End") return items.at(-1);
  if (key.length !== 1 || key === " ") return undefined;
  const following = [...items.slice(current + 1), ...items.slice(0, current + 1)];
  return following.find((item) => item.textContent?.trim().toLowerCase().startsWith(key.toLowerCase()));
}

/**
 * Show the list above everything else, beside its button, and focus an item.
 * @param {import("../vendor/ui.js").RefObject<HTMLElement | null>} list
 * @param {import("../vendor/ui.js").RefObject<HTMLElement | null>} button
 * @param {"start" | "end"} first
 * @param {unknown} chosen Which of its items it shows.
 */
function useOpen(list, button, first, chosen) {
  useLayoutEffect(() => {
    list.current?.showPopover();
  }, []);
  useLayoutEffect(() => {
    const [shown, anchor] = [list.current, button.current];
    if (!shown || !anchor) return;
    const place = () => {
      const { width, height } = shown.getBoundingClientRect();
      const isRtl = getComputedStyle(anchor).direction === "rtl";
      const view = { width: document.documentElement.clientWidth, height: innerHeight };
      const { left, top } = placed(anchor.getBoundingClientRect(), { width, height }, view, isRtl);
      shown.style.left = `${left}px`;
      shown.style.top = `${top}px`;
    };
    place();
    itemsIn(shown)
      .at(first === "start" ? 0 : -1)
      ?.focus({ preventScroll: true });
    const listening = new AbortController();
    addEventListener("scroll", place, { capture: true, passive: true, signal: listening.signal });
    addEventListener("resize", place, { signal: listening.signal });
    return () => listening.abort();
  }, [chosen]);
}

/**
 * @param {import("../vendor/ui.js").RefObject<HTMLElement | null>} list
 * @param {import("../vendor/ui.js").RefObject<HTMLElement | null>} button
 * @param {() => void} close
 */
function useOutside(list, button, close) {
  useEffect(() => {
    const leave = (/** @type {Event} */ event) => {
      const target = /** @type {Node} */ (event.target);
      if (!list.current?.contains(target) && !button.current?.contains(target)) close();
    };
    addEventListener("pointerdown", leave, true);
    return () => removeEventListener("pointerdown", leave, true);
  }, []);
}
