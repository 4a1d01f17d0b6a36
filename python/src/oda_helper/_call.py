"""A call on the telescope, from its beginning until its record is kept."""

import json
import time
from datetime import datetime, timezone
from typing import Any, Dict, NamedTuple, Optional

from ._session import Session

encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class Key(NamedTuple):
    """The key of a record, before there is one: a number that a session has given away."""

    session: Session
    number: int

    def __str__(self) -> str:
        return "%s-%d" % (self.session.name[-16:], self.number)


class Call:
    """A call that has begun."""

    among: Dict[int, "Call"] = {}  # the calls that go on, with this one until it ends

    # These are set for the few calls that last; see _running.
    key: Optional[Key] = None  # what the archive knows it by
    due = 0.0  # when to speak of it again; 0 before it was looked at
    said = b""  # what to say

    def __init__(self, eb_id: Optional[str], url: str, request: str, arguments: Any, goes_on: bool):
        self.eb_id, self.url, self.request, self.arguments = eb_id, url, request, arguments
        self.goes_on = goes_on  # it is a coroutine or a generator
        self.sent, self.clock = now(), time.perf_counter()


def now() -> datetime:
    return datetime.now(timezone.utc)


def stamp(at: datetime) -> str:
    return at.isoformat(timespec="microseconds")[:-6] + "Z"
