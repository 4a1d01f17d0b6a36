"""The round trip with the client of openapi-python-client."""

import os

from observation_archive_client import Client
from observation_archive_client.api.archive import store_several
from observation_archive_client.api.execution_block import create_empty_eb, get_eb, record_post
from observation_archive_client.api.sb_definition import get_sbd, list_sb_ds, store_sbd
from observation_archive_client.models import (
    Entities,
    ExecutionBlock,
    Metadata,
    Problem,
    ProblemType,
    Project,
    Record,
    RecordAnswer,
    SBDefinition,
)

archive = Client(base_url=os.environ["ODA_URL"], headers={"X-Forwarded-User": "python"})
sbd_id = "sbd-python"


def read() -> SBDefinition:
    got = get_sbd.sync(sbd_id, client=archive)
    assert isinstance(got, SBDefinition), got
    return got


def version(entity: object) -> object:
    assert isinstance(entity, SBDefinition), entity
    assert isinstance(entity.metadata, Metadata)
    return entity.metadata.version


# Create, read, change, store again.
sent = SBDefinition()
sent["name"] = "M51"
sent["frequency_hz"] = 0.35e9
assert version(store_sbd.sync(sbd_id, client=archive, body=sent)) == 1
first, stale = read(), read()
assert first["name"] == "M51"
first["name"] = "M101"
assert version(store_sbd.sync(sbd_id, client=archive, body=first)) == 2

# A change that was made from an old reading is refused.
stale["name"] = "M31"
conflict = store_sbd.sync_detailed(sbd_id, client=archive, body=stale)
assert conflict.status_code == 422
assert isinstance(conflict.parsed, Problem), conflict
assert conflict.parsed.type_ == ProblemType.URNODAPROBLEMMETADATA_MISMATCH
assert any(fault.pointer == "/metadata/version" for fault in conflict.parsed.errors or [])

# Record, twice with the same key.
block = create_empty_eb.sync(client=archive, body=ExecutionBlock(sbd_ref=sbd_id))
assert isinstance(block, ExecutionBlock) and isinstance(block.eb_id, str), block
call = Record(request="scan", request_args="1", status="OK")
call["device"] = "subarray-1"
for _ in range(2):
    recorded = record_post.sync(block.eb_id, client=archive, body=call, idempotency_key="scan-1")
    assert isinstance(recorded, RecordAnswer) and recorded.sequence == 1, recorded
block = get_eb.sync(block.eb_id, client=archive)
assert isinstance(block, ExecutionBlock)
assert block.request_responses == [call], block

# List.
assert list_sb_ds.sync(client=archive, user="python") == [sbd_id]
nothing = list_sb_ds.sync(client=archive)
assert isinstance(nothing, Problem) and nothing.type_ == ProblemType.URNODAPROBLEMINVALID_QUERY

# Store several, among them what was read.
again = read()
again["name"] = "M81"
several = store_several.sync(client=archive, body=Entities(sbds=[again], prjs=[Project(prj_id="prj-python")]))
assert isinstance(several, Entities) and several.sbds and several.prjs, several
assert version(several.sbds[0]) == 3
assert several.prjs[0].prj_id == "prj-python"

# Read a document of many members, and store it again as it is.
document = get_sbd.sync(os.environ["ODA_SBD"], client=archive)
assert isinstance(document, SBDefinition), document
stored = store_sbd.sync(os.environ["ODA_SBD"], client=archive, body=document)
assert version(stored) == 2, stored
