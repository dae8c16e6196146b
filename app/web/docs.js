/** Starts Swagger UI at /docs, which has loaded it before. */

const { SwaggerUIBundle } = /** @type {any} */ (globalThis);

SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  layout: "BaseLayout",
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIBundle.SwaggerUIStandalonePreset],
  showCommonExtensions: true,
  showExtensions: true,
  validatorUrl: null, // the default is a badge from another host
});
