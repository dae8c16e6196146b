/** The words that two texts share. Without DOM. */

const MOST_COMPARED = 250_000; // pairs of tokens; of texts that differ in more, no word in between is kept

/**
 * For each token of the first list its place in the second one, or -1: a longest common subsequence.
 * @param {readonly string[]} before
 * @param {readonly string[]} after
 * @returns {number[]}
 */
export function keptTokens(before, after) {
  const kept = before.map(() => -1);
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start])
    kept[start] = start++;
  let [end, newEnd] = [before.length, after.length];
  while (end > start && newEnd > start && before[end - 1] === after[newEnd - 1]) kept[--end] = --newEnd;
  const [rows, columns] = [end - start, newEnd - start];
  if (!rows || !columns || rows * columns > MOST_COMPARED) return kept;
  const best = new Uint16Array((rows + 1) * (columns + 1));
  for (let row = rows - 1; row >= 0; row--) {
    for (let column = columns - 1; column >= 0; column--) {
      const [here, below] = [row * (columns + 1) + column, (row + 1) * (columns + 1) + column];
      best[here] =
        before[start + row] === after[start + column]
          ? best[below + 1] + 1
          : Math.max(best[below], best[here + 1]);
    }
  }
  for (let row = 0, column = 0; row < rows && column < columns; ) {
    const [here, below] = [row * (columns + 1) + column, (row + 1) * (columns + 1) + column];
    if (before[start + row] === after[start + column]) kept[start + row++] = start + column++;
    else if (best[below] >= best[here + 1]) row++;
    else column++;
  }
  return kept;
}
