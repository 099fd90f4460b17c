// A browser on the console of the server under test. Every request that it makes is noted; a fault of the page fails the test.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

export const SERVER = process.env.SERVER_URL;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
}

/** A page of `browser` with the console's `view` open; `settings` are the context's. */
export async function visit(browser, view, { url = SERVER, ...settings } = {}) {
  // The accessibility rules are put into the page from outside; its own policy is tested over HTTP.
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: "reduce", ...settings });
  const page = await context.newPage();
  const requests = [];
  const faults = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) faults.push(message.text());
  });
  await page.goto(`${url}/#${view}`);
  const end = async () => {
    await context.close();
    assert.deepEqual(faults, []);
    assert.ok(requests.length > 2, "the page asked for its parts");
    for (const asked of requests) assert.ok(/^(http:\/\/127\.0\.0\.1:|blob:http:\/\/127\.0\.0\.1:|data:)/.test(asked), `a request left: ${asked}`);
  };
  return { page, context, requests, end };
}

/** Fails if axe-core finds a serious fault in what is shown now, light or dark. */
export async function checkAccessible(page, what) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    const found = await page.evaluate(`(() => { ${AXE} })(); window.axe.run(document, { resultTypes: ["violations"] })`);
    const grave = found.violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    const told = grave.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} ${node.failureSummary}`).slice(0, 4).join("\n")}`);
    assert.deepEqual(told, [], `${what}, ${colorScheme}`);
  }
  await page.emulateMedia({ colorScheme: null });
}

/** Fails if something reaches over the side of the page. */
export async function checkFits(page, what) {
  const widths = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(widths[0] <= widths[1], `${what}: ${widths[0]} wide on a page of ${widths[1]}`);
}

/** What the server itself answers. */
export async function call(path, body) {
  const reply = await fetch(SERVER + path, body ? { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) } : {});
  assert.equal(reply.status, 200, path);
  return reply.json();
}
