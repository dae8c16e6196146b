/** Where the caret, a click or a selection is in the text of a drawn segment. */

/**
 * @param {Element} text The `.segment-text` of a row.
 * @param {Node} node In it.
 * @param {number} offset In the node.
 * @returns {number} In the whole text.
 */
export function offsetIn(text, node, offset) {
  const range = document.createRange();
  range.setStart(text, 0);
  range.setEnd(node, offset);
  return range.toString().length;
}

/**
 * What is selected of a drawn text, in that of its segment.
 * @param {HTMLElement} text
 * @returns {{start: number, end: number} | null}
 */
export function selectionIn(text) {
  const selection = getSelection();
  if (!selection?.rangeCount) return null;
  const { startContainer, startOffset, endContainer, endOffset } = selection.getRangeAt(0);
  if (!text.contains(startContainer)) return null;
  const from = Number(text.dataset.from);
  const start = from + offsetIn(text, startContainer, startOffset);
  if (!text.contains(endContainer)) return { start, end: start };
  const selected = (text.textContent ?? "").slice(start - from, offsetIn(text, endContainer, endOffset));
  return { start, end: start + selected.trimEnd().length }; // Windows selects the space after a word as well
}

/** The text of a segment that is drawn somewhere, without the fields. */
export const TEXT = ".segment-text:not(textarea, [contenteditable])";

/**
 * A part of a segment's text, as far as a drawn text has it.
 * @param {HTMLElement} text
 * @param {{start: number, end: number}} part
 * @returns {Range | null}
 */
export function rangeInText(text, part) {
  const [from, all] = [Number(text.dataset.from), text.textContent?.length ?? 0];
  if (part.end <= from || part.start >= from + all) return null;
  const [start, end] = [Math.max(0, part.start - from), Math.min(part.end - from, all)];
  const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  let at = 0;
  let hasStart = false;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const length = node.nodeValue?.length ?? 0;
    if (!hasStart && start < at + length) {
      range.setStart(node, start - at);
      hasStart = true;
    }
    if (hasStart && end <= at + length) {
      range.setEnd(node, end - at);
      return range;
    }
    at += length;
  }
  return null;
}

/** What is selected in a field. @param {HTMLElement} field */
export function caretIn(field) {
  if (field instanceof HTMLTextAreaElement) return { start: field.selectionStart, end: field.selectionEnd };
  const { anchorNode, anchorOffset, focusNode, focusOffset } = /** @type {Selection} */ (getSelection());
  const ends = [
    offsetIn(field, anchorNode ?? field, anchorOffset),
    offsetIn(field, focusNode ?? field, focusOffset),
  ];
  return { start: Math.min(...ends), end: Math.max(...ends) };
}

/**
 * Select a part of a field that is one text.
 * @param {HTMLElement} field
 * @param {number} start
 * @param {number} end
 */
export function placeCaret(field, start, end) {
  field.normalize();
  const node = field.firstChild ?? field;
  const most = node.nodeValue?.length ?? 0;
  getSelection()?.setBaseAndExtent(node, Math.min(start, most), node, Math.min(end, most));
}
