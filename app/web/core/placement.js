/** Where a menu stands, so that all of it can be seen. */

const GAP = 4; // px, between the button and its menu
const MARGIN = 8; // px, to the edges of the window

/**
 * @typedef {{width: number, height: number}} Size px
 * @typedef {{left: number, right: number, top: number, bottom: number}} Box px, from the window's corner
 */

/**
 * Below its button, or above it where there is more space. It begins where the button does, or ends there.
 * @param {Box} button
 * @param {Size} menu
 * @param {Size} view
 * @param {boolean} isRtl Text runs from right to left.
 */
export function placed(button, menu, view, isRtl) {
  const below = view.height - button.bottom - GAP - MARGIN;
  const above = button.top - GAP - MARGIN;
  const isBelow = menu.height <= below || below >= above;
  const top = isBelow ? button.bottom + GAP : button.top - GAP - menu.height;
  const [aligned, opposite] = isRtl
    ? [button.right - menu.width, button.left]
    : [button.left, button.right - menu.width];
  const fits = aligned >= MARGIN && aligned + menu.width <= view.width - MARGIN;
  return {
    left: within(fits ? aligned : opposite, MARGIN, view.width - menu.width - MARGIN),
    top: within(top, MARGIN, view.height - menu.height - MARGIN),
  };
}

/**
 * @param {number} value
 * @param {number} low Wins if there is no space between both.
 * @param {number} high
 */
function within(value, low, high) {
  return Math.max(low, Math.min(value, high));
}
