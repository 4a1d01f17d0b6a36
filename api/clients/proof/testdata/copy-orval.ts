// Reads a document with the client of orval, and stores it again as it is.
import axios from "axios";
import { getSBD, storeSBD } from "../out/orval";

const id = process.env.ODA_SBD!;

async function copy() {
  axios.defaults.baseURL = process.env.ODA_URL;
  const read = await getSBD(id);
  await storeSBD(id, read.data);
}

void copy();
