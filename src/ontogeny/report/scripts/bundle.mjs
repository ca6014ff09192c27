// Makes ../static/page.min.js of the modules beside this file, and notes what it was made of.

import { createHash } from "node:crypto";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { build, version } from "esbuild";

const STATIC = new URL("../static/", import.meta.url);
const HERE = new URL("./", import.meta.url);

const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");

async function sources() {
  const names = (await readdir(HERE)).filter((name) => name.endsWith(".js")).sort();
  return Promise.all(names.map(async (name) => [name, digest(await readFile(new URL(name, HERE)))]));
}

const options = {
  absWorkingDir: HERE.pathname,
  entryPoints: ["index.js"],
  bundle: true,
  minify: true,
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  write: false,
  outfile: "page.min.js",
};
// As one function that gives what is exported: a page has no modules of its own.
const [file] = (await build({ ...options, format: "iife", globalName: "page" })).outputFiles;
const { metafile } = await build({ ...options, format: "esm", metafile: true });
const [{ exports }] = Object.values(metafile.outputs);
const origin = {
  made_by: `esbuild ${version}`,
  digest: digest(file.contents),
  exports: exports.sort(),
  sources: Object.fromEntries(await sources()),
};
await writeFile(new URL("page.min.js", STATIC), file.contents);
await writeFile(new URL("page.min.json", STATIC), `${JSON.stringify(origin, null, 1)}\n`);
