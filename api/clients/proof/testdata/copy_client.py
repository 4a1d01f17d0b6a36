"""Reads a document with openapi-generator's client, and stores it again as it is."""

import os
import sys

sys.path.insert(0, "out/python")

import openapi_client

settings = openapi_client.Configuration(host=os.environ["ODA_URL"])
with openapi_client.ApiClient(settings) as client:
    archive = openapi_client.SBDefinitionApi(client)
    archive.store_sbd(os.environ["ODA_SBD"], archive.get_sbd(os.environ["ODA_SBD"]))
