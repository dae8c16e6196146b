/** The error of tus-js-client: what failed, and the request and the answer that it concerns. */
export default class DetailedError extends Error {
  /**
   * @param {string} message
   * @param {Error | null} [causingError]
   * @param {import("tus-js-client").HttpRequest | null} [originalRequest]
   * @param {import("tus-js-client").HttpResponse | null} [originalResponse]
   */
  constructor(message, causingError = null, originalRequest = null, originalResponse = null) {
    const cause = causingError ? `, caused by ${causingError}` : "";
    const [method, url] = [originalRequest?.getMethod(), originalRequest?.getURL()];
    const [status, body] = [originalResponse?.getStatus() ?? "n/a", originalResponse?.getBody() ?? "n/a"];
    super(
      `${message}${cause}${originalRequest ? `, originated from request (method: ${method}, url: ${url}, response code: ${status}, response text: ${body})` : ""}`,
    );
    Object.assign(this, { causingError, originalRequest, originalResponse });
  }
}
