// tus-js-client encodes the metadata of uploads with the package js-base64, which old browsers need.
export const Base64 = {
  /** @param {string} text */
  encode: (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text))),
};
