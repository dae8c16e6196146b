// WHISPER_WEBHOOK_SECRET=whsec_… node webhook_receiver.mjs [port]
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const SECRET = Buffer.from(process.env.WHISPER_WEBHOOK_SECRET.replace(/^whsec_/, ""), "base64");
const MAX_AGE_S = 300;
const MAX_BYTES = 1 << 20;

/** Whether a webhook is from the service, and new. */
function isGenuine(headers, body) {
  const { "webhook-id": id, "webhook-timestamp": time, "webhook-signature": signatures = "" } = headers;
  if (!id || !(Math.abs(Date.now() / 1000 - Number(time)) <= MAX_AGE_S)) return false;
  const wanted = createHmac("sha256", SECRET).update(`${id}.${time}.`).update(body).digest();
  return signatures.split(" ").some((signature) => {
    const [version, value = ""] = signature.split(",");
    const given = Buffer.from(value, "base64");
    return version === "v1" && given.length === wanted.length && timingSafeEqual(given, wanted);
  });
}

async function receive(request) {
  const parts = [];
  let bytes = 0;
  for await (const part of request) {
    bytes += part.length;
    if (bytes > MAX_BYTES) return 413;
    parts.push(part);
  }
  const body = Buffer.concat(parts);
  if (!isGenuine(request.headers, body)) return 400;
  const { type, data } = JSON.parse(body);
  console.log(type, data.id, data.filename);
  return 204;
}

createServer((request, response) => {
  receive(request).then(
    (status) => response.writeHead(status).end(),
    () => response.destroy(), // the connection broke
  );
}).listen(Number(process.argv[2] ?? 9000), "127.0.0.1");
