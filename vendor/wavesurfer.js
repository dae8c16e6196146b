// The page requires trusted types. wavesurfer.js writes HTML in two places: it empties elements, and makes its frame, a
// style sheet and some plain elements. Nothing else passes, and neither of them can run anything.
const FRAME =
  /^\s*<style(?: nonce="[\w+/=-]*")?>[^<]*<\/style>\s*(?:<div class="[a-z]+" part="[a-z]+">\s*|<\/div>\s*)*$/;

globalThis.trustedTypes?.createPolicy("default", {
  createHTML: (/** @type {string} */ text) => (text === "" || FRAME.test(text) ? text : null),
});

export { default as WaveSurfer } from "wavesurfer.js";
export { default as RegionsPlugin } from "wavesurfer.js/plugins/regions";
