// Builds the page of plan.html: one file with its scripts and styles, and the licences of what is in it.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync, existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const room = join(here, "..", "compiler", "page");

/** What the page is made of, by which a test sees that the built one is not older. */
function sources() {
  const hash = createHash("sha256");
  const names = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json", ...readdirSync(join(here, "src")).map((name) => `src/${name}`)];
  for (const name of names.sort()) hash.update(`${name}\0`).update(readFileSync(join(here, name))).update("\0");
  return hash.digest("hex");
}

const made = await build({
  entryPoints: [join(here, "src", "main.tsx")],
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  charset: "utf8",
  format: "iife",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  absWorkingDir: here,
  define: { "process.env.NODE_ENV": '"production"' },
});
const style = await build({ entryPoints: [join(here, "src", "style.css")], minify: true, write: false, absWorkingDir: here });

/** The packages whose code is in the bundle, and their licences. */
function licences() {
  const used = Object.values(made.metafile.outputs)[0].inputs;
  const names = new Map();
  for (const [input, { bytesInOutput }] of Object.entries(used)) {
    const found = /(?:^|.*\/)node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (found && bytesInOutput) names.set(found[1], [...(names.get(found[1]) ?? []), input]);
  }
  return [...names.keys()].sort().map((name) => {
    const folder = join(here, "node_modules", name);
    const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = ["LICENSE", "LICENSE.md", "LICENSE.txt", "LICENCE", "license"].map((each) => join(folder, each)).find(existsSync);
    if (!file) throw new Error(`${name} has no licence file`);
    // What a package has bundled itself.
    const legal = [...names.get(name)].map((input) => join(here, `${input}.LEGAL.txt`)).filter(existsSync);
    const texts = [file, ...legal].map((each) => readFileSync(each, "utf8").trim());
    return `${name} ${about.version} (${about.license})\n\n${[...new Set(texts)].join("\n\n")}\n`;
  });
}

const texts = licences();
const line = "-".repeat(100);
writeFileSync(join(room, "LICENSES.txt"), `page.html contains the following packages.\n\n${texts.join(`\n${line}\n\n`)}`);

const script = made.outputFiles[0].text.trim();
const styles = style.outputFiles[0].text.trim();
for (const [what, text] of [["script", script], ["style", styles]])
  if (text.toLowerCase().includes(`</${what}`)) throw new Error(`the ${what} would end its element`);
const page = readFileSync(join(here, "src", "index.html"), "utf8")
  .replace("<!doctype html>", () => `<!doctype html>\n<!-- Built from page/ ${sources()}; licences: LICENSES.txt -->`)
  .replace("%style%", () => styles)
  .replace("%script%", () => script);
writeFileSync(join(room, "page.html"), page);
console.log(`compiler/page/page.html: ${(page.length / 1024).toFixed(0)} KiB, ${texts.length} packages`);
