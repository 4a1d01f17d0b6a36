"""Sessions in the spool that this process does not write to.

They were left by processes that ended before everything was sent, or by this process,
which releases sessions if it has many. A session is locked only while it is worked on,
so any number of them needs no open files, and another process may take over in
between.

The sessions of one block are sent in the order in which they began.
"""

import logging
import os
import threading
import time
from typing import Callable, Dict, Iterator, List, Optional, Set, Tuple

from . import _settings, _spool
from ._delivery import Archive, Delivery
from ._folder import Folder
from ._outbox import BATCH_RECORDS, Outbox
from ._spool import Block

LOOK_AGAIN = 60.0  # for sessions that were left in the meantime
IN_OTHER_HANDS = 1.0  # between looks at a session of this process that another sends
ELSEWHERE = 60.0  # between tries of an archive that this process does not use
UNREADABLE = 5.0  # between tries of a session of this process that cannot be read

_log = logging.getLogger("oda_helper")


class _Leftover:
    def __init__(self, folder: str, key: Tuple[str, str], own: bool = False):
        self.folder = folder
        self.key = key  # identifier of the block, and URL
        self.own = own  # its records were made by this process
        self.lag = 0  # how many of them wait
        self.due = 0.0
        self.failed = 0.0  # when it was last tried in vain
        self.visited = False
        self.most = BATCH_RECORDS
        self.position = (1, 0)  # up to where this process has sent it


