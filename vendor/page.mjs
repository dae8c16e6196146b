// Bundles the page's modules and styles into the files that browsers load: node vendor/page.mjs FOLDER
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

const WEB = join(import.meta.dirname, "..", "app", "web");

// HTML in templates is indented, which no minifier removes. The page drops line breaks between elements anyway.
const withoutIndents = {
  name: "without indents",
  setup: ({ onLoad }) =>
    onLoad({ filter: /[\\/](core|fleet|job|list|shell)[\\/][^\\/]+\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, "utf8")).replace(/\n\s+/g, "\n").replace(/([>}`])\n(?=<|\$\{)/g, "$1"),
    })),
};

await build({
  absWorkingDir: WEB,
  entryPoints: { main: "main.js", page: "styles/page.css" },
  outdir: process.argv[2] ?? join(WEB, "bundle"),
  bundle: true,
  external: ["../texts/*.js"], // only that of the reader's language is loaded, from where it is
  format: "esm",
  legalComments: "none",
  minify: true,
  plugins: [withoutIndents],
  target: "es2022",
  banner: { js: "/*! Licences: ../vendor/LICENSES.txt */" },
});
