/** What the service answers about jobs, and what the parts of the job's screen share. */

/**
 * @template T
 * @typedef {import("../vendor/ui.js").Signal<T>} Signal
 */
/**
 * @template T
 * @typedef {import("../vendor/ui.js").ReadonlySignal<T>} ReadonlySignal
 */

/**
 * @typedef {{word: string, start: number, end: number, probability: number, speaker?: string}} Word Times in seconds.
 *   `speaker`: where the service knows it. It may be another one than that of the segment.
 */

/** @typedef {"break" | "join"} MarkKind A cue begins there; no cue ends there. */

/**
 * @typedef {object} Segment A segment of a transcript. Values are never changed: a correction makes new ones.
 * @property {string} id Of this page only if it begins with `new-`; else of the service.
 * @property {number} start seconds
 * @property {number} end seconds
 * @property {string} text
 * @property {string | null} speaker Of its first words.
 * @property {string} [language] That is spoken, where the service knows it.
 * @property {readonly {at: number, kind: MarkKind}[]} [marks] Of its subtitles, in order. `at`: how many characters of
 *   the text are before it.
 * @property {readonly {at: number, write: string, heard: string}[]} [terms] What names and terms replaced.
 * @property {"open" | "final"} [spoken] In a live recording, and not in its transcript yet: whether its text may grow.
 * @property {readonly Word[]} words Empty where the words' times are unknown, as after a correction until it is saved.
 */

/**
 * @typedef {object} Progress
 * @property {string} stage
 * @property {number} done_s
 * @property {number | null} total_s
 * @property {number} clips_done
 * @property {number | null} clips_total
 * @property {number | null} realtime_factor
 */

/** @typedef {"queued" | "running" | "succeeded" | "failed" | "cancelled"} Status */

/** @typedef {{text: string, start: number, segment: string}} Match `start`: seconds; `segment`: its id. */

/**
 * @typedef {object} Job A shared link gets neither its options nor fields that may be absent.
 * @property {string} id
 * @property {string | null} [owner] For operators.
 * @property {Status} status
 * @property {string} created_at
 * @property {string | null} [started_at]
 * @property {string | null} finished_at
 * @property {string | null} [filename]
 * @property {string | null} title What people call it.
 * @property {string | null} notes
 * @property {string[]} tags
 * @property {Match[]} [matches] In the list: the sentences that the search has found.
 * @property {string | null} [url]
 * @property {number | null} duration seconds
 * @property {unknown[] | null} audio_tracks null until the recording is decoded
 * @property {string | null} language
 * @property {Record<string, number> | null} [languages] If several are spoken: their parts, most first.
 * @property {string} [model]
 * @property {Record<string, unknown>} options
 * @property {Progress} progress
 * @property {{message: string, code: string | null} | null} error
 * @property {{start: number, end: number}[]} failed_spans
 * @property {RecordingWarning[]} warnings about the recording
 * @property {string | null} parent The id of the one whose recording it transcribes again.
 * @property {number} revision 0: the transcript is the original.
 * @property {string | null} excerpt The beginning of the text.
 * @property {string[] | null} speakers
 * @property {string | null} expires_at null: it stays, or is not done.
 * @property {string | null} audio_expires_at The same for the recording.
 * @property {string | null} trashed_at null: it is not in the trash.
 */

/** @typedef {{code: string, message: string, start: number | null, end: number | null}} RecordingWarning */

/**
 * @typedef {"text" | "times" | "speaker" | "mark" | "split" | "join" | "insert" | "remove" | "replace" | "theirs"} EditName
 *   What a step of the history did. `theirs`: took in another revision, or an unsaved draft.
 */

/** @typedef {{name: EditName, focusId: string | null}} Step `focusId`: the segment to show after it is undone or redone. */

/**
 * @typedef {"saved" | "saving" | "unsaved" | "offline" | "conflict" | "refused"} SaveState
 *   `unsaved`: also while the job runs. `offline`: saving goes on by itself. `refused`: see `refusal`.
 */

/** @typedef {{id: string | null, message: string}} Refusal Why the service stores nothing; `id`: of the segment at fault. */

/**
 * @typedef {object} ConflictPart A part of the transcript that both sides have changed.
 * @property {string} id
 * @property {readonly Segment[]} base
 * @property {readonly Segment[]} mine Empty: this page has removed it.
 * @property {readonly Segment[]} theirs Empty: the other side has removed it.
 */

/**
 * @typedef {object} Conflict
 * @property {readonly ConflictPart[]} parts Those that need a choice. The rest is merged already.
 * @property {(choices: ReadonlyMap<string, "mine" | "theirs">) => void} resolve By the ids of the parts. The default is mine.
 */