class Leftovers:
    """The sessions left in the folders of a spool. One thread at a time works on them.

    ``stored`` is called for the blocks that an archive has received. ``uses`` says
    whether this process uses an archive itself. Failures of other archives do not
    concern an unrelated script: nobody is warned and nothing waits for them, unless
    the script asks to have everything sent.
    """

    def __init__(self, uses: Callable[[str], bool], stored: Callable[[str], None]):
        self._uses, self._stored = uses, stored
        self._archives: Dict[str, Archive] = {}
        self._lock = threading.RLock()
        self._working = threading.Lock()
        self._found: Dict[str, _Leftover] = {}
        self._nothing_to_do: Set[str] = set()
        self._guard: Optional[int] = None  # lock of the session that is worked on
        self._visiting: Optional[str] = None  # URL of the archive being tried
        self.unsent: Set[str] = set()  # sessions that cannot be sent; most need a person's help
        self.aside = 0  # records that were put aside here
        self.lost = 0  # sessions of this process that are not completely stored
        self.looked = -1.0  # when the spool was last searched
        self._unsearchable = False  # the last search failed
        self.draining = 0  # number of callers that want everything sent
        self.closing = 0  # number of callers that wait to end
        self._look = 0.0
        self._hurried = 0  # how often somebody asked for everything to be tried

    def add(self, folder: str, block: Block, lag: int) -> None:
        """Takes over a session of this process, in which so many records wait."""
        left = _Leftover(folder, (block.eb_id, block.url), own=True)
        left.lag = lag
        with self._lock:
            self._found[os.path.basename(folder)] = left

    def ignore(self, name: str, own: bool) -> None:
        """Leaves a session to a person."""
        self.unsent.add(name)
        self._nothing_to_do.add(name)
        self.lost += own

    def lag(self) -> int:
        """How many records of this process are in it."""
        return sum(left.lag for left in self._all().values() if left.own)

    def own(self) -> Set[str]:
        """The names of the sessions whose records this process made."""
        return {name for name, left in self._all().items() if left.own}

    def before(self, key: Tuple[str, str]) -> bool:
        """Whether this process has older records of a block here."""
        return any(left.own and left.key == key for left in self._all().values())

    def waits(self, url: str) -> bool:
        """Whether this process has records for an archive here."""
        return any(left.own and left.key[1] == url for left in self._all().values())

    def sent(self, url: str) -> int:
        """How many records were sent to an archive from here."""
        archive = self._archives.get(url)
        return archive.sent if archive is not None else 0

    def empty(self) -> bool:
        """Whether nothing is left to send."""
        return not self._found

    def finished(self, since: float) -> bool:
        """Whether everything was tried that should be tried before the process ends."""
        if self.own():
            return False
        visiting = self._visiting
        if visiting is not None and not self._uses(visiting):
            return True  # the rest waits for something that may hang
        return (self.looked >= since or self._unsearchable) and all(
            left.visited or not self._uses(left.key[1]) for left in self._all().values()
        )

    def hurry(self) -> None:
        """Makes the next round search the spool and try everything."""
        self._look = 0.0
        self._hurried += 1
        for left in self._all().values():
            left.due, left.visited = 0.0, False
        for archive in list(self._archives.values()):
            archive.poke()

    def retry(self) -> None:
        """Like hurry, but also retries what was left to a person."""
        self._nothing_to_do -= self.unsent
        self.unsent.clear()
        self.hurry()

    def close(self) -> None:
        """Closes the connections."""
        with self._working:
            for archive in list(self._archives.values()):
                archive.client.close()

    def abandon(self) -> None:
        """In a forked child: leaves the session that is worked on to the parent.

        As for a live session, the copy of its lock is closed, without waiting.
        """
        if self._guard is not None:
            os.close(self._guard)

    def _all(self) -> Dict[str, _Leftover]:
        with self._lock:
            return dict(self._found)

    def round(self, spools: List[str], held: Set[str]) -> float:
        """Tries what is due; returns how long to wait before the next round."""
        # The thread before this one may still be in its last round. What it sends is
        # not sent yet, and must not be taken for another process's work.
        with self._working:
            return self._round(spools, held)

    def _round(self, spools: List[str], held: Set[str]) -> float:
        now = time.monotonic()
        if now >= self._look:
            self._look = now + LOOK_AGAIN  # first: somebody may want it earlier meanwhile
            try:
                self._search(spools, held)
            except BaseException:
                self._look, self._unsearchable = 0.0, True
                raise
            self.looked, self._unsearchable = now, False
        found = self._all()
        # Blocks that failed come last, so that they do not take every try that an archive is
        # given. The sessions of a block stay in their order.
        failed: Dict[Tuple[str, str], float] = {}
        for left in found.values():
            failed[left.key] = max(left.failed, failed.get(left.key, 0.0))
        waiting: Set[Tuple[str, str]] = set()  # blocks with an older session that waits
        dues: List[float] = []
        for name, left in sorted(found.items(), key=lambda item: failed[item[1].key]):
            url = left.key[1]
            skipped = self.closing > 0 and not self._uses(url)
            if left.key in waiting:
                left.visited = True  # the older one was
                continue
            if skipped or time.monotonic() < left.due:
                waiting.add(left.key)
                if not skipped:
                    dues.append(left.due)
                continue
            self._visiting, hurried = url, self._hurried
            try:
                wait = self._visit(name, left)
            finally:
                self._visiting = None
            if wait is not None and hurried != self._hurried:
                # Somebody has asked since this try began: the next round is the one.
                self._archive(url).poke()
                wait = 0.0
            else:
                left.visited = True
            if wait is None:
                with self._lock:
                    if self._found.get(name) is left:  # else it was added meanwhile
                        del self._found[name]
            else:
                waiting.add(left.key)
                left.due = time.monotonic() + wait
                dues.append(left.due)
        return max(0.0, min(dues + [self._look]) - time.monotonic())

    def _search(self, spools: List[str], held: Set[str]) -> None:
        """Finds new sessions, oldest first."""
        found: List[Tuple[int, str, str, Tuple[str, str]]] = []
        for spool, name in self._names(spools):
            folder = os.path.join(spool.path, name)
            if name.startswith((_spool.COMING, _spool.GOING)):
                _spool.tidy(spool, name)
            if not _spool.split_name(name) or name in held or name in self._nothing_to_do:
                continue
            if name in self._found:
                continue
            try:
                session = spool.enter(name)
                block = _spool.read_block(session)
                began = session.stat(_spool.BLOCK).st_mtime_ns
                found.append((began, name, folder, (block.eb_id, block.url)))
            except FileNotFoundError:
                pass  # another process has finished it
            except Exception as problem:  # the others must not wait for it
                self._unusable(folder, name, False, problem)
        with self._lock:
            for _, name, folder, key in sorted(found):
                self._found.setdefault(name, _Leftover(folder, key))

    def _names(self, spools: List[str]) -> Iterator[Tuple[Folder, str]]:
        """What is in the spools. One that cannot be used is reported."""
        for path in spools:
            try:
                spool = Folder(path)
            except PermissionError as problem:
                self._unusable(path, path, False, problem)
                continue
            self.unsent.discard(path)
            for name in spool.names():
                yield spool, name

    def _unusable(self, folder: str, name: str, own: bool, problem: Exception) -> None:
        """Reports a session that cannot be sent. What the system refuses may work later."""
        level = logging.ERROR if own or self.draining else logging.INFO
        if isinstance(problem, _spool.UnknownForm):  # nothing but a person will ever send it
            level = max(level, logging.WARNING)
        why = problem if isinstance(problem, (OSError, _spool.Unusable)) else repr(problem)
        if name not in self.unsent:
            _log.log(level, "What is in %s cannot be sent: %s.", folder, why)
        if isinstance(problem, OSError):
            self.unsent.add(name)
        else:
            self.ignore(name, own)

    def _archive(self, url: str) -> Archive:
        if url not in self._archives:
            self._archives[url] = Archive(url, token=lambda: self._token(url))
        archive = self._archives[url]
        archive.quiet = not self.draining
        archive.hurried = self.closing > 0
        archive.trusted = self._trusted(url)
        return archive

    def _token(self, url: str) -> Optional[str]:
        """The token, if it is meant for this archive.

        Whoever can write to the spool must not choose who gets it.
        """
        return _settings.token() if self._trusted(url) else None

    def _trusted(self, url: str) -> bool:
        """Whether the settings of this process name the server, and not only the spool."""
        own = _settings.archive_url()
        return self._uses(url) or own is not None and _settings.same_server(url, own)

    def _visit(self, name: str, left: _Leftover) -> Optional[float]:
        """Sends what it can of a session. None means that it is finished."""
        folder, guard = left.folder, None
        try:
            archive = self._archive(left.key[1])
            elsewhere = not (left.own or self.draining or self._uses(left.key[1]))
            if archive.wait() > 0:
                return max(archive.wait(), ELSEWHERE if elsewhere else 0.0)
            session = _spool.enter(folder)
            block = _spool.read_block(session)
            guard = self._guard = _spool.take_lock(session)
            if guard is None:
                # This process itself keeps the order of its records.
                return IN_OTHER_HANDS if left.own else None
            if not session.named():
                return None

            def settle(records: int, size: int) -> None:
                left.lag = max(0, left.lag - records)

            outbox = Outbox(session, block, lambda: None)
            # It may not have been saved: the disk may be full.
            outbox.position = max(outbox.position, left.position)
            delivery = Delivery(outbox, archive, settle, self._stored)
            delivery.most = left.most
            wait = delivery.steps()
            self.unsent.discard(name)
            left.most, left.position, left.failed = delivery.most, outbox.position, delivery.failed
            self.aside += outbox.aside
            if wait is not None:
                return max(wait, ELSEWHERE) if elsewhere and wait > 0 else wait
            if delivery.stuck:
                self.ignore(name, left.own)
            elif outbox.keeps():
                self._nothing_to_do.add(name)
                self.lost += left.own
            else:
                _spool.remove(session)
        except FileNotFoundError:
            pass  # another process has finished it
        except Exception as problem:  # the others must not wait for it
            self._unusable(folder, name, left.own, problem)
            if left.own and isinstance(problem, OSError):
                return UNREADABLE
        finally:
            self._guard = None  # first: a child must not close another file
            if guard is not None:
                _spool.drop_lock(guard)
        return None
