"""The single recorder of this process: how it begins, ends and survives a fork."""

import atexit
import os
import tempfile
from typing import Optional

from . import _settings
from ._recorder import Recorder

_recorder: Optional[Recorder] = None


def recorder() -> Recorder:
    """The recorder of this process."""
    global _recorder
    if _recorder is None:
        _recorder = Recorder()
    return _recorder


def _at_exit() -> None:
    if _recorder is not None:
        _recorder.close(_settings.exit_timeout())


def _before_fork() -> None:
    # What a thread imports or finds out only once has a lock, which would stay taken in
    # the child. So it is done before.
    if _recorder is not None:
        import encodings.idna
        import urllib.request

        try:
            tempfile.gettempdir()
        except OSError:
            pass  # there is none


def _in_child() -> None:
    # The child has none of the threads, and the sessions belong to the parent.
    global _recorder
    if _recorder is not None:
        _recorder = _recorder.abandon()


atexit.register(_at_exit)
os.register_at_fork(before=_before_fork, after_in_child=_in_child)
