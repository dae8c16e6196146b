export { Upload } from "tus-js-client";
