export {
  type DetailedError,
  type HttpRequest,
  type HttpResponse,
  type PreviousUpload,
  Upload,
  type UploadOptions,
} from "tus-js-client";
