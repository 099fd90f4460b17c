// The official OpenAI SDK for Node against the server at SERVER_URL.

import assert from "node:assert/strict";
import { test } from "node:test";

import OpenAI from "openai";

const model = "smollm2-135m-instruct";
const client = new OpenAI({ baseURL: `${process.env.SERVER_URL}/v1`, apiKey: "none", maxRetries: 0 });
const request = {
  model,
  messages: [{ role: "user", content: "What is the capital of France?" }],
  max_tokens: 16,
  temperature: 0,
  logprobs: true,
  top_logprobs: 3,
};

const spelt = (entries) => entries.map((entry) => entry.token).join("");

test("a chat's entries spell it", async () => {
  const reply = await client.chat.completions.create(request);
  const [choice] = reply.choices;
  const entries = choice.logprobs.content;
  assert.equal(spelt(entries), choice.message.content);
  for (const entry of entries) {
    assert.equal(entry.top_logprobs.length, 3);
    assert.ok(entry.logprob <= 0);
  }
});

test("the stream is the same reply", async () => {
  const whole = (await client.chat.completions.create(request)).choices[0];
  let text = "";
  const entries = [];
  const stream = await client.chat.completions.create({ ...request, stream: true });
  for await (const chunk of stream) {
    const [choice] = chunk.choices;
    const found = choice?.logprobs?.content ?? [];
    assert.equal(spelt(found), choice?.delta.content ?? "");
    text += choice?.delta.content ?? "";
    entries.push(...found);
  }
  assert.equal(text, whole.message.content);
  assert.deepEqual(entries, whole.logprobs.content);
});

test("eight at once are their own", async () => {
  const prompts = ["2 + 2?", "A colour?", "Why is the sky blue?", "日本語 🙂", "One, two,", "Cats", "List: ", "Hi"];
  const ask = (content) => client.chat.completions.create({ ...request, messages: [{ role: "user", content }] });
  const together = await Promise.all(prompts.map(ask));
  for (const [index, reply] of together.entries()) {
    const alone = await ask(prompts[index]);
    assert.deepEqual(reply.choices, alone.choices);
  }
});

test("completions echo their prompt with its scores", async () => {
  const reply = await client.completions.create({ model, prompt: "The whale is a mammal.", max_tokens: 0, echo: true, logprobs: 1 });
  const { tokens, token_logprobs: scores } = reply.choices[0].logprobs;
  assert.equal(tokens.join(""), "The whale is a mammal.");
  assert.equal(scores[0], null);
  assert.ok(scores.slice(1).every(Number.isFinite));
});

test("a schema is kept", async () => {
  const schema = {
    type: "object",
    properties: { city: { enum: ["Paris", "Rome"] }, sure: { type: "boolean" } },
    required: ["city", "sure"],
    additionalProperties: false,
  };
  const reply = await client.chat.completions.parse({
    ...request,
    max_tokens: 100,
    response_format: { type: "json_schema", json_schema: { name: "answer", schema, strict: true } },
  });
  const answer = JSON.parse(reply.choices[0].message.content);
  assert.deepEqual(Object.keys(answer), ["city", "sure"]);
});

test("responses stream their text", async () => {
  let text = "";
  const stream = await client.responses.create({ model, input: "Say hello.", max_output_tokens: 16, temperature: 0, stream: true });
  let done;
  for await (const event of stream) {
    if (event.type === "response.output_text.delta") text += event.delta;
    if (event.type === "response.completed" || event.type === "response.incomplete") done = event.response;
  }
  assert.equal(text, done.output[0].content[0].text);
});

test("a wrong field is named", async () => {
  const wrong = client.chat.completions.create({ ...request, top_logprobs: 21 });
  await assert.rejects(wrong, (error) => error.status === 400 && error.param === "top_logprobs");
});
