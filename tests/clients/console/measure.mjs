// How fast the console is: `SERVER_URL=http://127.0.0.1:8080 node measure.mjs` prints a table; nothing is asserted. First
// paint, 4,000 scored tokens (drawing, scrolling, hovering) and a decision of 200 options, in a headless Chromium.
import { launch, visit } from "./browser.mjs";

const percentile = (values, share) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))];
const ms = (value) => `${value.toFixed(1)} ms`;
const rows = [];

/** Times from a reply's last byte, parsed, to the frame that shows what became of it. */
const WATCH = `
  const json = Response.prototype.json;
  Response.prototype.json = async function () {
    const text = await this.text();
    window.began = performance.now();
    return JSON.parse(text);
  };
  window.shown = (selector, least) => new Promise((resolve) => {
    const look = () => document.querySelectorAll(selector).length >= least
      ? requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - window.began)))
      : requestAnimationFrame(look);
    look();
  });
  window.frames = (work) => new Promise((resolve) => {
    const times = [];
    let last = performance.now();
    const frame = (now) => {
      times.push(now - last);
      last = now;
      if (work(times.length)) requestAnimationFrame(frame);
      else resolve(times.slice(2));
    };
    requestAnimationFrame(frame);
  });`;

const browser = await launch();

const paints = [];
for (let run = 0; run < 5; run += 1) {
  const { page, context } = await visit(browser, "chat");
  await page.locator(".composer").waitFor();
  await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
  paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
  await context.close();
}
rows.push(["first contentful paint, empty cache, worst of 5", ms(Math.max(...paints))]);

{
  const { page, context } = await visit(browser, "score");
  await page.evaluate(WATCH);
  const sentence = "The whale is the largest animal that has ever lived, and number NUM of its kin sings in the cold sea. ";
  const text = Array.from({ length: 170 }, (_, index) => sentence.replace("NUM", index + 1)).join("");
  await page.getByLabel("Text", { exact: false }).first().fill(text);
  await page.getByRole("button", { name: "Score", exact: true }).click();
  const drawn = await page.evaluate(() => shown(".heat [role=option]", 100), undefined);
  rows.push([`${await page.locator(".heat [role=option]").count()} tokens: from the reply's bytes to the frame`, ms(drawn)]);
  const scrolled = await page.evaluate(() => frames((count) => (scrollBy(0, count < 90 ? 37 : -37), count < 180)));
  rows.push(["scrolling, frame: median, 99 %, worst", `${ms(percentile(scrolled, 0.5))}, ${ms(percentile(scrolled, 0.99))}, ${ms(Math.max(...scrolled))}`]);
  await page.locator(".heat .tokens").scrollIntoViewIfNeeded();
  const box = await page.locator(".heat .tokens").boundingBox();
  const top = Math.max(box.y, 0) + 30;
  const hovering = page.evaluate(() => { window.over = false; return frames(() => !window.over); });
  for (let step = 0; step < 150; step += 1) await page.mouse.move(box.x + ((step * 53) % box.width), top + ((step * 31) % 500));
  await page.evaluate(() => (window.over = true));
  const hovered = await hovering;
  rows.push(["hovering 150 tokens, frame: median, 99 %, worst", `${ms(percentile(hovered, 0.5))}, ${ms(percentile(hovered, 0.99))}, ${ms(Math.max(...hovered))}`]);
  await context.close();
}

{
  const { page, context } = await visit(browser, "decide");
  page.setDefaultTimeout(120_000);
  await page.evaluate(WATCH);
  await page.getByLabel("Labels", { exact: false }).last().fill(Array.from({ length: 200 }, (_, index) => `option number ${index + 1}`).join("\n"));
  const times = [];
  for (let run = 0; run < 3; run += 1) {
    await page.getByLabel("State").fill(`What is run ${run}?`);
    await page.evaluate(() => { for (const row of document.querySelectorAll(".options li")) row.dataset.old = "1"; });
    const replied = page.waitForResponse("**/v1/decisions");
    await page.getByRole("button", { name: "Decide", exact: true }).click();
    await (await replied).finished();
    times.push(await page.evaluate(() => shown(".options li", 12)));
    if (run === 0) await page.getByRole("button", { name: /^show all/ }).click();
  }
  rows.push(["200 options: from the reply's bytes to the frame, first, again with all shown", times.map(ms).join(", ")]);
  await context.close();
}

await browser.close();
for (const [what, value] of rows) console.log(`${what}: ${value}`);
