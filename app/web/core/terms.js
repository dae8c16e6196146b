/** Names and terms: how words should be written, and what the service writes today. */

import { html, useState } from "../vendor/ui.js";
import { requestJson } from "./api.js";
import { onSubmit } from "./controls.js";
import { sharedLink } from "./shared_link.js";
import { t } from "./text.js";
import { toast, toastError } from "./toasts.js";

/** @typedef {{write: string, for: string[], language?: string | null}} Term */

const LINE = /^(.*\S)\s*(?:→|->)\s*(\S.*?)(?:\s+\[([\p{L}-]+)\])?$/u;
const PUNCTUATION = /^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu; // around words
const NAME = /^(?=.*[\p{Lu}\p{N}]).{1,40}$/u;

/** @returns {Promise<Term[]>} */
const read = async () => (await requestJson("/v1/terms")).data;
/** @param {Term[]} data */
const put = (data) => requestJson("/v1/terms", { method: "PUT", json: { data } });

/** @param {Term} term */
const lineOf = ({ write, for: heard, language }) =>
  `${heard.join("; ")} → ${write}${language ? ` [${language}]` : ""}`;

/** @param {string} line @returns {Term[]} None of a line without a text. */
function termOf(line) {
  if (!line.trim()) return [];
  const [, heard, write, language] = line.trim().match(LINE) ?? [];
  if (!write) throw new Error(t("terms.noArrow", { line }));
  return [{ write, for: heard.split(";"), language }];
}

/** @param {FormDataEntryValue | null} lines */
const save = async (lines) => put(String(lines).split("\n").flatMap(termOf));

/** The list, one in each line, in the settings. */
export function Terms() {
  const [lines, setLines] = useState("");
  const [outcome, setOutcome] = useState("");
  const fail = (/** @type {Error} */ { message }) => setOutcome(message);
  const load = () => read().then((data) => setLines(data.map(lineOf).join("\n")), fail);
  const submit = onSubmit((fields) => {
    save(fields.get("terms")).then(() => setOutcome(t("terms.saved")), fail);
  });
  return html`<details onToggle=${load}><summary>${t("terms.title")}</summary>
    <form onSubmit=${submit}>
      <p class="small muted" id="terms-hint">${t("terms.hint")}</p>
      <textarea class="input" name="terms" rows="8" dir="auto" spellcheck=${false} aria-label=${t("terms.title")}
        aria-describedby="terms-hint" placeholder=${t("terms.example")}>${lines}</textarea>
      <p class="small" role="status">${outcome}</p>
      <button class="button">${t("edit.save")}</button>
    </form>
  </details>`;
}

/**
 * A name that was corrected, and nothing else, can be written so from now on.
 * @param {{id: string, text: string}} before
 * @param {readonly {id: string, text: string}[]} now Where it may be.
 */
export function offerTerm(before, now) {
  const after = now.find(({ id }) => id === before.id) ?? before;
  const [old, corrected] = [before, after].map(({ text }) => text.split(/\s+/));
  while (old.length && old[0] === corrected[0]) for (const words of [old, corrected]) words.shift();
  while (old.length && old.at(-1) === corrected.at(-1)) for (const words of [old, corrected]) words.pop();
  const [heard, write] = [old, corrected].map((words) => words.join(" ").replace(PUNCTUATION, ""));
  if (sharedLink || !heard || !NAME.test(write) || heard.toLowerCase() === write.toLowerCase()) return;
  const add = async () => put([...(await read()), { write, for: [heard] }]);
  const run = () => add().then(() => void toast(t("terms.saved")), toastError);
  toast(t("terms.offer", { heard, write }), { action: { label: t("terms.always"), run } });
}
