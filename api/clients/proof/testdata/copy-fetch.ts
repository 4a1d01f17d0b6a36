// Reads a document with openapi-generator's client for fetch, and stores it again as it is.
import { Configuration, SBDefinitionApi } from "../out/typescript-fetch";

const sbd_id = process.env.ODA_SBD!;

async function copy() {
  const archive = new SBDefinitionApi(new Configuration({ basePath: process.env.ODA_URL }));
  const SBDefinition = await archive.getSBD({ sbd_id });
  await archive.storeSBD({ sbd_id, SBDefinition });
}

void copy();
