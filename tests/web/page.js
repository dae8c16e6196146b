/** What modules of the page find in a browser, for tests that import them in Node. Import it first. */

Object.assign(globalThis, {
  document: { baseURI: "http://localhost/", documentElement: {}, getElementById: () => null },
  location: { hash: "" },
  addEventListener: () => {},
  BroadcastChannel: class {}, // an open one of Node keeps its process alive
});
globalThis.navigator ??= /** @type {any} */ ({ languages: ["en"] });
