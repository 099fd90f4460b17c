// Draws /openapi.json. Text only ever becomes text: no markup of the document is trusted.
"use strict";

let api;

/** An element with attributes and children; strings become text, and `code` where they stand in backquotes. */
function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== ""));
  return element;
}

const words = (text = "") => text.split("`").map((part, index) => (index % 2 ? el("code", {}, part) : part));
const named = (schema) => schema?.$ref?.split("/").pop();
const follow = (value) => value?.$ref?.slice(2).split("/").reduce((at, key) => at[key], api) ?? value;
const isNull = (schema) => schema.type === "null" || (schema.enum?.length === 1 && schema.enum[0] === null);
const variants = (schema) => (schema.oneOf ?? schema.anyOf)?.filter((one) => !isNull(one));
const json = (value) => JSON.stringify(value, null, 2);

/** A schema's type in words; null is left out, as every field that may be absent may be null. */
function typeOf(schema) {
  if (schema === true || schema === undefined) return "anything";
  if (schema.$ref) return named(schema);
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.filter((one) => one !== null || isNull(schema)).map((one) => JSON.stringify(one)).join(" | ");
  if (variants(schema)) return [...new Set(variants(schema).map(typeOf))].join(" or ");
  const types = [schema.type ?? "anything"].flat();
  const shown = types.length > 1 ? types.filter((type) => type !== "null") : types;
  return shown.map((type) => (type === "array" && schema.items ? `array of ${typeOf(schema.items)}` : type)).join(" or ");
}

/** What restricts a value beyond its type. */
function limitsOf(schema) {
  const limits = [];
  const range = (low, high, unit) => {
    if (low !== undefined && high !== undefined) limits.push(`${low} to ${high}${unit}`);
    else if (low !== undefined) limits.push(`at least ${low}${unit}`);
    else if (high !== undefined) limits.push(`at most ${high}${unit}`);
  };
  const above = schema.exclusiveMinimum;
  range(above === undefined ? schema.minimum : `above ${above}`, schema.maximum, "");
  range(schema.minLength, schema.maxLength, " characters");
  range(schema.minItems, schema.maxItems, " items");
  range(schema.minProperties, schema.maxProperties, " members");
  if (schema.pattern) limits.push(`matches ${schema.pattern}`);
  if (schema.additionalProperties === false) limits.push("no other members");
  if ("default" in schema) limits.push(`default ${JSON.stringify(schema.default)}`);
  return limits.join(" · ");
}

/** The parts of a schema that have members of their own, each with a label. */
function insides(schema, label = "members") {
  const whole = follow(schema);
  if (!whole || whole === true) return [];
  const inner = [];
  if (whole.properties) inner.push([label, whole]);
  for (const one of variants(whole) ?? []) {
    const kind = follow(one).properties?.type?.const;
    inner.push(...insides(one, kind ? `type ${JSON.stringify(kind)}` : named(one) ?? label));
  }
  if (whole.items) inner.push(...insides(whole.items, named(whole.items) ?? "of each item"));
  if (whole.additionalProperties?.$ref) inner.push(...insides(whole.additionalProperties, "of each member"));
  return inner;
}

/** The members of an object, required ones first, and last by their names those that do nothing. What is inside them is
 *  drawn when it is opened: schemas may hold themselves. */
function members(schema) {
  const all = Object.entries(schema.properties ?? {});
  const isMust = ([name]) => schema.required?.includes(name) ?? false;
  const idle = { "known and not supported": isNull, "accepted, without effect": (field) => field["x-assay-no-effect"] };
  const isIdle = ([name, field]) => !isMust([name]) && Object.values(idle).some((is) => is(field));
  const lists = Object.entries(idle).map(([label, is]) => {
    const names = all.filter((one) => isIdle(one) && is(one[1])).map(([name]) => [el("code", {}, name), " "]);
    return names.length ? el("dd", { class: "about" }, el("details", {}, el("summary", {}, `${names.length} ${label}`), names.flat())) : null;
  });
  const rows = all.filter((one) => !isIdle(one)).sort((a, b) => isMust(b) - isMust(a)).map(([name, field]) => {
    const must = isMust([name]);
    const type = el("span", { class: "type" }, typeOf(field), limitsOf(field) && ` · ${limitsOf(field)}`);
    return [
      el("dt", {}, el("b", {}, name), type, must ? el("span", { class: "must" }, "required") : null),
      el("dd", {}, words(field.description ?? follow(field).description), nested(insides(field))),
    ];
  });
  return el("dl", {}, rows.flat(), lists);
}

