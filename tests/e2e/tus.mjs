// Uploads a file with tus-js-client, which goes on after each cut. Prints the upload's address.
import fs from "node:fs";
import tus from "tus-js-client";

const [endpoint, path] = process.argv.slice(2);
await new Promise((resolve, reject) => {
  const upload = new tus.Upload(fs.createReadStream(path), {
    endpoint,
    metadata: { filename: "talk.wav" },
    retryDelays: Array(200).fill(100),
    onError: reject,
    onSuccess: () => resolve(console.log(upload.url)),
  });
  upload.start();
});
