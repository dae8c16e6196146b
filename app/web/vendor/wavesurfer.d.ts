export { default as WaveSurfer, type WaveSurferOptions } from "wavesurfer.js";
export { default as RegionsPlugin, type Region, type RegionParams } from "wavesurfer.js/plugins/regions";