/** Parts that open on demand. */
function nested(inner) {
  return inner.map(([label, schema]) => {
    const details = el("details", {}, el("summary", {}, label));
    details.addEventListener("toggle", () => details.children.length === 1 && details.append(members(schema)));
    return details;
  });
}

/** A body of any kind. */
function body(schema) {
  const whole = follow(schema);
  const inner = insides(whole);
  if (inner.length === 1) return members(inner[0][1]);
  return [whole.properties ? members(whole) : null, nested(inner.filter(([, one]) => one !== whole))].flat();
}

function copyButton(text) {
  const copy = async (event) => {
    await navigator.clipboard.writeText(text);
    event.target.textContent = "Copied";
    setTimeout(() => (event.target.textContent = "Copy"), 1500);
  };
  return navigator.clipboard ? el("button", { type: "button", onclick: copy }, "Copy") : null;
}

function example(method, path, { summary, value }) {
  const quoted = json(value).replaceAll("'", "'\\''");
  const command = `curl ${location.origin}${path} -H 'Content-Type: application/json' -d '${quoted}'`;
  return el("details", {}, el("summary", {}, summary),
    el("div", { class: "example" }, el("pre", { tabindex: 0 }, command), copyButton(command)));
}

function response([status, reference]) {
  const reply = follow(reference);
  const contents = Object.entries(reply.content ?? {});
  const drawn = contents.map(([media, { schema }]) =>
    el("details", {}, el("summary", {}, media, " ", el("span", { class: "faint" }, named(schema) ?? "")), body(schema)));
  return [
    el("dt", {}, el("b", {}, status), el("span", { class: "type" }, Object.keys(reply.headers ?? {}).join(", "))),
    el("dd", {}, words(reply.description), drawn),
  ];
}

function operation(path, method, op) {
  const request = op.requestBody?.content["application/json"];
  const badge = el("span", { class: `method ${method}` }, method);
  const open = op.security?.length === 0 ? el("p", { class: "about" }, "Answers without a key.") : null;
  return el("section", { id: op.operationId },
    el("h3", {}, badge, " ", el("a", { href: `#${op.operationId}` }, path)),
    el("p", {}, words(op.summary), "."), el("p", { class: "about" }, words(op.description)), open,
    request ? [el("h4", {}, "Request"), body(request.schema)] : null,
    request ? [el("h4", {}, "Examples"), ...Object.values(request.examples ?? {}).map((one) => example(method, path, one))] : null,
    el("h4", {}, "Replies"), el("dl", {}, Object.entries(op.responses).flatMap(response)));
}

function draw() {
  const main = document.getElementById("main");
  const routes = document.getElementById("routes");
  document.getElementById("version").textContent = api.info.version;
  document.getElementById("status").remove();
  main.append(el("p", {}, words(api.info.description)));
  for (const tag of api.tags) {
    const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
      Object.entries(methods).filter(([, op]) => op.tags.includes(tag.name)).map(([method, op]) => [path, method, op]));
    main.append(el("h2", {}, tag.name), el("p", { class: "about" }, words(tag.description)));
    main.append(...operations.map((one) => operation(...one)));
    routes.append(el("div", {}, el("h2", {}, tag.name), operations.map(([path, method, op]) =>
      el("a", { href: `#${op.operationId}`, title: op.summary }, el("span", { class: `method ${method}` }, method), path))));
  }
}

function filter(text) {
  for (const group of document.getElementById("routes").children) {
    const links = [...group.querySelectorAll("a")];
    for (const link of links) link.hidden = !`${link.textContent} ${link.title}`.toLowerCase().includes(text.toLowerCase());
    group.hidden = links.every((link) => link.hidden);
  }
}

async function start() {
  const narrow = matchMedia("(max-width: 52rem)");
  const menu = document.getElementById("menu");
  const input = document.getElementById("filter");
  menu.open = !narrow.matches;
  narrow.addEventListener("change", () => (menu.open = !narrow.matches));
  input.addEventListener("input", () => filter(input.value));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.matches("input, textarea")) return;
    event.preventDefault();
    menu.open = true;
    input.focus();
  });
  document.getElementById("routes").addEventListener("click", (event) => {
    if (event.target.closest("a") && narrow.matches) menu.open = false;
  });
  try {
    const reply = await fetch("/openapi.json");
    if (!reply.ok) throw new Error(`the server answered ${reply.status}`);
    api = await reply.json();
    draw();
    if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  } catch (error) {
    document.getElementById("status").textContent = `The document cannot be shown: ${error.message}.`;
  }
}

start();
