// A program in Node: plays audio at 24 kHz to a live stream, with OpenAI's client. Prints what came as JSON.
import fs from "node:fs";
import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";

const [baseURL, apiKey, path] = process.argv.slice(2);
const types = [];
let deltas = "";

const session = new OpenAIRealtimeWS({ intent: "transcription" }, new OpenAI({ apiKey, baseURL }));
const completed = new Promise((resolve, reject) => {
  session.on("event", (event) => types.push(event.type));
  session.on("error", reject);
  session.on("conversation.item.input_audio_transcription.delta", (event) => {
    deltas += event.delta;
  });
  session.on("conversation.item.input_audio_transcription.completed", (event) => resolve(event.transcript));
});
session.on("session.created", () => {
  const transcription = { model: "gpt-realtime-whisper", language: "en" };
  const input = { transcription, turn_detection: null };
  session.send({ type: "session.update", session: { type: "transcription", audio: { input } } });
  const audio = fs.readFileSync(path);
  for (let start = 0; start < audio.length; start += 4800)
    session.send({
      type: "input_audio_buffer.append",
      audio: audio.subarray(start, start + 4800).toString("base64"),
    });
  session.send({ type: "input_audio_buffer.commit" });
});
const transcript = await completed;
session.close();

const stranger = new OpenAIRealtimeWS(
  { intent: "transcription" },
  new OpenAI({ apiKey: "wrong", baseURL }),
);
const refused = await new Promise((resolve) => {
  stranger.on("error", (error) => resolve(error.message));
});
console.log(JSON.stringify({ types, deltas, transcript, refused }));
