// What the guide leaves out of the client that openapi-typescript makes: an upload, a URL, and the type of webhooks.
import { readFile } from "node:fs/promises";
import createClient from "openapi-fetch";
import type { components, paths, webhooks } from "./whisperfleet.js";

type Webhook = webhooks["job"]["post"]["requestBody"]["content"]["application/json"];

export const titleOf = ({ type, data }: Webhook): string | null =>
  type === "job.succeeded" ? data.title : null;

const [baseUrl = "", file = ""] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl });
const content = await readFile(file);
const begun = await client.POST("/v1/uploads", {
  params: { header: { "tus-resumable": "1.0.0", "upload-length": content.length } },
  headers: { "content-type": "application/offset+octet-stream" },
  body: "",
  bodySerializer: () => content,
});
const upload = begun.response.headers.get("location")?.split("/").at(-1) ?? "";
const made = await client.POST("/v1/jobs", { body: { upload, filename: "short.flac", tags: ["a"] } });
const job: components["schemas"]["Job"] | undefined = made.data;
const refused = await client.POST("/v1/jobs", { body: { url: "https://media.example/talk.mp3" } });
console.log(JSON.stringify({ name: job?.filename, tags: job?.tags, code: refused.error?.error.code }));
