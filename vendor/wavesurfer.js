// The page requires trusted types. wavesurfer.js empties elements with `innerHTML = ""`, and no HTML but that may pass.
globalThis.trustedTypes?.createPolicy("default", {
  createHTML: (/** @type {string} */ text) => (text === "" ? "" : null),
});

export { default as WaveSurfer } from "wavesurfer.js";
export { default as RegionsPlugin } from "wavesurfer.js/plugins/regions";
