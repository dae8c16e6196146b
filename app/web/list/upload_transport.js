/** How recordings reach the service: with tus, which goes on where a cut has left off. */

import { ApiError, keyHeaders, refusal, request, requestJson, unreachable, withKey } from "../core/api.js";
import { address } from "../core/service.js";
import { Upload } from "../vendor/tus.js";

/** @import { SendHandlers, StoredUpload, Transport } from "./upload_rows.js" */
/** @import { DetailedError } from "../vendor/tus.js" */

const PATH = "/v1/uploads";
const TUS = { "Tus-Resumable": "1.0.0" };
const CHUNK_BYTES = 8_000_000; // a proxy that collects requests loses at most that
const STALLED_MS = 60_000; // the browser notices a dead connection only after minutes

/** @type {Transport} */
export const transport = {
  send({ file, stored }, handlers) {
    const blob = /** @type {Blob} */ (file);
    let { uploadId } = stored;
    /** @param {string} begun */
    const onBegin = (begun) => {
      uploadId = begun; // a second attempt goes on with it
      handlers.onBegin(begun);
    };
    return withKey(async () => {
      handlers.signal.throwIfAborted();
      try {
        await attempt(blob, { ...stored, uploadId }, { ...handlers, onBegin });
      } catch (error) {
        if (error instanceof ApiError && error.status === 0) await checkReadable(blob);
        throw error;
      }
    });
  },

  async offset({ stored }) {
    const response = await request(`${PATH}/${stored.uploadId}`, { method: "HEAD", headers: TUS });
    return Number(response.headers.get("Upload-Offset"));
  },

  submit({ stored }, signal) {
    const source = stored.source ? { url: stored.source } : { upload: stored.uploadId };
    const headers = { "Idempotency-Key": `page-${stored.id}` };
    return requestJson("/v1/jobs", {
      method: "POST",
      headers,
      json: { ...source, ...stored.options },
      signal,
    });
  },

  discard(uploadId) {
    return request(`${PATH}/${uploadId}`, { method: "DELETE", headers: TUS, keepalive: true });
  },
};

/**
 * @param {Blob} file
 * @param {StoredUpload} stored
 * @param {SendHandlers} handlers
 * @returns {Promise<void>}
 */
function attempt(file, stored, { onBegin, onProgress, signal }) {
  return new Promise((resolve, reject) => {
    /** @type {ReturnType<typeof setTimeout>} */
    let watchdog;
    const watch = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => stop(unreachable()), STALLED_MS);
    };
    /** @param {unknown} error */
    const stop = (error) => {
      clearTimeout(watchdog);
      void upload.abort();
      reject(error);
    };
    const upload = new Upload(/** @type {File} */ (file), {
      // With the address of an upload, tus must not begin another one: any error would make it lose all bytes.
      ...(stored.uploadId
        ? { uploadUrl: address(`${PATH}/${stored.uploadId}`) }
        : { endpoint: address(PATH) }),
      headers: keyHeaders(),
      metadata: { filename: stored.name },
      chunkSize: CHUNK_BYTES,
      retryDelays: null,
      storeFingerprintForResuming: false,
      onUploadUrlAvailable: () => onBegin(String(upload.url).replace(/^.*\//, "")),
      onProgress: (sent) => {
        watch();
        onProgress(sent);
      },
      onSuccess: () => {
        clearTimeout(watchdog);
        resolve();
      },
      onError: (error) => stop(apiError(error)),
    });
    signal.addEventListener("abort", () => stop(signal.reason), { once: true });
    watch();
    upload.start();
  });
}

/**
 * The error of the service, as other requests throw it.
 * @param {Error | DetailedError} error
 */
function apiError(error) {
  if (!("originalRequest" in error)) return error;
  const response = error.originalResponse;
  if (!response) return unreachable();
  return refusal(response.getStatus(), response.getBody(), response.getHeader("Retry-After"));
}

/**
 * A file that has changed or gone looks like a cut connection. Rejected with NotReadableError then.
 * @param {Blob} file
 */
async function checkReadable(file) {
  try {
    await file.slice(0, 1).arrayBuffer();
  } catch (error) {
    throw Object.assign(new Error(String(error)), { name: "NotReadableError" });
  }
}
