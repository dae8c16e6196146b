/** Requests to the service, with the API key where keys are on. */

import { signal } from "../vendor/ui.js";
import { noteAnswer } from "./health.js";
import { address } from "./service.js";
import { sharedLink } from "./shared_link.js";
import { shared } from "./storage.js";
import { errorText, t } from "./text.js";

/** The API key; empty: none. It is sent as a header, and never as part of an address. A shared link is sent instead. */
export const apiKey = shared("key", "");

/**
 * @typedef {object} KeyQuestion The service wants a key. The key dialog answers.
 * @property {boolean} isWrong A key was sent, and refused.
 * @property {(key: string | null) => void} answer null: the user gives none.
 */

/** @type {import("../vendor/ui.js").Signal<KeyQuestion | null>} */
export const keyQuestion = signal(null);

/** An answer that says why a request failed, or no answer at all. */
export class ApiError extends Error {
  /**
   * @param {number} status 0: the service cannot be reached.
   * @param {{message: string, code?: string | null, param?: string | null}} error
   * @param {number | null} [retryAfter] seconds
   */
  constructor(status, error, retryAfter = null) {
    super(errorText(error));
    this.status = status;
    this.code = error.code ?? null;
    this.param = error.param ?? null;
    this.retryAfter = retryAfter;
  }
}

/**
 * @typedef {object} RequestOptions
 * @property {string} [method]
 * @property {Record<string, string>} [headers]
 * @property {BodyInit | null} [body]
 * @property {unknown} [json] Sent as the body, instead of `body`.
 * @property {AbortSignal} [signal]
 * @property {RequestCache} [cache]
 * @property {boolean} [keepalive] The request outlives the page.
 */

/**
 * Send a request. Asks for the key if there is none, or if it is wrong; not on a page of a shared link.
 * @param {string} path Such as `/v1/jobs`.
 * @param {RequestOptions} [options]
 * @returns {Promise<Response>} A successful one. Statuses of 400 and more are thrown as ApiError; 304 is returned.
 */
export async function request(path, options = {}) {
  const attempt = async () => {
    const response = await send(path, options);
    if (response.ok || response.status === 304) return response;
    const text = await response.text().catch(() => "");
    throw refusal(response.status, text, response.headers.get("Retry-After"));
  };
  return options.keepalive ? attempt() : withKey(attempt);
}

/**
 * Ask for the key, and try again, as long as the service wants another one.
 * @template T
 * @param {() => Promise<T>} attempt Rejected with ApiError.
 * @returns {Promise<T>}
 */
export async function withKey(attempt) {
  for (;;) {
    const used = apiKey.value;
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 401 || sharedLink) throw error;
      if (used === apiKey.value && !(await askForKey(used !== ""))) throw error;
    }
  }
}

/**
 * The same, for the JSON of the answer.
 * @param {string} path
 * @param {RequestOptions} [options]
 * @returns {Promise<any>}
 */
export async function requestJson(path, options) {
  return (await request(path, options)).json();
}

/** The headers that carry the key. @returns {Record<string, string>} */
export function keyHeaders() {
  // Headers hold bytes: a browser sends none with other characters, such as an invisible one of a pasted key.
  const key = String.fromCharCode(...new TextEncoder().encode(sharedLink?.token ?? apiKey.value));
  return key ? { Authorization: `Bearer ${key}` } : {};
}

/** @type {Promise<boolean> | null} */
let asking = null;

/**
 * Ask the user for the key. Requests that fail meanwhile wait for the same answer.
 * @param {boolean} isWrong
 * @returns {Promise<boolean>} Whether there is another key.
 */
function askForKey(isWrong) {
  asking ??= new Promise((resolve) => {
    keyQuestion.value = {
      isWrong,
      answer: (key) => {
        keyQuestion.value = null;
        asking = null;
        if (key !== null) apiKey.value = key;
        resolve(key !== null);
      },
    };
  });
  return asking;
}

/**
 * @param {string} path
 * @param {RequestOptions} options
 */
async function send(path, { json, headers, ...options }) {
  /** @type {Record<string, string>} */
  const sent = { ...keyHeaders(), ...headers };
  if (json !== undefined) sent["Content-Type"] = "application/json";
  const body = json === undefined ? options.body : JSON.stringify(json);
  try {
    const response = await fetch(address(path), { ...options, headers: sent, body });
    if (response.status < 502) noteAnswer(); // else it may be that of a proxy
    return response;
  } catch (error) {
    if (options.signal?.aborted && /** @type {Error} */ (error).name !== "TimeoutError") throw error;
    throw unreachable();
  }
}

export function unreachable() {
  return new ApiError(0, { message: t("error.unreachable"), code: "unreachable" });
}

/**
 * The error in an answer.
 * @param {number} status
 * @param {string} body
 * @param {string | null | undefined} retryAfter The header.
 */
export function refusal(status, body, retryAfter) {
  const seconds = Number(retryAfter) || null;
  try {
    const { error } = JSON.parse(body);
    if (error.message) return new ApiError(status, error, seconds);
  } catch {
    // A proxy answered, the connection broke off, or it is the answer to a HEAD.
  }
  return new ApiError(status, { message: t("error.status", { status }) }, seconds);
}
