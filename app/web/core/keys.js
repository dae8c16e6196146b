/** Keys that work on a screen, and the list of them that `?` shows. */

import { html, signal, useLayoutEffect } from "../vendor/ui.js";
import { Dialog } from "./dialog.js";
import { t } from "./text.js";

/**
 * @typedef {object} Shortcut
 * @property {string} keys As `KeyboardEvent.key`, with modifiers first: `Control+z` (also Command on a Mac).
 * @property {import("./text.js").TextKey} text What it does.
 * @property {(event: KeyboardEvent) => void} [run] Without it the key is only listed: something else answers it.
 * @property {boolean} [inFields] Also while the user types.
 */

const GROUPS = /** @type {const} */ (["move", "edit", "play", "page"]);

/** @type {import("../vendor/ui.js").Signal<{group: typeof GROUPS[number], shortcuts: Shortcut[]}[]>} */
const active = signal([]);
const isHelpOpen = signal(false);

addEventListener("keydown", (event) => {
  // Where the browser fills in a field, it reports a key without a name.
  if (event.defaultPrevented || !event.key || document.querySelector("dialog[open]")) return;
  const pressed = keysOf(event);
  const isTaken = usesKey(event.target, event.key);
  const shortcut = active.value
    .flatMap(({ shortcuts }) => shortcuts)
    .findLast((candidate) => candidate.run && candidate.keys === pressed && (candidate.inFields || !isTaken));
  if (!shortcut) return;
  event.preventDefault();
  runAlone(event, () => shortcut.run?.(event));
});

const ALONE_MS = 200; // without another letter, a letter is a command
const TEXT_MS = 600; // between the letters of a text that has begun

/** Someone types although nothing is open for it: these letters are no commands. */
let isText = false;
let typedAt = -Infinity; // ms
/** The command of a letter that may be the first one of a text. @type {(() => void) | null} */
let waiting = null;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/**
 * Run what a key does, unless it is a part of a text.
 * @param {KeyboardEvent} event
 * @param {() => void} run
 */
export function runAlone(event, run) {
  if (!isLetter(event)) return isText && event.key === " " ? undefined : run();
  if (isText || event.repeat) return;
  waiting = run;
  timer = setTimeout(runWaiting, ALONE_MS);
}

function runWaiting() {
  const run = waiting;
  dropWaiting();
  typedAt = -Infinity;
  run?.();
}

function dropWaiting() {
  clearTimeout(timer);
  waiting = null;
}

/** @param {KeyboardEvent} event */
function isLetter({ key, ctrlKey, altKey, metaKey }) {
  return /^[\p{L}\p{N}]$/u.test(key ?? "") && !ctrlKey && !altKey && !metaKey;
}

// Before anything else answers the key.
addEventListener(
  "keydown",
  (event) => {
    const isSpace = event.key === " ";
    if (/^(Shift|Control|Alt|AltGraph|Meta|CapsLock)$/.test(event.key)) return;
    isText = (isLetter(event) || isSpace) && event.timeStamp - typedAt < (isText ? TEXT_MS : ALONE_MS);
    if (isText) dropWaiting();
    else runWaiting();
    typedAt = isText || isLetter(event) ? event.timeStamp : -Infinity;
  },
  true,
);
addEventListener("pointerdown", runWaiting, true);

/** @param {KeyboardEvent} event */
function keysOf(event) {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const isLetter = key.length === 1 && key !== key.toUpperCase();
  return [
    (event.ctrlKey || event.metaKey) && "Control",
    event.altKey && "Alt",
    // Which characters need Shift differs between keyboards.
    event.shiftKey && (isLetter || key.length > 1) && "Shift",
    key,
  ]
    .filter(Boolean)
    .join("+");
}

const FIELDS = "textarea, select, input:not([type=range], [type=checkbox], [type=radio], [type=file])";

/**
 * Whether the element that has the focus needs a key itself: text is typed, Space presses buttons, arrows move sliders.
 * @param {EventTarget | null} target
 * @param {string} key
 */
function usesKey(target, key) {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.matches(FIELDS)) return true;
  if (target.matches("input[type=range], input[type=radio]") && /^(Arrow|Page|Home|End)/.test(key))
    return true;
  return (
    target.matches("button, a[href], summary, input:not([type=range])") && (key === " " || key === "Enter")
  );
}

/**
 * Shortcuts while the calling component is shown.
 * @param {Shortcut[]} shortcuts
 * @param {unknown[]} [inputs] When they change, the shortcuts are taken anew.
 * @param {typeof GROUPS[number]} [group] Where the list of keys has them.
 */
export function useShortcuts(shortcuts, inputs = [], group = "edit") {
  // Not after the next frame: who sees a screen can use its keys.
  useLayoutEffect(() => {
    const mine = { group, shortcuts };
    active.value = [...active.peek(), mine];
    return () => {
      active.value = active.peek().filter((other) => other !== mine);
    };
  }, inputs);
}

export function openHelp() {
  isHelpOpen.value = true;
}

export function HelpDialog() {
  if (!isHelpOpen.value) return null;
  const close = () => {
    isHelpOpen.value = false;
  };
  const groups = GROUPS.map((name) => ({
    name,
    shown: active.value.flatMap(({ group, shortcuts }) => (group === name ? shortcuts : [])),
  })).filter(({ shown }) => shown.length);
  return html`<${Dialog} name="help" onClose=${close}>
    <div class="help-groups">
      ${groups.map(
        ({ name, shown }) => html`<section><h3>${t(`help.${name}`)}</h3><dl>
          ${shown.map(({ keys, text }) => html`<dt><${Keys} keys=${keys} /></dt><dd>${t(text)}</dd>`)}
        </dl></section>`,
      )}
    </div>
  <//>`;
}

/** @param {{keys: string}} props */
export function Keys({ keys }) {
  const names = keys.split(/\+(?=.)/);
  return names.map((name, index) => html`${index > 0 && " "}<kbd>${keyName(name)}</kbd>`);
}

/** @param {string} name */
function keyName(name) {
  const symbols = {
    " ": t("key.space"),
    ArrowUp: "↑",
    ArrowDown: "↓",
    ArrowLeft: "←",
    ArrowRight: "→",
    Control: "Ctrl",
  };
  return (
    symbols[/** @type {keyof typeof symbols} */ (name)] ?? (name.length === 1 ? name.toUpperCase() : name)
  );
}
