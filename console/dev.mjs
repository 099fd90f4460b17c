// Serves the console from its source at http://127.0.0.1:5191, and everything else from a running server (ASSAY_URL).
import { createServer, request } from "node:http";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { tmpdir } from "node:os";
import { buildInto } from "./build.mjs";

const server = new URL(process.env.ASSAY_URL ?? "http://127.0.0.1:8080");
const out = join(tmpdir(), "assay-console-dev");
const types = { html: "text/html", css: "text/css", js: "text/javascript", woff2: "font/woff2", txt: "text/plain" };

createServer(async (asked, answer) => {
  const path = asked.url.split("?")[0];
  const name = path === "/" ? "index.html" : path.startsWith("/console/") ? path.slice(9) : null;
  if (name) {
    try {
      if (name === "index.html") await buildInto(out);
      const text = await readFile(join(out, name));
      answer.writeHead(200, { "content-type": types[name.split(".").pop()] }).end(text);
    } catch (error) {
      answer.writeHead(500).end(String(error));
    }
    return;
  }
  const headers = { ...asked.headers, host: server.host };
  delete headers.origin;
  const passed = request(new URL(asked.url, server), { method: asked.method, headers }, (reply) => {
    answer.writeHead(reply.statusCode, reply.headers);
    reply.pipe(answer);
  });
  passed.on("error", (error) => answer.writeHead(502).end(String(error)));
  answer.on("close", () => passed.destroy());
  asked.pipe(passed);
}).listen(5191, "127.0.0.1", () => console.log(`http://127.0.0.1:5191, before ${server.origin}`));
