/** Files that the browser stores. */

/**
 * @param {Blob} blob
 * @param {string} name
 */
export function saveBlob(blob, name) {
  const href = URL.createObjectURL(blob);
  saveFrom(href, name);
  // The download has begun by then: it holds the blob itself.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

/**
 * Download an address. The browser streams it.
 * @param {string} href
 * @param {string} name
 */
export function saveFrom(href, name) {
  const link = document.createElement("a");
  link.href = href;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
}
