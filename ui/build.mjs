// Bundles the page, and writes it as a C++ table of compressed files: node build.mjs OUT.cc [FOLDER], where FOLDER also
// gets the files as they are.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { constants, gzipSync } from "node:zlib";
import { build } from "esbuild";

const own = dirname(fileURLToPath(import.meta.url));
const [out, folder] = process.argv.slice(2);
const types = { ".js": "text/javascript", ".css": "text/css", ".html": "text/html; charset=utf-8", ".svg": "image/svg+xml" };

const made = await build({
  absWorkingDir: own,
  entryPoints: ["src/main.tsx", "src/style.css"],
  outdir: join(own, "out"),
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  minify: true,
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  legalComments: "none",
  write: false,
  metafile: true,
  logLevel: "warning",
});

const files = new Map(made.outputFiles.map((file) => [file.path.slice(join(own, "out").length + 1), Buffer.from(file.contents)]));
const named = (start, end) => [...files.keys()].find((name) => name.startsWith(start) && name.endsWith(end));
const index = readFileSync(join(own, "index.html"), "utf8")
  .replace("main.js", named("main-", ".js"))
  .replace("style.css", named("style-", ".css"));
files.set("index.html", Buffer.from(index));
files.set("icon.svg", readFileSync(join(own, "icon.svg")));

const literal = (bytes) => {
  let text = "";
  for (let at = 0; at < bytes.length; at += 64)
    text += `\n    "${[...bytes.subarray(at, at + 64)].map((byte) => "\\" + byte.toString(8).padStart(3, "0")).join("")}"`;
  return text;
};
const rows = [...files].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, bytes]) => {
  const packed = gzipSync(bytes, { level: constants.Z_BEST_COMPRESSION });
  const digest = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  return `  {"${name}", "${types[extname(name)]}", "${digest}", std::string_view(${literal(packed)}, ${packed.length})},`;
});
// The terminal is longer than a literal need be able to be; clang and gcc take it.
writeFileSync(out, `#include "ui/files.h"

#pragma GCC diagnostic ignored "-Woverlength-strings"

namespace drover::ui {

const std::span<const File> kFiles = [] {
  static constexpr File kAll[] = {
${rows.join("\n")}
  };
  return std::span<const File>(kAll);
}();

}  // namespace drover::ui
`);
if (folder) {
  mkdirSync(folder, { recursive: true });
  for (const [name, bytes] of files) writeFileSync(join(folder, name), bytes);
}
