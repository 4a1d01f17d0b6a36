"""Records what a script does with the telescope in the observation archive.

    import oda_helper

    @oda_helper.capture_request_response
    def scan(duration):
        ...

    with oda_helper.execution_block(telescope="ska_mid"):
        scan(30)

Every call of ``scan`` becomes a record of the ExecutionBlock, and what came of the block
is said at its end. Recording never waits
for the archive, never fails the script, and loses nothing while the archive is
unavailable: records are kept in a folder, the spool, and sent when it is back.

What is in the archive can be read with the package oda_client, which comes with it.

Modules: _capture is the decorator, _saying says what came of a block, _session writes a record to the spool, _recorder has
the thread that sends, _delivery does the sending, and _running tells which calls go on. docs/scripts.md is for script
authors, docs/spool.md describes the format of the spool.
"""

import logging
from typing import Any, Optional

from . import _process, _settings
from ._archive import create_eb, save
from ._capture import capture_request_response
from ._errors import Conflict, NotFound, OdaError
from ._errors import Unreachable as OdaUnreachable
from ._saying import end_eb, execution_block
from ._status import Status, status
from ._visible import escape

__all__ = [
    "Conflict",
    "NotFound",
    "OdaError",
    "OdaUnreachable",
    "Status",
    "capture_request_response",
    "close",
    "create_eb",
    "drain",
    "end_eb",
    "execution_block",
    "flush",
    "lag",
    "save",
    "status",
]

logging.getLogger("oda_helper").addFilter(escape)


def __getattr__(name: str) -> Any:
    # Looked up when somebody asks: it takes longer than everything else of an import.
    if name != "__version__":
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    from importlib import metadata

    try:
        return metadata.version("oda-helper")
    except metadata.PackageNotFoundError:
        return "0.0.0.dev0"  # imported from the sources


def flush(timeout: Optional[float] = None) -> bool:
    """Waits until everything recorded so far is stored; returns whether it is.

    Without a timeout it waits as long as the archive is unavailable. It also returns
    False if a part will never be stored: a call without EB_ID, a call or a block
    while ODA_URL was not an address, a record that was refused or dropped.
    """
    return _process.recorder().flush(timeout)


def lag() -> int:
    """How many records of this process wait to be stored."""
    return _process.recorder().lag()


def drain(timeout: Optional[float] = None) -> bool:
    """Sends what ended processes left in the spool; returns whether everything was sent.

    It is True also if another process is sending it, and False if a record was refused and
    set aside. The first recorded call of a process does this automatically, so this is
    only for a script that wants to wait for it.
    """
    return _process.recorder().drain(timeout)


def close(timeout: Optional[float] = None) -> bool:
    """Sends what is left and cleans up; returns whether everything was sent.

    A process does this automatically at its end. Without a timeout it takes as long as
    at the end of a process: ODA_EXIT_TIMEOUT, or 10 seconds. What could not be sent
    stays in the spool, and a call recorded later begins a new session.
    """
    return _process.recorder().close(_settings.exit_timeout() if timeout is None else timeout)
