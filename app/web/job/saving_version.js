/** What the service had last: the version that corrections begin from, and its ids of segments. Without DOM. */

import { batch, signal } from "../vendor/ui.js";
import { charactersOf, isSame, marksIn } from "./edits_rules.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./saving_request.js").Stored} Stored */
/** @typedef {ReturnType<typeof createVersion>} Version */

/** @param {import("./session_document.js").Document} document */
export function createVersion(document) {
  const ids = createIds();
  const revision = signal(0);
  let etag = "";
  /** @type {ReadonlySet<string>} */
  let known = new Set(); // ids of the service
  /** @type {readonly Segment[] | null} */
  let unanswered = null;

  /**
   * The service's segments, with the page's ids.
   * @param {Stored} stored
   */
  function accept(stored) {
    etag = stored.etag;
    revision.value = stored.revision;
    known = new Set(stored.segments.map((segment) => segment.id));
    return ids.received(stored.segments);
  }

  /**
   * Take in that the service has stored what was sent.
   * @param {readonly Segment[]} sent
   * @param {Stored} stored
   */
  function take(sent, stored) {
    const added = sent.filter((segment) => !known.has(ids.sent(segment.id)));
    const kept = new Set(sent.map((segment) => ids.sent(segment.id)).filter((id) => known.has(id)));
    unanswered = null;
    // What came meanwhile of a job that runs is nobody's.
    const isSent = (/** @type {Segment} */ { start, end }) =>
      added.some((segment) => segment.start === start && segment.end === end);
    batch(() => {
      ids.learn(added, stored.segments.filter(isSent), kept);
      document.stored(sent, accept(stored));
    });
  }

  return {
    revision,
    accept,
    take,
    /**
     * Take in more text of a job that runs.
     * @param {readonly Segment[]} kept Of the page: they stay.
     * @param {readonly Segment[]} newer Of the service.
     * @param {string} event The number of the event that brought them.
     */
    grow(kept, newer, event) {
      const all = [...kept, ...ids.received(newer)];
      etag = `"${revision.peek()}.${event}"`;
      known = new Set(all.map((segment) => ids.sent(segment.id)));
      return all;
    },
    etag: () => etag,
    /** The id that the service knows. @param {string} id Of the page. */
    idOf: ids.sent,
    /** A segment as the service wants it. @param {Segment} segment */
    bodyOf(segment) {
      const { start, end, speaker } = segment;
      const [id, text] = [ids.sent(segment.id), segment.text.trim()];
      const lead = segment.text.indexOf(text);
      const marks = marksIn(segment, (at) => at - lead, charactersOf(text));
      return { ...(known.has(id) && { id }), start, end, text, speaker, ...marks };
    },
    /** No answer came: the service may have stored it, or not. @param {readonly Segment[]} sent */
    missAnswer(sent) {
      unanswered = sent;
    },
    /**
     * Whether a newer version is only what this page has sent without an answer. Takes it in then.
     * @param {Stored} stored
     */
    isOwn(stored) {
      const sent = unanswered;
      const isEqual =
        sent?.length === stored.segments.length &&
        sent.every((segment, index) => isSame(segment, stored.segments[index]));
      if (sent && isEqual) take(sent, stored);
      return isEqual;
    },
    /** The number of the event that brought the newest text: the ETag ends with it while the job runs. */
    lastEvent: () => /^(?:W\/)?"\d+\.(\d+)"$/.exec(etag)?.[1] ?? "",
  };
}

/** @typedef {ReturnType<typeof createIds>} Ids */

export function createIds() {
  /** @type {Map<string, string>} */
  const toService = new Map();
  /** @type {Map<string, string>} */
  const toPage = new Map();

  /** The service's segments with the ids of the page. @param {readonly Segment[]} segments */
  function received(segments) {
    if (!toPage.size) return segments;
    return segments.map((segment) => ({ ...segment, id: toPage.get(segment.id) ?? segment.id }));
  }

  /** @param {string} id Of the page. */
  const sent = (id) => toService.get(id) ?? id;

  /**
   * Learn the ids of segments that the service did not know.
   * @param {readonly Segment[]} added By the page, in order.
   * @param {readonly Segment[]} stored The service's segments, in order.
   * @param {ReadonlySet<string>} known Ids of the service that others have.
   */
  function learn(added, stored, known) {
    const unknown = stored.filter((segment) => !known.has(segment.id));
    if (unknown.length !== added.length) return;
    added.forEach((segment, index) => {
      toService.set(segment.id, unknown[index].id);
      toPage.set(unknown[index].id, segment.id);
    });
  }

  return { received, sent, learn };
}
