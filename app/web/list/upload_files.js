/** The files of a choice, a drop or the clipboard, and which of them may be recordings. The service decides about doubtful ones. */

const RECORDINGS = words(
  "3g2 3gp aac aif aifc aiff amr ape asf au avi caf divx dts eac3 f4v flac flv gsm m2ts m4a m4b m4v mka mkv mov mp2",
  "mp3 mp4 mpc mpeg mpg mts mxf oga ogg ogv opus ra rm rmvb spx ts tta vob voc w64 wav webm wma wmv wtv wv",
);
const OTHERS = words(
  // Subtitles and texts
  "ass idx lrc sbv scc smi srt ssa stl sub sup ttml vtt csv doc docx epub htm html json log md nfo odt pdf ppt pptx rtf",
  "tsv txt url webloc xls xlsx xml yaml yml",
  // Pictures
  "avif bmp cr2 dng gif heic heif ico jpeg jpg nef png psd svg tif tiff webp",
  // Lists, archives, programs and leftovers of other programs
  "7z cue db dmg exe gz ini iso lnk m3u m3u8 par2 part pls rar sfv tar torrent zip",
);
const OTHER_TYPES = /^(image|text|font)\/|^application\/(pdf|zip|json|xml)$/;

/** @param {string[]} lines */
function words(...lines) {
  return new Set(lines.join(" ").split(" "));
}

/** @param {{name: string, type: string}} file */
export function mayBeRecording({ name, type }) {
  if (name.startsWith(".")) return false;
  const extension = /\.([^.]+)$/.exec(name)?.[1].toLowerCase() ?? "";
  // Browsers take `.ts` for the source code of a program.
  if (RECORDINGS.has(extension)) return true;
  return !OTHERS.has(extension) && !OTHER_TYPES.test(type);
}

/**
 * @template {{name: string, type: string}} F
 * @param {F[]} files
 * @returns {{chosen: F[], skipped: F[]}}
 */
export function choose(files) {
  return { chosen: files.filter(mayBeRecording), skipped: files.filter((file) => !mayBeRecording(file)) };
}

/**
 * The addresses in a text that consists of nothing else.
 * @param {string} text
 * @returns {string[]} Empty if there is anything else in it.
 */
export function urlsIn(text) {
  const parts = text.trim().split(/\s+/);
  return parts.every((part) => /^https?:\/\/[^\s/]+/i.test(part) && URL.canParse(part)) ? parts : [];
}

/**
 * A name for the recording at an address.
 * @param {string} url
 */
export function nameOfUrl(url) {
  const { hostname, pathname } = new URL(url);
  const last = pathname.split("/").filter(Boolean).pop();
  try {
    return last ? decodeURIComponent(last) : hostname;
  } catch {
    return last ?? hostname;
  }
}

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
