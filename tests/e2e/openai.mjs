// A program in Node: one upload, one stream, one error. Prints the answers as JSON.
import fs from "node:fs";
import OpenAI from "openai";

const [baseURL, path] = process.argv.slice(2);
const client = new OpenAI({ apiKey: "unused", baseURL, maxRetries: 0 });

const complete = await client.audio.transcriptions.create({
  file: fs.createReadStream(path),
  model: "whisper-1",
  response_format: "verbose_json",
  timestamp_granularities: ["word", "segment"],
});

const events = [];
const stream = await client.audio.transcriptions.create({
  file: fs.createReadStream(path),
  model: "whisper-1",
  stream: true,
});
for await (const event of stream) events.push(event);

let refused = null;
try {
  await client.audio.transcriptions.create({ file: fs.createReadStream(path), model: "gpt-4" });
} catch (error) {
  refused = { name: error.constructor.name, status: error.status, code: error.code };
}
console.log(JSON.stringify({ complete, events, refused }));
