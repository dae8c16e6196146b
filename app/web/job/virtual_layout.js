/** Where the rows of a long list are, by measured and estimated heights. */

/**
 * @param {readonly string[]} keys
 * @param {Map<string, number>} heights In CSS pixels by key. Gets the estimates of the rows that it does not have.
 * @param {(index: number) => number} estimate
 * @returns {Float64Array} The upper edge of each row, and the lower edge of the last one.
 */
export function offsetsOf(keys, heights, estimate) {
  const offsets = new Float64Array(keys.length + 1);
  for (let index = 0; index < keys.length; index++) {
    const height = heights.get(keys[index]) ?? estimate(index);
    heights.set(keys[index], height);
    offsets[index + 1] = offsets[index] + height;
  }
  return offsets;
}

/**
 * The row at a height; the first or the last one beyond the list's edges. -1 if there are no rows.
 * @param {Float64Array} offsets
 * @param {number} y
 */
export function rowAt(offsets, y) {
  let [low, high] = [0, offsets.length - 2];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (offsets[middle] <= y) low = middle;
    else high = middle - 1;
  }
  return high < 0 ? -1 : low;
}

/** @typedef {{first: number, last: number}} Range Both rows are in it. */

/**
 * The rows to draw. They stay as long as they cover what is seen with half of the margin: a list that is drawn
 * for each pixel would scroll slowly.
 * @param {Float64Array} offsets
 * @param {{top: number, bottom: number}} seen In the coordinates of the list.
 * @param {number} margin
 * @param {Range} drawn
 * @returns {Range}
 */
export function rangeFor(offsets, seen, margin, drawn) {
  const range = (/** @type {number} */ spare) => ({
    first: rowAt(offsets, seen.top - spare),
    last: rowAt(offsets, seen.bottom + spare),
  });
  const [wanted, needed] = [range(margin), range(margin / 2)];
  const covers = drawn.first <= needed.first && drawn.last >= needed.last && drawn.last < offsets.length - 1;
  const isSmall = drawn.last - drawn.first <= 2 * (wanted.last - wanted.first) + 2;
  return covers && isSmall ? drawn : wanted;
}

/**
 * @param {Range} range
 * @param {number} pinned A row that is drawn wherever it is; -1: none.
 * @returns {number[]} The rows to draw, in order.
 */
export function rowsToDraw({ first, last }, pinned) {
  const rows = [];
  if (pinned >= 0 && pinned < first) rows.push(pinned);
  for (let row = Math.max(0, first); row <= last; row++) rows.push(row);
  if (pinned > last) rows.push(pinned);
  return rows;
}
