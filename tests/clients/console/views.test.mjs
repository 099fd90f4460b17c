// Every view of the console, worked through as a person would, against the live server; what is shown is compared with
// what the API says.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { call, checkAccessible, checkFits, launch, visit } from "./browser.mjs";

const QUESTION = "What is the capital of France? Answer in one short sentence.";
let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

async function asked(page, question) {
  await page.getByRole("textbox", { name: "Message", exact: true }).fill(question);
  await page.keyboard.press("Enter");
  await page.locator(".turn").last().getByText(/^(ended|cut at the limit)$/).waitFor();
}

test("chat: tokens with their probabilities, and another way on", async () => {
  const { page, end } = await visit(browser, "chat");
  await checkAccessible(page, "empty chat");
  await asked(page, QUESTION);
  const reply = await call("/v1/chat/completions", { messages: [{ role: "user", content: QUESTION }], temperature: 0, max_tokens: 256, logprobs: true, top_logprobs: 10 });
  const entries = reply.choices[0].logprobs.content;
  const tokens = page.locator(".reply [role=option]");
  assert.deepEqual(await tokens.allTextContents(), entries.map((entry) => entry.token));

  await tokens.nth(0).click();
  const inspector = page.getByRole("region", { name: "Selected token" });
  await checkAccessible(page, "a selected token");
  const logprob = inspector.getByRole("button", { name: /^log-probability/ });
  await logprob.click();
  assert.equal(await logprob.textContent(), String(entries[0].logprob).replace("-", "−"));
  const alternatives = await inspector.locator(".alternatives code").allTextContents();
  assert.deepEqual(alternatives, entries[0].top_logprobs.map((one) => one.token));

  const other = entries[0].top_logprobs.find((one) => one.token !== entries[0].token);
  await inspector.getByRole("button", { name: new RegExp(`^Continue from here with ${other.token} `) }).click();
  await page.getByText("branch 2 of 2").waitFor();
  await page.locator(".turn").getByText(/^(ended|cut at the limit)$/).waitFor();
  const branched = await tokens.allTextContents();
  assert.equal(branched[0], other.token);
  assert.ok(branched.length > 1, "it goes on behind the token");
  // The chosen token's own value is that of the alternative, to the last digit.
  const path = await page.locator(".meta .exact").first().getAttribute("aria-label");
  assert.match(path, /^log-probability of the reply −/);
  await page.getByRole("button", { name: "Branch before" }).click();
  assert.deepEqual(await tokens.allTextContents(), entries.map((entry) => entry.token));

  // The token that ends replies ends this one where it stands.
  const { eos_token } = await call("/tokenizer_info");
  const at = entries.findIndex((entry) => entry.top_logprobs.some((one) => one.token === eos_token));
  assert.ok(at > 0, "the end is among the alternatives of some token");
  await tokens.nth(at).click();
  await inspector.locator("button.alternative", { hasText: eos_token }).click();
  await page.getByText("branch 3 of 3").waitFor();
  await page.locator(".turn").getByText("ended").waitFor();
  assert.deepEqual(await tokens.allTextContents(), entries.slice(0, at).map((entry) => entry.token));
  await end();
});

