"""Sessions in the spool that this process does not write to.

They are left from processes that ended before everything was sent, or that were
killed. A session is locked only while it is worked on, so any number of them
costs no open files, and another process may take over in between.
"""

import logging
import os
import time
from typing import Callable, Dict, Optional, Set

from . import _spool
from ._delivery import Archive, Delivery
from ._outbox import Outbox

LOOK_AGAIN = 60.0  # for sessions that were left meanwhile

_log = logging.getLogger("oda_helper")


class _Leftover:
    def __init__(self, lag: int = 0, own: bool = False):
        self.lag, self.own = lag, own  # own: its records were made by this process
        self.due = 0.0
        self.visited = False


class Leftovers:
    """What is left over in a spool. One thread works on it."""

    def __init__(self, archive: Callable[[str], Archive]):
        self._archive = archive
        self._found: Dict[str, _Leftover] = {}
        self._nothing_to_do: Set[str] = set()
        self.unsent: Set[str] = set()  # sessions that only a person can help
        self.looked = -1.0  # when the spool was last looked through
        self._look = 0.0

    def add(self, name: str, lag: int) -> None:
        """Takes over a session of this process."""
        self._found[name] = _Leftover(lag, own=True)

    def ignore(self, name: str) -> None:
        """Leaves a session to a person."""
        self.unsent.add(name)
        self._nothing_to_do.add(name)

    def lag(self) -> int:
        """How many records of this process are in it."""
        return sum(left.lag for left in list(self._found.values()) if left.own)

    def own(self) -> Set[str]:
        """The names of those whose records this process made."""
        return {name for name, left in list(self._found.items()) if left.own}

    def waits(self) -> bool:
        """Whether something of this process, or not yet tried, is left."""
        return any(left.own or not left.visited for left in list(self._found.values()))

    def empty(self) -> bool:
        """Whether nothing is left to send."""
        return not self._found

    def hurry(self) -> None:
        """Makes the next round look through the spool and try everything."""
        self._look = 0.0
        for left in list(self._found.values()):
            left.due = 0.0

    def round(self, spool: str, held: Set[str]) -> float:
        """Tries what is due; says for how long to wait before the next round."""
        now = time.monotonic()
        if now >= self._look:
            self._look = now + LOOK_AGAIN
            for name in os.listdir(spool):
                if _spool.split_name(name) and name not in held | self._nothing_to_do:
                    self._found.setdefault(name, _Leftover())
            self.looked = now
        for name, left in list(self._found.items()):
            if time.monotonic() < left.due:
                continue
            wait = self._visit(os.path.join(spool, name), name)
            left.visited = True
            if wait is None:
                del self._found[name]
            else:
                left.due = time.monotonic() + wait
        dues = [left.due for left in self._found.values()]
        return max(0.0, min(dues + [self._look]) - time.monotonic())

    def _visit(self, folder: str, name: str) -> Optional[float]:
        """Sends what it can of a session. None says that it is done with."""
        path = os.path.join(folder, _spool.LOCK)
        guard = None
        try:
            block = _spool.read_block(folder)
            archive = self._archive(block.url)
            if archive.wait() > 0:
                return archive.wait()
            guard = _spool.take_lock(path)
            if guard is None or not _spool.still_there(guard, path):
                return None  # it is in other hands
            delivery = Delivery(Outbox(folder, block, lambda: None), archive)
            wait = delivery.steps()
            if wait is not None:
                return wait
            if delivery.stuck:
                self.ignore(name)
            elif delivery.outbox.keeps():
                self._nothing_to_do.add(name)
            else:
                _spool.remove(folder)
        except FileNotFoundError:
            pass  # another process has finished it
        except (OSError, _spool.Unusable) as problem:
            _log.error("The session %s in the spool cannot be sent: %s.", folder, problem)
            self.ignore(name)
        finally:
            if guard is not None:
                os.close(guard)
        return None
