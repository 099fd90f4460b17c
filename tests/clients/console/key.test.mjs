// A server with a key: the page is open, its data is not, and the key is asked for once.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { checkAccessible, launch, visit } from "./browser.mjs";

const KEYED = process.env.KEYED_SERVER_URL;
let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("the key is asked for, kept in the tab, and used", async () => {
  const { page, context, end } = await visit(browser, "model", { url: KEYED });
  const dialog = page.getByRole("dialog", { name: "This server needs a key" });
  await dialog.waitFor();
  await checkAccessible(page, "the question for a key");
  await page.getByRole("textbox", { name: "Key", exact: true }).fill("wrong");
  await page.keyboard.press("Enter");
  await page.getByText("That key was not accepted.").waitFor();
  await page.getByRole("textbox", { name: "Key", exact: true }).fill(process.env.KEY);
  await page.keyboard.press("Enter");
  await page.getByText("fingerprint", { exact: true }).waitFor();
  assert.equal(await dialog.isVisible(), false);
  await page.reload();
  await page.getByText("fingerprint", { exact: true }).waitFor();
  const other = await context.newPage();
  await other.goto(`${KEYED}/#model`);
  await other.getByRole("dialog").waitFor();
  await other.getByRole("button", { name: "Not now" }).click();
  await other.getByRole("alert").waitFor();
  await end();
});