test("chat: by keyboard alone, and stopped", async () => {
  const { page, end } = await visit(browser, "chat");
  await page.locator("summary", { hasText: "Settings" }).click();
  await page.getByLabel("Temperature").fill("1");
  await page.getByLabel("Most tokens").fill("2000");
  await page.getByLabel("Seed").fill("11");
  await page.getByRole("textbox", { name: "Message", exact: true }).fill("Write a very long story about the sea.");
  await page.keyboard.press("Enter");
  await page.locator(".reply [role=option]").nth(3).waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("stopped by you").waitFor();
  const list = page.getByRole("listbox");
  await list.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  const active = await list.getAttribute("aria-activedescendant");
  const option = page.locator(`[id="${active}"]`);
  await page.locator(`[id="${active}"][aria-selected="true"]`).waitFor();
  assert.match(await option.getAttribute("aria-label"), /%, .* bits$/);
  await page.getByRole("region", { name: "Selected token" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("region", { name: "Selected token" }).waitFor({ state: "detached" });
  await end();
});

test("decide: labels, their tree, their receipt", async () => {
  const { page, end } = await visit(browser, "decide");
  await checkAccessible(page, "empty decide");
  await page.getByLabel("State").fill("The soup was cold.");
  await page.getByRole("textbox", { name: "Question", exact: true }).fill("Is it good?");
  await page.getByLabel("Labels", { exact: false }).last().fill("very good\nvery bad\nso so | neither");
  await page.getByRole("button", { name: "Decide", exact: true }).click();
  const rows = page.locator(".options li");
  await rows.nth(2).waitFor();
  const body = {
    input: "The soup was cold.", diagnostics: true,
    questions: [{ type: "choice", instructions: "Is it good?", choices: [{ value: "very good" }, { value: "very bad" }, { value: "so so", description: "neither" }] }],
  };
  const { answers: [answer] } = await call("/v1/decisions", body);
  for (const [index, { value, probability }] of answer.probabilities.entries()) {
    const figure = rows.nth(index).locator(".exact");
    assert.equal(await rows.nth(index).locator(".name").textContent(), value);
    await figure.click();
    assert.equal(await figure.textContent(), String(probability).replace("-", "−"));
  }
  const mass = page.locator(".mass .exact");
  await mass.click();
  assert.equal(await mass.textContent(), String(answer.label_mass).replace("-", "−"));

  await page.locator("summary", { hasText: "Token tree" }).click();
  const tree = page.getByRole("group", { name: "Token tree of the labels" });
  const steps = tree.locator(".step:not(.end)");
  // A tree is drawn once it is opened.
  await steps.first().waitFor();
  assert.equal(await steps.count(), answer.diagnostics.trie_edges);
  const first = answer.diagnostics.labels[0];
  const step = tree.locator(".step", { hasText: first.tokens[0] }).first().locator(".exact");
  await step.click();
  assert.equal(await step.textContent(), String(first.logprobs[0]).replace("-", "−"));
  await checkAccessible(page, "an answer with its tree");

  const downloading = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download" }).click();
  const receipt = JSON.parse(await readFile(await (await downloading).path(), "utf8"));
  assert.equal(receipt.format, "assay-receipt-1");
  await page.getByRole("button", { name: "Replay", exact: true }).click();
  await page.getByText("Identical.").waitFor();
  const file = (changed) => ({ name: "receipt.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(changed)) });
  await page.getByLabel("Receipt file").setInputFiles(file({ ...receipt, created: 1 }));
  await page.getByText("Broken.").waitFor();
  await page.getByLabel("Receipt file").setInputFiles(file({ reply: "of something else" }));
  await page.getByText("Broken.").waitFor();
  await end();
});

test("decide: a schema, live, and what is wrong with one", async () => {
  const { page, end } = await visit(browser, "decide");
  await page.getByText("JSON Schema", { exact: true }).click();
  const schema = page.getByLabel("Schema", { exact: false }).last();
  await schema.fill('{"type": "object", "properties": {"kind": {"enum": ["meal", "room"]}, "stars": {"type": "integer", "minimum": 1, "maximum": 3}}}');
  await page.getByLabel("live, while you type").check();
  await page.getByRole("region", { name: "/stars" }).waitFor();
  assert.equal(await page.locator(".answer:not(.whole)").count(), 2);
  const whole = page.getByRole("region", { name: "The most likely instance" });
  const value = JSON.parse(await whole.locator(".copy code").textContent());
  assert.deepEqual(Object.keys(value), ["kind", "stars"]);
  await schema.fill('{"type": "string"}');
  await page.getByRole("alert").waitFor();
  assert.match(await page.getByRole("alert").textContent(), /schema/);
  await schema.fill("{");
  await page.getByText("The schema is not JSON").waitFor();
  await checkAccessible(page, "a schema that is wrong");
  await end();
});

test("score: heat map, plot, perplexity", async () => {
  const { page, end } = await visit(browser, "score");
  await checkAccessible(page, "empty score");
  const text = "The whale is a mammal.\nThe whale is a spoon. 日本語 🙂";
  await page.getByLabel("Text", { exact: false }).first().fill(text);
  await page.getByRole("button", { name: "Score", exact: true }).click();
  await page.locator(".plot").waitFor();
  const reply = await call("/v1/completions", { prompt: text, echo: true, max_tokens: 0, logprobs: 1, logprobs_content: true });
  const { tokens, token_logprobs } = reply.choices[0].logprobs;
  const scored = token_logprobs.slice(1);
  const perplexity = page.getByRole("button", { name: /^perplexity/ });
  await perplexity.click();
  assert.equal(await perplexity.textContent(), String(Math.exp(-scored.reduce((sum, one) => sum + one, 0) / scored.length)));
  const shown = await page.locator(".heat [role=option]").allTextContents();
  assert.deepEqual(shown, tokens.map((token) => token.replaceAll("\n", "↵\n") || "·"));
  await page.locator(".heat [role=option]").nth(2).hover();
  await page.locator(".tip:visible").waitFor();
  assert.ok((await page.locator(".plot figcaption .figure").textContent()).startsWith("2: "));
  await page.getByRole("region", { name: "Most surprising tokens" }).getByRole("button").first().click();
  await page.getByRole("region", { name: "Selected token" }).waitFor();
  await checkAccessible(page, "a heat map");
  await end();
});

test("monitor: the server's own figures", async () => {
  await call("/v1/completions", { prompt: "One more", max_tokens: 2 });
  const { page, end } = await visit(browser, "monitor");
  for (const title of ["Requests", "Generation", "Prompts", "Memory", "Device", "Latency"]) await page.getByRole("heading", { name: title }).waitFor();
  await page.locator(".times li").first().waitFor();
  const about = await call("/v1/about");
  assert.equal(await page.locator(".big.device").textContent(), about.device.name);
  await page.getByText("server overhead").click();
  await page.locator(".times li").first().waitFor();
  await page.getByText("since this view opened").click();
  await page.getByText("No request has been timed yet.").waitFor();
  await call("/v1/completions", { prompt: "Yet one more", max_tokens: 2 });
  await page.locator(".times li").first().waitFor();
  await checkAccessible(page, "monitor");
  await end();
});

test("model: what is loaded", async () => {
  const { page, end } = await visit(browser, "model");
  const about = await call("/v1/about");
  await page.getByText(about.system_fingerprint).waitFor();
  for (const { format, num_tensors } of about.model.weights) {
    const row = page.getByRole("row", { name: new RegExp(`^${format}\\b`) });
    assert.equal(await row.locator("td").nth(1).textContent(), String(num_tensors));
  }
  await page.getByText(about.model.sha256).waitFor();
  await checkAccessible(page, "model");
  await end();
});

test("views keep their state, fit every width, and answer to the address", async () => {
  for (const width of [360, 768, 1440]) {
    const { page, end } = await visit(browser, "chat", { viewport: { width, height: 800 } });
    await asked(page, "Say yes.");
    await page.locator(".reply [role=option]").first().click();
    for (const [view, button, result] of [["decide", "Decide", ".answer"], ["score", "Score", ".plot"], ["monitor", null, ".cards"], ["model", null, ".sheets"]]) {
      await page.getByRole("navigation").getByRole("link", { name: view }).click();
      if (button) await page.getByRole("button", { name: button, exact: true }).click();
      await page.locator(result).first().waitFor();
      await checkFits(page, `${view} at ${width}`);
    }
    await page.goBack();
    assert.match(page.url(), /#monitor$/);
    await page.getByRole("navigation").getByRole("link", { name: "chat" }).click();
    assert.equal(await page.locator(".turn").count(), 1);
    await checkFits(page, `chat at ${width}`);
    if (width === 360) await checkAccessible(page, "chat on a phone");
    await end();
  }
});