/**
 * @typedef {object} Session One open job: its state, its transcript, and the corrections.
 * @property {string} id
 * @property {Signal<Job | null>} job null until it is loaded.
 * @property {Signal<readonly Segment[]>} segments
 *   In order, with all corrections of this page. While the job runs, all that is transcribed so far. The id of a
 *   segment stays the same while the page is open, and unchanged segments stay the same objects.
 * @property {Signal<boolean>} complete The job has succeeded, and all of its text is here.
 * @property {ReadonlySignal<boolean>} takesCorrections The service stores corrections now.
 * @property {Signal<Error | null>} error Why the job cannot be shown.
 * @property {Signal<boolean>} connected The service answers, as far as the job's events show it.
 * @property {ReadonlySignal<boolean>} editable Corrections can be saved, now or when the job has ended.
 * @property {Signal<number>} revision That the corrections began from. 0: the original.
 * @property {(name: EditName, change: (segments: readonly Segment[]) => readonly Segment[], focusId?: string | null)
 *   => boolean} edit Change `segments`. Returns false if `change` returns the same array, or nothing is editable.
 * @property {(segment: Segment) => object} bodyOf As the service wants it.
 * @property {() => Step | null} undo
 * @property {() => Step | null} redo
 * @property {ReadonlySignal<boolean>} canUndo
 * @property {ReadonlySignal<boolean>} canRedo
 * @property {ReadonlySignal<boolean>} dirty There are corrections that the service does not have.
 * @property {Signal<SaveState>} saveState
 * @property {Signal<Refusal | null>} refusal
 * @property {Signal<string | null>} delay While `offline`: what the service says; empty: it cannot be reached.
 * @property {ReadonlySignal<boolean>} unkept Some corrections are on this page alone: the browser stores none.
 * @property {Signal<Conflict | null>} conflict The dialog asks for choices.
 * @property {Signal<readonly Segment[]>} lost Corrected segments that the service has no longer, after a new start.
 * @property {() => Promise<boolean>} save At once, and before an export. Returns whether the service has everything.
 *   Else it is saved some seconds after the last edit, when the page is hidden or left, and when the job ends: each time
 *   is a revision. The browser keeps a draft meanwhile.
 * @property {<T>(act: () => Promise<T>) => Promise<T>} alone Not while a correction is sent: the service may take one at a
 *   time.
 * @property {(body: import("./saving_merge.js").SpeakersBody) => Promise<void>} correctSpeakers Saves everything,
 *   and then lets the service correct all speakers, as one step. Rejected where that fails.
 * @property {() => Promise<void>} reload Take in what the service has: after another revision is brought back.
 * @property {() => Promise<void>} runAgain Have a job that failed run again: what it has stays. Rejected where it cannot.
 * @property {() => void} close Ends the requests. Unsaved corrections stay in the browser.
 */

/** @param {Job} job */
export function isActive(job) {
  return job.status === "queued" || job.status === "running";
}

/** Whether its sound still comes. @param {Job} job */
export function isRecorded({ progress }) {
  return progress.stage === "recording";
}

/**
 * The language of a segment's text, if it is another one than the recording's.
 * @param {Job | null} job
 * @param {Segment} segment
 */
export function otherLanguage(job, { language }) {
  const isKnown = job?.language && language && job.options?.task !== "translate";
  return isKnown && language !== job.language ? language : null;
}

/** Whether the service has the recording. Only one from a URL may be missing. @param {Job} job */
export function hasArrived(job) {
  return job.url === null || job.filename !== null;
}

/** Whether the service could not decode the recording. @param {Job} job */
export function isUndecodable(job) {
  return job.status === "failed" && job.audio_tracks === null;
}

const OF_THE_FILE = ["audio_too_short", "broken_file", "empty_file", "encrypted"];
const OF_ITS_SOUND = ["no_audio_track", "not_audio", "unsupported_codec"];

/** Whether it failed because of its file: it would fail again. @param {Job} job */
export function isUnreadable({ error }) {
  return [...OF_THE_FILE, ...OF_ITS_SOUND].includes(error?.code ?? "");
}

/** @param {Job} job */
export function nameOf(job) {
  return job.title ?? job.filename ?? job.url ?? job.id;
}

const SUFFIX = /\.[^.\s]{1,8}$/;

/** The title of a document. @param {Job} job */
export function titleOf(job) {
  return job.title ?? job.filename?.replace(SUFFIX, "") ?? nameOf(job);
}

const FIRST = ["docx", "srt", "vtt", "txt"];
const LONGEST_STEM = 120; // characters

/**
 * The formats of the service: those that most people want, and the rest in its order.
 * @param {readonly string[]} formats
 * @returns {{first: string[], rest: string[]}}
 */
export function groupsOf(formats) {
  return {
    first: FIRST.filter((format) => formats.includes(format)),
    rest: formats.filter((format) => !FIRST.includes(format)),
  };
}

/**
 * The name of a downloaded result, such as `talk.srt`.
 * @param {Job} job
 * @param {string} format
 * @param {number | null} [revision] null: the newest
 */
export function fileNameOf(job, format, revision = null) {
  const name = job.title ?? job.filename?.replace(SUFFIX, "") ?? job.id;
  const stem = [...name].slice(0, LONGEST_STEM).join("") || job.id;
  const version = revision === null ? "" : revision ? `.revision-${revision}` : ".original";
  return `${stem}${version}.${format === "verbose_json" ? "json" : format}`;
}
