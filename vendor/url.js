// tus-js-client resolves addresses with the package url-parse, which old browsers need.
export default URL;
