// node transcribe_job.mjs film.mkv film.srt [language]
import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const SERVER = process.env.WHISPERFLEET ?? "http://localhost:8000";
const KEY = process.env.WHISPER_API_KEY ?? "unused";

/** The answer to a request, which is repeated while the service is full, restarts or cannot be reached. */
async function patiently(path, options = () => ({})) {
  for (let attempt = 0; attempt < 120; attempt++) {
    let pause = Math.min(2 ** attempt, 30);
    try {
      const { headers, ...others } = options();
      const answer = await fetch(SERVER + path, {
        ...others,
        headers: { Authorization: `Bearer ${KEY}`, ...headers },
      });
      if (answer.ok) return answer;
      if (![429, 502, 503, 504].includes(answer.status)) throw new Error((await answer.json()).error.message);
      pause = Number(answer.headers.get("Retry-After") ?? pause);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // fetch could not reach the service
      console.error(`${SERVER}: ${error.cause?.message || error.message}; waiting`);
    }
    await sleep(1000 * pause);
  }
  throw new Error(`${SERVER} did not answer for an hour`);
}

/** The finished job of a recording. */
async function transcribe(path, options) {
  // With this header, a repeated request finds its job instead of making a second one.
  const headers = { "Idempotency-Key": randomUUID(), "Content-Type": "application/octet-stream" };
  const query = new URLSearchParams({ filename: basename(path), ...options });
  const submission = () => ({ method: "POST", headers, body: createReadStream(path), duplex: "half" });
  let job = await (await patiently(`/v1/jobs?${query}`, submission)).json();
  while (["queued", "running"].includes(job.status)) {
    await sleep(1000);
    job = await (await patiently(`/v1/jobs/${job.id}`)).json();
    console.error(
      `${job.status}: ${Math.round(job.progress.done_s)} of ${Math.round(job.progress.total_s ?? 0)} s`,
    );
  }
  if (job.status !== "succeeded") throw new Error(`${path}: ${job.status}: ${job.error?.message}`);
  return job;
}

const [input, output, language] = process.argv.slice(2);
const job = await transcribe(input, language ? { language } : {});
const subtitles = await patiently(`/v1/jobs/${job.id}/result?format=srt`);
await writeFile(output, Buffer.from(await subtitles.arrayBuffer()));
