"""What a script says of its ExecutionBlock: that it runs, and what came of it.

A status goes through the spool, as records do, and is sent after everything that was
recorded before it.
"""

import logging
import os
from contextlib import contextmanager
from enum import Enum
from typing import Any, Dict, Iterator, Optional, Union

from . import _json, _settings
from ._archive import create_eb
from ._call import now, stamp
from ._describe import cut
from ._failure import detail
from ._process import recorder
from ._spool import STATUS

MAX_STATUS = 64
MAX_REASON = 2000
REMEMBERED = 100  # blocks

_log = logging.getLogger("oda_helper")
_ended: Dict[str, str] = {}  # the blocks that this process has ended, with their statuses
_before: Dict[str, Optional[str]] = {}  # what was current when a block of statements began
_latest = ""  # time of the last status


def end_eb(status: str, reason: Union[str, BaseException, None] = None) -> None:
    """Says what came of the current block: "Observed", "Failed", "Aborted" or another word.

    It is written to the spool and sent after everything recorded before. This never
    raises, and does not wait for the archive. Calls made later are still recorded in the block, until
    create_eb begins another.
    """
    eb_id, url = _settings.block_id(), _settings.archive_url()
    if eb_id and url:
        _end(eb_id, url, status, reason)
        return
    recorder().missed(calls=0)
    fault, advice = _settings.block_fault(), _settings.BLOCK_ADVICE
    if not url:
        fault, advice = _settings.url_fault(), _settings.URL_ADVICE
    _log.error("%s. The status %r was not recorded. %s", fault, status, advice)


@contextmanager
def execution_block(
    telescope: Optional[str] = None, sbi_ref: Optional[str] = None
) -> Iterator[str]:
    """Begins a block like create_eb, and ends it with what comes of the statements in it.

    The block is Executing until its end, and Observed then. If an exception leaves it,
    it is Failed with that as the reason; if the script is stopped, as by Ctrl-C or
    sys.exit(), it is Aborted. A status that end_eb has said of it stays. Afterwards the
    block from before is current again.
    """
    before, process = os.environ.get("EB_ID"), os.getpid()
    eb_id = create_eb(telescope, sbi_ref)
    _before[eb_id] = before
    url = _settings.archive_url()
    if url:
        _say(eb_id, url, "Executing", None)
    status, reason = "Observed", ""
    try:
        yield eb_id
    except BaseException as error:
        status, reason = "Failed" if isinstance(error, Exception) else "Aborted", detail(error)
        raise
    finally:
        # A forked child may leave it, too. Its parent says what came of it.
        if url and eb_id not in _ended and os.getpid() == process:
            _end(eb_id, url, status, reason)
        _leave(eb_id)


def _leave(eb_id: str) -> None:
    """Makes the block from before the current one, unless another one is current by now."""
    before = _before.pop(eb_id)
    for other, its in list(_before.items()):
        if its == eb_id:
            _before[other] = before
            _log.warning(
                "%s ends before %s, which began in it. One block is current at a time: since then,"
                " the calls of both were recorded in the later one.",
                eb_id,
                other,
            )
    if os.environ.get("EB_ID") != eb_id:
        return
    if before is None:
        del os.environ["EB_ID"]
    else:
        os.environ["EB_ID"] = before


def ended(eb_id: Optional[str]) -> Optional[str]:
    """The status with which this process has ended a block."""
    return _ended.get(eb_id or "")


def _end(eb_id: str, url: str, status: Any, reason: Any) -> None:
    said = _say(eb_id, url, status, reason)
    if said:
        _ended.pop(eb_id, None)
        _ended[eb_id] = said
        if len(_ended) > REMEMBERED:
            _ended.pop(next(iter(_ended)), None)


def _say(eb_id: str, url: str, status: Any, reason: Any) -> Optional[str]:
    """Keeps a status for the archive, and returns it."""
    global _latest
    try:
        word = str(status.value if isinstance(status, Enum) else status)
        if not (1 <= len(word) <= MAX_STATUS and word.isprintable()):
            raise ValueError("a status has 1 to %d characters" % MAX_STATUS)
        body = {"status": word}
        if isinstance(reason, BaseException):
            reason = detail(reason)
        if reason:
            body["reason"] = _bounded(str(reason))
        # If the clock is set back meanwhile, the later status must count nevertheless.
        _latest = body["at"] = max(stamp(now()), _latest)
        recorder().record(eb_id, url, _json.write(body), STATUS)
        return word
    except Exception:
        recorder().missed(calls=0)
        _log.exception("The status of %s is not said.", eb_id)
        return None


def _bounded(reason: str) -> str:
    """The reason as an archive takes it, whatever an exception says."""
    text = cut(reason, MAX_REASON - 40)  # leaves room for its length
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in text)[:MAX_REASON]
