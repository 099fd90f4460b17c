// The System One SDK for Node against the server at SERVER_URL, beside /v1/decisions.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BadRequestError, TypeSafeClient, UnprocessableEntityError, choice, noul, score } from "@typesafe-ai/sdk";

const url = process.env.SERVER_URL;
const model = "smollm2-135m-instruct";
const client = new TypeSafeClient({ apiKey: "none", baseURL: url, defaultModel: model, retry: { maxRetries: 0 } });
const state = "I was charged twice for March and nobody answers my mails. Zürich 🙂";
const teams = { Billing: "Payments and refunds", Technical: "Bugs and outages", Sales: null };
const levels = ["calm", "cross", "furious"];
const questions = {
  refund: noul("Is the customer asking for money back?"),
  team: choice("Which team?", teams),
  anger: score("How angry is the customer?", levels),
};

const asOpenAi = async () => {
  const choices = Object.entries(teams).map(([value, description]) => (description ? { value, description } : { value }));
  const response = await fetch(`${url}/v1/decisions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model,
      input: state,
      questions: [
        { type: "predicate", instructions: questions.refund.instructions },
        { type: "choice", instructions: questions.team.instructions, choices },
        { type: "score", instructions: questions.anger.instructions, levels: levels.map((label) => ({ label })) },
      ],
    }),
  });
  assert.equal(response.status, 200);
  return (await response.json()).answers;
};

test("each kind of question has the bits of /v1/decisions", async () => {
  const { answers, usage } = await client.systemOne({ state, questions });
  const [refund, team, anger] = await asOpenAi();
  assert.equal(answers.refund.noul, refund.probability);
  assert.equal(answers.team.choice, team.choice);
  assert.equal(answers.team.confidence, team.confidence);
  assert.deepEqual(
    Object.entries(answers.team.probabilities),
    team.probabilities.map(({ value, probability }) => [value, probability]),
  );
  assert.equal(answers.anger.score, anger.score);
  assert.deepEqual(
    Object.values(answers.anger.probabilities),
    anger.probabilities.map(({ probability }) => probability),
  );
  assert.deepEqual(Object.values(answers.anger.legend), levels);
  assert.ok(Number.isInteger(usage.input_tokens) && usage.input_tokens > 0);
});

test("a question's answer does not hang on its neighbours or its name", async () => {
  const { answers } = await client.systemOne({ state, questions });
  const alone = await client.systemOne({ state, questions: { other: questions.team } });
  assert.deepEqual(alone.answers.other, answers.team);
});

test("a structured state, the list of models and the request's id", async () => {
  const { data, requestId } = await client
    .systemOne({ state: { mail: state, id: 4471 }, questions: { refund: questions.refund } })
    .withResponse();
  assert.ok(data.answers.refund.noul > 0 && data.answers.refund.noul < 1);
  assert.ok(requestId);
  const names = (await client.models.list()).map(({ name }) => name);
  assert.ok(names.includes(model), names.join());
});

test("a fault is named by its place", async () => {
  const one = { type: "choice", instructions: "Which?", criteria: { one: null } };
  await assert.rejects(client.systemOne({ state, questions: { team: one } }), (error) => {
    assert.ok(error instanceof UnprocessableEntityError || error instanceof BadRequestError, String(error));
    assert.match(JSON.stringify(error.body ?? error.message), /criteria/);
    return true;
  });
});
