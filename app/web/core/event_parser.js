/** Server-sent events, as the HTML standard defines their format. */

/**
 * @typedef {object} ServerEvent
 * @property {string} type
 * @property {string} data
 * @property {string} id Of the newest event that has one.
 */

/**
 * A function that takes the text of a stream in parts of any size, and calls `onEvent` for each event.
 * @param {(event: ServerEvent) => void} onEvent
 * @param {string} [lastId]
 * @returns {(part: string) => void}
 */
export function eventParser(onEvent, lastId = "") {
  let rest = "";
  let [type, data, id] = ["", /** @type {string[]} */ ([]), lastId];

  /** @param {string} line */
  function take(line) {
    if (line === "") {
      if (data.length) onEvent({ type: type || "message", data: data.join("\n"), id });
      [type, data] = ["", []];
      return;
    }
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name === "event") type = value;
    else if (name === "data") data.push(value);
    else if (name === "id") id = value;
  }

  return (part) => {
    rest += part;
    // A part may end between the two characters of a line break.
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    lines.forEach(take);
  };
}
