// The main job with the generated clients: upload, install, grant, open a session, list, invoke, be
// refused, and find it in the audit.
import { readFile } from "node:fs/promises";
import createClient from "openapi-fetch";
import type { paths as Control } from "./gen/control.js";
import type { paths as Data } from "./gen/data.js";

const env = (name: string): string => {
  const v = process.env[name];
  if (!v) throw new Error(`${name} is not set`);
  return v;
};

const job = JSON.parse(await readFile(env("ECOTONE_JOB"), "utf8")) as {
  biome: string; environment: string; subject: string; granted: [string, string];
  put: { id: string; text: string }; get: { id: string }; refused: string;
};

function must<T>(step: string, r: { data?: T; error?: unknown; response: Response }, status: number): T {
  if (r.response.status !== status || r.data === undefined) {
    throw new Error(`${step}: ${r.response.status} ${JSON.stringify(r.error)}`);
  }
  return r.data;
}

const operator = createClient<Control>({ baseUrl: env("ECOTONE_ADMIN"), headers: { Authorization: `Bearer ${env("ECOTONE_TOKEN")}` } });

const module = await readFile(env("ECOTONE_MODULE"));
const uploaded = must("upload", await operator.POST("/v1/biomes", {
  body: module as never, // bytes have no type in a document
  bodySerializer: (b) => b as unknown as BodyInit,
  headers: { "Content-Type": "application/wasm" },
}), 201);
if (uploaded.biome.name !== job.biome) throw new Error(`uploaded ${uploaded.biome.name}`);

must("install", await operator.PUT("/v1/installs/{biome}", {
  params: { path: { biome: job.biome }, header: { "If-None-Match": "*" } },
  body: { digest: uploaded.biome.digest, environments: [job.environment] },
}), 200);
for (const capability of job.granted) {
  must("grant", await operator.POST("/v1/grants", { body: { subject: job.subject, capability, environment: job.environment } }), 201);
}
const session = must("session", await operator.POST("/v1/sessions", { body: { subject: job.subject, environment: job.environment } }), 201);

const caller = createClient<Data>({ baseUrl: env("ECOTONE_INVOKE"), headers: { Authorization: `Bearer ${session.token}` } });
const listed = must("list", await caller.GET("/v1/capabilities"), 200).items.map((c) => c.ref).sort();
if (listed.join() !== [...job.granted].sort().join()) throw new Error(`may invoke ${listed}`);

const invoke = (ref: string, input: unknown) => caller.POST("/v1/invoke/{ref}", { params: { path: { ref } }, body: input as never });
must("put", await invoke(job.granted[0], job.put), 200);
const got = await invoke(job.granted[1], job.get);
const text = (must("get", got, 200) as unknown as { text: string }).text;
if (text !== job.put.text) throw new Error(`put ${job.put.text}, got ${text}`);

const no = await invoke(job.refused, {});
if (no.response.status !== 403 || !no.error?.code || !no.error.auditId) throw new Error(`not refused: ${no.response.status} ${JSON.stringify(no.error)}`);

const id = got.response.headers.get("Ecotone-Invocation") ?? "";
const row = must("audit", await operator.GET("/v1/audit/{id}", { params: { path: { id } } }), 200);
console.log(`${job.refused} was refused with ${no.error.code}; ${row.auditId} is in the audit`);
console.log("done");
