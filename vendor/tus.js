// tus-js-client with what the page needs of it: files, which browsers slice. Its own file reader also knows streams,
// React Native and Cordova, and its storage would keep addresses that the page keeps itself.
import HttpStack from "../node_modules/tus-js-client/lib.esm/browser/httpStack.js";
import BaseUpload from "../node_modules/tus-js-client/lib.esm/upload.js";

const httpStack = new HttpStack();

/** @param {File} file */
const openFile = async (file) => ({
  size: file.size,
  /** @param {number} start @param {number} end */
  slice: async (start, end) => ({ value: file.slice(start, end), done: end >= file.size }),
  close: () => {},
});

export class Upload extends BaseUpload {
  /**
   * @param {File} file
   * @param {object} options
   */
  constructor(file, options) {
    const own = { httpStack, fileReader: { openFile }, fingerprint: async () => null };
    super(file, { ...BaseUpload.defaultOptions, ...own, ...options });
  }
}
