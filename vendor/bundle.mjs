// Bundles the page's packages into modules that browsers load as they are: node vendor/bundle.mjs FOLDER
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { build } from "esbuild";

const SOURCES = import.meta.dirname;
const ROOT = join(SOURCES, "..");
const ENTRIES = ["ui", "tus"];
const RULE = `\n\n${"-".repeat(80)}\n\n`;

// A class of today's browsers. The package's own is written for those that cannot extend Error, which is most of it.
const withPlainErrors = {
  name: "with plain errors",
  setup: ({ onLoad }) =>
    onLoad({ filter: /tus-js-client\/lib\.esm\/error\.js$/ }, async () => ({
      contents: await readFile(join(SOURCES, "tus_error.js"), "utf8"),
    })),
};

/** The names of the packages whose code is in a bundle. */
function packagesOf(metafile) {
  const inputs = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.keys(inputs));
  const names = inputs.map((path) => path.match(/.*node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1]);
  return [...new Set(names.filter((name) => name !== undefined))].sort();
}

/** The name, version and licence of a package, with the licence's text. */
async function licence(name) {
  const folder = join(ROOT, "node_modules", name);
  const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const file = (await readdir(folder)).find((entry) => /^licen[cs]e(\.|$)/i.test(entry));
  if (file === undefined) {
    throw new Error(`${name} has no licence file. Add its text to vendor/bundle.mjs, or drop the package.`);
  }
  const text = await readFile(join(folder, file), "utf8");
  return { title: `${name} ${version} (${license})`, text: text.replaceAll("\r\n", "\n").trim() };
}

async function bundle(entry, folder) {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: [relative(ROOT, join(SOURCES, `${entry}.js`))],
    outfile: join(folder, `${entry}.js`),
    alias: { "js-base64": "./vendor/base64.js", "url-parse": "./vendor/url.js" },
    allowOverwrite: true,
    banner: { js: "/*! See LICENSES.txt */" },
    bundle: true,
    format: "esm",
    legalComments: "none",
    metafile: true,
    minify: true,
    plugins: [withPlainErrors],
    target: "es2022",
  });
  return packagesOf(metafile);
}

const folder = process.argv[2] ?? join(ROOT, "app", "web", "vendor");
const found = await Promise.all(ENTRIES.map((entry) => bundle(entry, folder)));
const licences = await Promise.all([...new Set(found.flat())].sort().map(licence));
const contents = ENTRIES.map((entry, at) => `${entry}.js: ${found[at].join(", ")}`).join("\n");
const texts = licences.map(({ title, text }) => `${title}\n\n${text}`).join(RULE);
await writeFile(join(folder, "LICENSES.txt"), `${contents}${RULE}${texts}\n`);
