// Makes the pictures of docs/console.md: `SERVER_URL=http://127.0.0.1:8080 node screenshots.mjs`, on a server of SmolLM2.
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { launch, visit } from "./browser.mjs";

const OUT = fileURLToPath(new URL("../../../docs/console/", import.meta.url));
mkdirSync(OUT, { recursive: true });
const browser = await launch();
const ENDED = /^(ended|cut at the limit)$/;

async function ask(page, question) {
  await page.getByRole("textbox", { name: "Message", exact: true }).fill(question);
  await page.keyboard.press("Enter");
  await page.locator(".turn").last().getByText(ENDED).waitFor();
}

const draw = {
  async chat(page) {
    await ask(page, "What is the capital of France? Answer in one short sentence.");
    await ask(page, "Why is the sky blue? Explain it in two sentences.");
    const tokens = page.locator(".turn").last().locator("[role=option]");
    await tokens.nth(3).click();
    await page.locator("button.alternative").nth(1).click();
    await page.locator(".turn").last().getByText(ENDED).waitFor();
  },
  async decide(page) {
    await page.getByRole("button", { name: "Decide", exact: true }).click();
    await page.locator(".answer").waitFor();
    await page.locator("summary", { hasText: "Token tree" }).click();
    await page.getByRole("button", { name: "Replay", exact: true }).click();
    await page.getByText("Identical.").waitFor();
  },
  async score(page) {
    await page.getByRole("button", { name: "Score", exact: true }).click();
    await page.locator(".plot").waitFor();
    await page.locator(".heat [role=option]").nth(32).click();
  },
  async monitor(page) {
    const call = (body) => page.evaluate((body) => fetch("/v1/completions", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }).then((reply) => reply.text()), body);
    for (let round = 0; round < 6; round += 1) {
      await Promise.all(Array.from({ length: 1 + ((round * 5) % 7) }, (_, index) => call({ prompt: `A story of the year ${1900 + 7 * round + index}: `, max_tokens: 40 + 40 * (round % 3) })));
      await page.waitForTimeout(700 + 400 * (round % 2));
    }
    await page.locator(".times li").first().waitFor();
  },
  async model(page) {
    await page.getByText("Identity", { exact: true }).waitFor();
  },
};

const PHONE = { viewport: { width: 390, height: 800 } };
const WIDE = { viewport: { width: 1280, height: 820 } };
for (const [view, name, settings] of [
  ["chat", "chat-light", WIDE], ["chat", "chat-dark", { ...WIDE, colorScheme: "dark" }], ["chat", "chat-phone", PHONE],
  ["decide", "decide-light", { viewport: { width: 1280, height: 880 } }], ["decide", "decide-phone", { ...PHONE, colorScheme: "dark" }],
  ["score", "score-dark", { ...WIDE, colorScheme: "dark" }], ["score", "score-phone", PHONE],
  ["monitor", "monitor-light", WIDE], ["model", "model-light", WIDE],
]) {
  const { page, end } = await visit(browser, view, settings);
  await draw[view](page);
  await page.mouse.move(2, 400);
  await page.evaluate(() => document.fonts.ready);
  await page.waitForTimeout(400);
  if (name === "decide-phone") await page.locator(".answer").scrollIntoViewIfNeeded().then(() => page.evaluate(() => scrollTo(0, document.querySelector(".answer").getBoundingClientRect().top + scrollY - 110)));
  await page.waitForTimeout(100);
  await page.screenshot({ path: `${OUT}${name}.png` });
  await end();
}
await browser.close();
