/** The files of a drop or of the clipboard, those in folders too. */

/**
 * Call this during the event: its data is gone afterwards.
 * @param {DataTransfer} data
 * @returns {Promise<File[]>} In the order of their paths.
 */
export async function filesOf(data) {
  const items = [...data.items].filter((item) => item.kind === "file");
  const sources = items.map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile());
  const files = await Promise.all(sources.map(readSource));
  return files.flat();
}

/**
 * @param {FileSystemEntry | File | null} source
 * @returns {Promise<File[]>}
 */
async function readSource(source) {
  if (!source) return [];
  if (source instanceof File) return [source];
  if (source.isFile) return readFile(/** @type {FileSystemFileEntry} */ (source));
  return readFolder(/** @type {FileSystemDirectoryEntry} */ (source));
}

/**
 * @param {FileSystemFileEntry} entry
 * @returns {Promise<File[]>} Empty for a file that cannot be read, such as a broken link.
 */
function readFile(entry) {
  return new Promise((resolve) =>
    entry.file(
      (file) => resolve([file]),
      () => resolve([]),
    ),
  );
}

/**
 * @param {FileSystemDirectoryEntry} folder
 * @returns {Promise<File[]>}
 */
async function readFolder(folder) {
  const reader = folder.createReader();
  /** @type {FileSystemEntry[]} */
  const entries = [];
  for (;;) {
    // Browsers give a hundred at a time.
    const some = await new Promise((resolve) => reader.readEntries(resolve, () => resolve([])));
    if (!some.length) break;
    entries.push(...some);
  }
  entries.sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
  const files = await Promise.all(entries.map(readSource));
  return files.flat();
}
