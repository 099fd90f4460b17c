// Builds the console into the server's assets; with --check, compares a fresh build with what is committed there.
import { build } from "esbuild";
import { copyFile, mkdir, mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, "../crates/assay-server/assets/console");
const fonts = join(here, "node_modules/@fontsource");

export const options = {
  absWorkingDir: here,
  entryPoints: { console: "src/main.tsx", "console-style": "src/styles/index.css" },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  external: ["/console/*"],
  legalComments: "none",
  logLevel: "warning",
};

/** Writes everything that the server serves into `out`. */
export async function buildInto(out) {
  await mkdir(out, { recursive: true });
  const scratch = await mkdtemp(join(tmpdir(), "assay-console-"));
  try {
    await build({ ...options, outdir: scratch });
    await copyFile(join(scratch, "console.js"), join(out, "console.js"));
    await copyFile(join(scratch, "console-style.css"), join(out, "console.css"));
  } finally {
    await rm(scratch, { recursive: true });
  }
  await copyFile(join(here, "src/index.html"), join(out, "index.html"));
  await copyFile(`${fonts}-variable/ibm-plex-sans/files/ibm-plex-sans-latin-wght-normal.woff2`, join(out, "sans.woff2"));
  await copyFile(`${fonts}/ibm-plex-mono/files/ibm-plex-mono-latin-400-normal.woff2`, join(out, "mono.woff2"));
  await copyFile(`${fonts}/ibm-plex-mono/LICENSE`, join(out, "fonts.txt"));
}

async function check() {
  const fresh = await mkdtemp(join(tmpdir(), "assay-console-"));
  try {
    await buildInto(fresh);
    const names = [...new Set([...(await readdir(fresh)), ...(await readdir(assets))])];
    const read = (folder, name) => readFile(join(folder, name)).catch(() => null);
    const stale = [];
    for (const name of names) {
      const [made, committed] = [await read(fresh, name), await read(assets, name)];
      if (!made || !committed || !made.equals(committed)) stale.push(name);
    }
    if (stale.length > 0) {
      console.error(`not what console/src builds: ${stale.join(", ")}; run \`npm run build\` in console/ and commit the result`);
      process.exitCode = 1;
    }
  } finally {
    await rm(fresh, { recursive: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await (process.argv.includes("--check") ? check() : buildInto(assets));
}
