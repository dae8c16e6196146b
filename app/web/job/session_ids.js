/** The ids of segments: the page's stay the same, the service may give others when it stores a segment. */

/** @typedef {import("./types.js").Segment} Segment */

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
