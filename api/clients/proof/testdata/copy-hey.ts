// Reads a document with the client of @hey-api/openapi-ts, and stores it again as it is.
import { getSbd, storeSbd } from "../out/hey";
import { client } from "../out/hey/client.gen";

const path = { sbd_id: process.env.ODA_SBD! };

async function copy() {
  client.setConfig({ baseUrl: process.env.ODA_URL });
  const read = await getSbd({ path, throwOnError: true });
  await storeSbd({ path, body: read.data, throwOnError: true });
}

void copy();
