"""The files of a session in the spool, as docs/spool.md describes them.

A session is a folder ``<eb_id>.<session>`` with the records that one process made
for one ExecutionBlock. A process that works on it holds the lock of its file ``lock``.
This module knows names and formats; _session writes, _outbox reads.
"""

import fcntl
import os
import re
import time
import zlib
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import _json
from ._folder import Folder
from ._settings import normalise, valid_id

FORM = 2
RECORD, STATUS = b"record", b"status"  # sorts of lines
SEGMENT_BYTES = 8 << 20
LOCK, BLOCK, SHIPPED = "lock", "block.json", "shipped"
DAMAGED, REFUSED = "damaged.log", "refused.log"
COMING, GOING = ".new-", ".done-"  # folders being created or removed
LONG_MADE = 3600.0  # seconds; nobody takes so long to make a session

_NAME = re.compile(r"(.+)\.([0-9a-f]{16})\Z")
_SEGMENT = re.compile(r"([0-9]{8,})\.log\Z")


class Block(NamedTuple):
    """The ExecutionBlock of a session."""

    eb_id: str
    url: str
    user: Optional[str]
    create: Optional[Dict[str, Any]]  # the document to store first, if the archive was unavailable

    def encode(self) -> bytes:
        """The content of block.json."""
        content: Dict[str, Any] = {"spool": FORM, "eb_id": self.eb_id, "url": self.url}
        if self.user:
            content["user"] = self.user
        content["create"] = self.create
        return _json.write(content) + b"\n"


class Unusable(Exception):
    """A folder of the spool is not a usable session."""


class UnknownForm(Unusable):
    """A session was written by another release."""


def split_name(name: str) -> Optional[Tuple[str, str]]:
    """Identifier and session in the name of a folder, or None for other names."""
    found = _NAME.match(name)
    if found and valid_id(found.group(1)):
        return found.group(1), found.group(2)
    return None


def enter(folder: str) -> Folder:
    """Opens a session."""
    spool, name = os.path.split(folder)
    return Folder(spool).enter(name)


def read_block(session: Folder) -> Block:
    """Reads block.json; raises Unusable or OSError."""
    text = session.read(BLOCK)
    try:
        found = _json.read(text)
        block = Block(found["eb_id"], found["url"], found.get("user"), found["create"])
        form = found["spool"]
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise Unusable("its %s is damaged (%r)" % (BLOCK, problem)) from None
    if form != FORM:
        raise UnknownForm(
            "its %s says that it is of form %r, and this program knows only form %d; send it "
            "with the release that wrote it" % (BLOCK, form, FORM)
        )
    name = split_name(os.path.basename(session.path))
    if name is None or name[0] != block.eb_id:
        raise Unusable("its %s names the block %s" % (BLOCK, block.eb_id))
    typed = isinstance(block.url, str) and isinstance(block.user, (str, type(None)))
    if not typed or not isinstance(block.create, (dict, type(None))):
        raise Unusable("its %s is damaged" % BLOCK)
    try:
        normalise(block.url)
    except ValueError as problem:
        raise Unusable("the address of the archive in its %s %s" % (BLOCK, problem)) from None
    return block


def take_lock(session: Folder) -> Optional[int]:
    """Locks a session and returns the descriptor, or None if another process holds it."""
    try:
        descriptor = session.open(LOCK, os.O_RDWR)
    except FileNotFoundError:
        if not session.named():
            raise  # it has been finished meanwhile
        descriptor = session.extend(LOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def drop_lock(descriptor: int) -> None:
    """Frees a lock, even if a forked child has a copy of the descriptor."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def segment_name(number: int) -> str:
    """The file of a segment."""
    return "%08d.log" % number


def segments(session: Folder) -> List[int]:
    """The numbers of the segments of a session, in order."""
    found = [_SEGMENT.match(name) for name in session.names()]
    return sorted(int(match.group(1)) for match in found if match and int(match.group(1)) > 0)


def line(session: bytes, number: int, sort: bytes, content: bytes) -> bytes:
    """A line with its line break."""
    body = b"%s-%d %s %s" % (session, number, sort, content)
    return b"%08x %s\n" % (zlib.crc32(body), body)


def replace(session: Folder, name: str, content: bytes) -> None:
    """Replaces the content of a file, completely or not at all."""
    session.replace(name, content)


def remove(session: Folder) -> None:
    """Removes a session; others see it complete or not at all."""
    if session.named():  # else somebody has taken it away
        session.rename(GOING + session.path[-16:])
        session.remove()


def tidy(spool: Folder, name: str) -> None:
    """Removes what a process that was killed had begun to make or to remove."""
    try:
        if not name.startswith(COMING) or time.time() - spool.stat(name).st_mtime > LONG_MADE:
            spool.enter(name).remove()
    except OSError:
        pass  # it is gone, or left to somebody else
