/** The files of a drop or of the clipboard, those in folders too. */

/**
 * Call this during the event: its data is gone afterwards.
 * @param {DataTransfer} data
 * @returns {Promise<{files: File[], unread: number}>} In the order of their paths; how many cannot be read.
 */
export async function filesOf(data) {
  const items = [...data.items].filter((item) => item.kind === "file");
  const sources = items.map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile());
  const found = (await Promise.all(sources.map(readSource))).flat();
  const files = found.filter((file) => file !== null);
  return { files, unread: found.length - files.length };
}

/**
 * @param {FileSystemEntry | File | null} source
 * @returns {Promise<(File | null)[]>} null: a file or folder that cannot be read, such as a broken link.
 */
async function readSource(source) {
  if (!source) return [];
  if (source instanceof File) return [source];
  if (source.isFile) return readFile(/** @type {FileSystemFileEntry} */ (source));
  return readFolder(/** @type {FileSystemDirectoryEntry} */ (source));
}

/**
 * @param {FileSystemFileEntry} entry
 * @returns {Promise<(File | null)[]>}
 */
function readFile(entry) {
  return new Promise((resolve) =>
    entry.file(
      (file) => resolve([file]),
      () => resolve([null]),
    ),
  );
}

/**
 * @param {FileSystemDirectoryEntry} folder
 * @returns {Promise<(File | null)[]>}
 */
async function readFolder(folder) {
  const reader = folder.createReader();
  /** @type {FileSystemEntry[]} */
  const entries = [];
  let isRead = true;
  for (;;) {
    // Browsers give a hundred at a time.
    const some = await new Promise((resolve) =>
      reader.readEntries(resolve, () => {
        isRead = false;
        resolve([]);
      }),
    );
    if (!some.length) break;
    entries.push(...some);
  }
  entries.sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
  const files = (await Promise.all(entries.map(readSource))).flat();
  return isRead ? files : [...files, null];
}
