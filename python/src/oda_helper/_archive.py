"""Requests that a script makes itself: create a block, store a definition."""

import logging
import os
import queue
import threading
import time
import uuid
from enum import Enum
from typing import Any, Dict, Optional, Tuple
from urllib.parse import quote

from . import _json, _models, _settings
from ._describe import cut
from ._errors import OdaError, Unreachable
from ._http import FAILURES, MAYBE, MAYBE_NEW, NOT_SENT, Answer, Client, describe
from ._mint import Minter
from ._process import recorder

CREATE_TIMEOUT = 3.0  # after this, the identifier is minted here
SAVE_TIMEOUT = 30.0

_log = logging.getLogger("oda_helper")
_minter = Minter()
os.register_at_fork(after_in_child=_minter.after_fork)


def create_eb(telescope: Optional[str] = None, sbi_ref: Optional[str] = None) -> str:
    """Creates an ExecutionBlock, sets EB_ID and returns the identifier.

    If the archive is unavailable, the identifier is made here and the block is stored
    as soon as the archive is back. This never raises, and takes at most three seconds.
    """
    members = {}
    for name, value in (("telescope", telescope), ("sbi_ref", sbi_ref)):
        if isinstance(value, Enum):
            value = value.value
        if value is not None:
            members[name] = cut(value if isinstance(value, str) else str(value), 256)
    url = _settings.archive_url()
    eb_id = _ask_for_block(url, members) if url else None
    if eb_id is None:
        eb_id = _minter.next("eb")
        if url is None:
            _log.warning(
                "%s. %s is not stored. %s", _settings.url_fault(), eb_id, _settings.URL_ADVICE
            )
        recorder().remember(eb_id, dict(members, eb_id=eb_id))
    os.environ["EB_ID"] = eb_id
    if url is not None:
        # Open the session now, not at the first recorded call: it takes a
        # moment, and a block that was created while the archive is unavailable
        # must be kept.
        recorder().open(eb_id, url)
    return eb_id


def _ask_for_block(url: str, members: Dict[str, str]) -> Optional[str]:
    """The identifier from the archive, or None if none came in time."""
    answers: "queue.SimpleQueue[Tuple[Optional[str], str]]" = queue.SimpleQueue()
    # Looking up a host has no timeout, hence a thread.
    work = threading.Thread(
        target=lambda: answers.put(_post_block(url, members)), name="oda_helper_create", daemon=True
    )
    try:
        work.start()
        found, why = answers.get(timeout=CREATE_TIMEOUT)
    except (queue.Empty, RuntimeError):
        found, why = None, "it did not answer in time"
    if found is None:
        # No warning: the thread that stores it later says what is wrong.
        _log.info("The archive at %s did not create the block (%s); stored later.", url, why)
    return found


def _post_block(url: str, members: Dict[str, str]) -> Tuple[Optional[str], str]:
    body = _json.write(members)
    client = Client(url, CREATE_TIMEOUT, CREATE_TIMEOUT)
    try:
        answer = _post(client, "/ebs/create", body, time.monotonic() + CREATE_TIMEOUT / 2)
        if answer.status != 200:
            return None, answer.problem()["detail"]
        found = answer.document().get("eb_id")
        if isinstance(found, str) and _settings.valid_id(found):
            return found, ""
        return None, "its answer has no identifier"
    except FAILURES as problem:
        return None, describe(problem)
    finally:
        client.close()


def _post(client: Client, path: str, body: bytes, until: float) -> Answer:
    """Sends a POST under a key, and retries it once if there is time."""
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    try:
        return client.request("POST", path, body, _settings.user(), headers)
    except NOT_SENT:
        raise
    except FAILURES as lost:
        if time.monotonic() > until:
            raise
        try:
            return client.request("POST", path, body, _settings.user(), headers)
        except NOT_SENT:
            raise lost from None  # the first may have arrived


def save(sbd: Any) -> Any:
    """Stores an SBDefinition and returns it as it is stored, with its sbd_id.

    Takes a dict, JSON text or a model (of pydantic, a dataclass, or an object with
    to_dict), and returns a model of the same class for a model, otherwise a dict.
    Without sbd_id it is created; with it, it is created or updated, and its metadata
    must be as read. Raises OdaError if the archive refuses it, Conflict if somebody else
    has stored it meanwhile, and OdaUnreachable if there is no answer: then it says
    whether the definition may be stored all the same. Nothing is kept for later.
    """
    url = _settings.archive_url()
    if url is None:
        raise OdaError("%s. %s" % (_settings.url_fault(), _settings.URL_ADVICE))
    body, sbd_id = _document(sbd)
    client = Client(url, answer=SAVE_TIMEOUT)
    try:
        if sbd_id:
            path = "/sbds/" + quote(sbd_id, safe="")
            answer = client.request("PUT", path, body, _settings.user())
        else:
            answer = _post(client, "/sbds", body, time.monotonic() + SAVE_TIMEOUT / 2)
    except FAILURES as problem:
        maybe = "" if isinstance(problem, NOT_SENT) else MAYBE if sbd_id else MAYBE_NEW
        why = describe(problem) + _settings.default_hint(url)
        text = "The archive at %s cannot be reached: %s.%s" % (url, why, maybe)
        raise Unreachable(text) from problem
    finally:
        client.close()
    if answer.status != 200:
        raise answer.error()
    if "sbd_id" not in answer.document():
        raise OdaError("The answer of %s is not an SBDefinition." % url, answer.status)
    return _models.like(sbd, answer.body)


def _document(sbd: Any) -> Tuple[bytes, Optional[str]]:
    """The JSON text of a definition, and its identifier if it has one."""
    body = _models.to_json(sbd)
    document = _json.read(body)
    if not isinstance(document, dict):
        raise ValueError("An SBDefinition is a JSON object, not a %s." % type(document).__name__)
    sbd_id = document.get("sbd_id")
    if sbd_id is not None and not isinstance(sbd_id, str):
        raise ValueError("sbd_id of an SBDefinition is a string, not %r." % (sbd_id,))
    return body, sbd_id or None
