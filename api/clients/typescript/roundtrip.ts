// The round trip with the client of openapi-typescript and openapi-fetch. It is
// type-checked without casts: what was read is what is stored.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./out/archive.js";

type SBDefinition = components["schemas"]["SBDefinition"];

const archive = createClient<paths>({ baseUrl: process.env.ODA_URL, headers: { "X-Forwarded-User": "typescript" } });
const sbdID = "sbd-typescript";
const sbd = { params: { path: { sbd_id: sbdID } } };

async function read(): Promise<SBDefinition> {
  const { data, error } = await archive.GET("/sbds/{sbd_id}", sbd);
  assert(data, error?.detail);
  return data;
}

// Create, read, change, store again.
const sent: SBDefinition = { name: "M51", frequency_hz: 0.35e9 };
const created = await archive.PUT("/sbds/{sbd_id}", { ...sbd, body: sent });
assert.equal(created.data?.metadata?.version, 1, created.error?.detail);
const first = await read();
assert.equal(first.name, "M51");
const changed = await archive.PUT("/sbds/{sbd_id}", { ...sbd, body: { ...first, name: "M101" } });
assert.equal(changed.data?.metadata?.version, 2, changed.error?.detail);
assert.equal(changed.data?.metadata?.last_modified_by, "typescript");

// A change that was made from an old reading is refused.
const conflict = await archive.PUT("/sbds/{sbd_id}", { ...sbd, body: { ...first, name: "M31" } });
assert.equal(conflict.response.status, 422);
assert.equal(conflict.error?.type, "urn:oda:problem:metadata-mismatch");
assert(conflict.error?.errors?.some((fault) => fault.pointer === "/metadata/version"));

// Record, twice with the same key.
const { data: block } = await archive.POST("/ebs/create", { body: { sbd_ref: sbdID } });
assert(block?.eb_id);
const record = () =>
  archive.POST("/ebs/{eb_id}/request_response", {
    params: { path: { eb_id: block.eb_id ?? "" }, header: { "Idempotency-Key": "scan-1" } },
    body: { request: "scan", request_args: { kwargs: { scan_id: 1 } }, status: "OK", response: { result: "done" } },
  });
assert.equal((await record()).data?.sequence, 1);
assert.equal((await record()).data?.sequence, 1);
const recorded = await archive.GET("/ebs/{eb_id}", { params: { path: { eb_id: block.eb_id } } });
assert.equal(recorded.data?.request_responses?.length, 1);
assert.equal(recorded.data?.request_responses?.[0]?.request, "scan");

// List.
const listed = await archive.GET("/sbds", { params: { query: { user: "typescript" } } });
assert.deepEqual(listed.data, [sbdID]);
const nothing = await archive.GET("/sbds", {});
assert.equal(nothing.error?.type, "urn:oda:problem:invalid-query");

// Store several, among them what was read.
const several = await archive.PUT("/", {
  body: { sbds: [{ ...(await read()), name: "M81" }], prjs: [{ prj_id: "prj-typescript", name: "Spirals" }] },
});
assert.equal(several.data?.sbds?.[0]?.metadata?.version, 3, several.error?.detail);
assert.equal(several.data?.prjs?.[0]?.prj_id, "prj-typescript");

// Read a document of many members, and store it again as it is.
const params = { path: { sbd_id: process.env.ODA_SBD! } };
const document = await archive.GET("/sbds/{sbd_id}", { params });
assert(document.data, document.error?.detail);
const stored = await archive.PUT("/sbds/{sbd_id}", { params, body: document.data });
assert.equal(stored.data?.metadata?.version, 2, stored.error?.detail);
