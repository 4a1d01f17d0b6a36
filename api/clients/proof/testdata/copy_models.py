"""Reads a document into the model of datamodel-codegen, and stores it again."""

import os
import sys
from urllib.request import Request, urlopen

sys.path.insert(0, "out")

import models

address = f"{os.environ['ODA_URL']}/sbds/{os.environ['ODA_SBD']}"
with urlopen(address) as answer:
    document = models.SBDefinition.model_validate_json(answer.read())
body = document.model_dump_json(exclude_unset=True).encode()
urlopen(Request(address, data=body, method="PUT", headers={"Content-Type": "application/json"})).close()
