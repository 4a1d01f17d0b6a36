"""The recorder of a process: takes records from any thread and ships them in its own.

A recorded call writes to the spool and returns; see _session. Daemon threads do the
rest: one sends the spool to the archive, one forces it to disk, and one takes over
sessions that nobody holds, left by processes that ended before everything was sent.
The last is separate because its sessions may be for another archive, which must not
delay this one. So if a script uses several archives, each has its own sender.
"""

import logging
import os
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from . import _settings, _spool
from ._call import Key
from ._delivery import Archive, Delivery
from ._folder import Folder
from ._leftovers import Leftovers
from ._outbox import Outbox
from ._running import Running
from ._running import release as _release
from ._session import CLOSED, NotSynced, Session
from ._spool import Block

MAX_SESSIONS = 16  # number of open sessions above which those at rest are released
MOST_SESSIONS = 64  # the same for all
RESTED = 0.5  # after this, a session is at rest
IDLE_SECONDS = 60.0  # after this, a session that is not the newest is released
LINGER = 0.2  # gathers records into a batch; sending costs the script time
SYNC_EVERY = 0.1
REPORT_EVERY = 10.0
POLL = 0.01
WAKE = 0.1  # between wake-ups of the threads while somebody waits
TRY_AGAIN = 5.0  # after a failure of the spool
OLDER_FIRST = 0.1  # between checks whether older records of a block are sent
ASIDE = "Records were refused or damaged, or cannot be sent. They are kept in %s."

_log = logging.getLogger("oda_helper")


class _Used(Archive):
    """An archive that this process uses, with what its sender needs."""

    def __init__(self, url: str, elsewhere: Callable[[], int]):
        super().__init__(url, elsewhere)
        # Locks that are released to wake it. Unlike an Event, a signal handler can set
        # one even while it interrupts the setting.
        self.wake, self.hurry = threading.Lock(), threading.Lock()
        self.sending = threading.Lock()
        self.threads: Optional[object] = None  # token of those that its sender is one of


class _Live:
    """A session of this process and its delivery."""

    def __init__(self, session: Session, archive: Archive, stored: Callable[[str], None]):
        self.session = session
        outbox = Outbox(session.files, session.block, lambda: session.segment)
        self.delivery = Delivery(
            outbox, archive, session.settle, stored, lambda: (session.lag(), session.age())
        )
        self.used = time.monotonic()
        self.wanted = 0  # number of callers that must find it open
        self.due = 0.0  # when to try again after a failure of the spool

    def rest(self) -> float:
        """Leaves it alone after a failure; returns for how long."""
        self.due = time.monotonic() + TRY_AGAIN
        return TRY_AGAIN

    def delivered(self, place: Tuple[int, int]) -> bool:
        """Whether nothing before a position is waiting."""
        if self.session.closed or self.delivery.stuck:
            return True  # it is a leftover, or there is nothing to wait for
        return self.delivery.outbox.position >= place and not self.delivery.creating


class Recorder:
    """Everything that one process records. A forked child makes its own."""

    def __init__(self, creates: Optional[Dict[str, Any]] = None):
        # Blocks that were created while the archive was unavailable. A session
        # for one of them stores the block first.
        self._creates: Dict[str, Any] = dict(creates or {})
        self._unstored: Set[str] = set()  # blocks of this process that the archive lacks
        self._lock = threading.RLock()
        self._live: Dict[Tuple[str, str], _Live] = {}
        self._archives: Dict[str, _Used] = {}
        self._leftovers = Leftovers(lambda url: url in self._archives, self._stored)
        self.running = Running(self.key, _settings.block_id)
        self._spool: Optional[Folder] = None
        self._open_again = 0.0
        self._waiting = 0  # number of callers of flush
        self.missed_calls = 0  # calls that had no archive or block to go to
        self.dropped = 0  # records that could not be kept
        self._why_dropped = ""  # the last of them
        self._aside = 0  # sessions of this process with records that were put aside
        self._lost = 0  # calls and records of this process that will never be stored
        self._reported = self._unsynced = -REPORT_EVERY
        self._dirty, self._sweep = threading.Lock(), threading.Lock()  # as in an archive
        self._threads: Optional[object] = None  # token of the running threads
        self._start_again = 0.0
        self._unstarted = ""  # why they could not be started

    # Called by callers.

    def record(
        self, eb_id: str, url: str, record: bytes, sort: bytes = _spool.RECORD, key: Optional[Key] = None
    ) -> bool:
        """Keeps a record, or a status, for the archive. It is dropped only if the disk fails.

        Returns whether it has the key that was given. It has another if the session of that
        key is closed, or if it is not for that block.
        """
        live = self._live.get((eb_id, url)) or self.open(eb_id, url)
        number = key.number if key and live and key.session is live.session else 0
        try:
            why = live.session.append(record, sort, number) if live else None
            if why is CLOSED:
                number = 0
                live, why = self._record_anew(eb_id, url, record, sort)
        except NotSynced as problem:
            self._report_unsynced(problem)
            why = None
        if live is None:
            why = "no folder is available for them"
        else:
            live.used = time.monotonic()
        if why is not None:
            self._drop(why)
        if (self._threads is None or self._unstarted) and self._live:
            self.start()
        _release(self._dirty)
        self._wake(url)
        return why is None and number != 0

    def key(self, eb_id: str, url: str) -> Optional[Key]:
        """A key for a record that is kept later; None if there is none now."""
        if self._leftovers.closing or eb_id in self._unstored:
            return None
        live = self.open(eb_id, url)
        return None if live is None else Key(live.session, live.session.take())

    def _record_anew(
        self, eb_id: str, url: str, record: bytes, sort: bytes
    ) -> Tuple[Optional[_Live], Optional[str]]:
        """Keeps a record after its session was closed, in one that stays until then."""
        closed = self._live.get((eb_id, url))
        if closed is not None and closed.session.closed:
            # Without the lock: whoever was interrupted in the session may wait for it.
            self._let_go((eb_id, url), closed)
        with self._lock:
            live = self.open(eb_id, url)
            if live is None:
                return None, None
            live.wanted += 1
        try:
            return live, live.session.append(record, sort)
        finally:
            with self._lock:
                live.wanted -= 1

    def missed(self, calls: int = 1) -> None:
        """Notes a call that is not recorded; with 0 calls, a status that is not said."""
        self._lost += 1
        self.missed_calls += calls

    def remember(self, eb_id: str, create: Dict[str, Any]) -> None:
        """Notes a block that must be stored before its records."""
        with self._lock:
            self._creates[eb_id] = create
            self._unstored.add(eb_id)

    def _stored(self, eb_id: str) -> None:
        """Forgets such a block: it may be corrected in the archive from now on."""
        with self._lock:
            self._creates.pop(eb_id, None)
            self._unstored.discard(eb_id)

    def open(self, eb_id: str, url: str) -> Optional[_Live]:
        """The session for a block, created if necessary; None if that fails."""
        with self._lock:
            found = self._live.get((eb_id, url))
            if found is not None:
                if not found.session.closed:
                    return found
                self._let_go((eb_id, url), found)
            if time.monotonic() < self._open_again:
                return None
            try:
                spool = self._folder()
                block = Block(eb_id, url, _settings.user(), self._creates.get(eb_id))
                session = Session(spool, block, _settings.spool_limit(), _settings.sync_policy())
                live = _Live(session, self._archive(url), self._stored)
            except OSError as problem:
                self._open_again = time.monotonic() + TRY_AGAIN
                self._spool = None  # it may have been removed
                _log.error("Records are not kept: cannot create a session (%s).", problem)
                return None
            first = self._live.get((eb_id, url))
            if first is not None and not first.session.closed:
                # A signal handler has been here in the meantime.
                session.release()
                _spool.remove(session.files)
                return first
            self._live[(eb_id, url)] = live
        self.start()
        _release(self._dirty)
        self._wake(url)
        return live

    def _report_unsynced(self, problem: OSError) -> None:
        now = time.monotonic()
        if now - self._unsynced >= REPORT_EVERY:
            self._unsynced = now
            _log.error("Cannot sync the spool to disk; a power cut may lose records: %s.", problem)

    def _drop(self, why: str, count: int = 1) -> None:
        self._lost += count
        self.dropped += count
        self._why_dropped = why
        now = time.monotonic()
        if now - self._reported >= REPORT_EVERY:
            self._reported = now
            _log.error("RECORDS ARE LOST: %d dropped so far; %s.", self.dropped, why)

    def lag(self) -> int:
        """How many records of this process are not stored yet."""
        with self._lock:
            return self._leftovers.lag() + sum(live.session.lag() for live in self._live.values())

    def spool(self) -> Optional[str]:
        """The spool of this process, if it has one yet."""
        return None if self._spool is None else self._spool.path

    def troubles(self) -> List[str]:
        """Why records of this process are not stored."""
        with self._lock:
            lives, archives = list(self._live.values()), list(self._archives.values())
        found = [self._unstarted] + [archive.trouble for archive in archives]
        for live in lives:
            found.append(live.delivery.trouble)
            if live.delivery.outbox.keeps():
                found.append(ASIDE % live.session.folder)
        if self._aside or self._leftovers.lost:
            found.append(ASIDE % (self.spool() or _settings.spool_folder()))
        if self._why_dropped:
            found.append("Records are lost: %s." % self._why_dropped)
        return [text for text in found if text]

    def flush(self, timeout: Optional[float]) -> bool:
        """Waits until what was recorded so far is stored, and returns whether it is."""
        with self._lock:
            lives, left = list(self._live.values()), self._leftovers.own()
        # Without the lock: a signal handler may have interrupted a recording in one of
        # them, and need it.
        targets = [(live, live.session.end()) for live in lives]
        names = left | {live.session.name for live, _ in targets}

        def done() -> bool:
            # Keep this order: a session moves from here to the leftovers.
            return all(live.delivered(place) for live, place in targets) and not (
                names & self._leftovers.own()
            )

        return self._wait(done, timeout) and self._whole()

    def _whole(self) -> bool:
        """Whether nothing of this process is known to be lost."""
        with self._lock:
            lives = list(self._live.values())
        aside = any(live.delivery.stuck or live.delivery.outbox.keeps() for live in lives)
        gone = any(live.session.closed and live.session.lag() for live in lives)
        lost = self._lost or self._aside or self._leftovers.lost
        return not (aside or gone or lost or self._unstored)

    def drain(self, timeout: Optional[float]) -> bool:
        """Sends what other processes left; returns whether nothing is left to send."""
        begun, aside = time.monotonic(), self._leftovers.aside
        try:
            self._folder()
        except OSError as problem:
            _log.error("Nothing is sent: there is no folder for the spool (%s).", problem)
            return False
        with self._lock:  # so that close() does not end the threads meanwhile
            self._leftovers.draining += 1
        try:
            self._leftovers.retry()
            self.start()
            done = self._wait(
                lambda: self._leftovers.looked >= begun and self._leftovers.empty(), timeout
            )
        finally:
            with self._lock:
                self._leftovers.draining -= 1
        return done and not self._leftovers.unsent and self._leftovers.aside == aside

    def close(self, timeout: Optional[float]) -> bool:
        """Sends what is left and ends the sessions; returns whether everything was sent."""
        self.running.close()
        if self._threads is None:
            self._start_again = 0.0
            if self._live:
                self.start()
            if self._threads is None:  # the next process sends the records
                return not self._live and self._whole()
        begun = time.monotonic()
        with self._lock:
            self._leftovers.closing += 1
        try:
            self._leftovers.hurry()
            if self._wait(lambda: not self._live and self._leftovers.finished(begun), timeout):
                self._stop()
                return self._whole()
            if self.lag():
                _log.warning(
                    "%d records could not be sent in time. They are kept in %s. The next start "
                    "sends them to the address that ODA_URL had in this run, and so does: "
                    "oda record drain %s. If that address is wrong: oda record drain --url=URL %s",
                    self.lag(), self.spool(), self.spool(), self.spool(),
                )  # fmt: skip
            return False
        finally:
            with self._lock:
                self._leftovers.closing -= 1
            _release(self._sweep)  # what was not tried meanwhile is due

    def _wait(self, done: Callable[[], bool], timeout: Optional[float]) -> bool:
        """Waits for a condition while the threads hurry."""
        end = None if timeout is None else time.monotonic() + max(0.0, timeout)
        with self._lock:
            self._waiting += 1
        try:
            with self._lock:
                archives = list(self._archives.values())
                for live in self._live.values():
                    live.delivery.poke()
                    live.due = 0.0
            self._start_again = 0.0
            for archive in archives:
                archive.poke()
                _release(archive.hurry)
            woken = 0.0
            while not done():
                if (self._threads is None or self._unstarted) and self._live:
                    self.start()
                now = time.monotonic()
                if now >= woken + WAKE:
                    woken = now
                    self._wake()
                    _release(self._sweep)
                if end is not None and now >= end:
                    return False
                time.sleep(POLL)
            return True
        finally:
            with self._lock:
                self._waiting -= 1

    def abandon(self) -> "Recorder":
        """In a forked child: a new recorder without the parent's sessions."""
        for live in list(self._live.values()):
            live.session.abandon()
        self._leftovers.abandon()
        self.running.abandon()
        return Recorder(self._creates)

    # Called by the threads.

    def start(self) -> None:
        """Starts the threads that are not running."""
        with self._lock:
            if time.monotonic() < self._start_again:
                return
            works: List[Tuple[Callable[..., None], Tuple[object, ...]]] = []
            running, token = self._threads, self._threads or object()
            if running is None:
                self._threads = token
                works = [(self._sync, (token,)), (self._leftover, (token,))]
            new = [each for each in list(self._archives.values()) if each.threads is not token]
            for archive in new:
                archive.threads = token
                works.append((self._ship, (token, archive)))
            try:
                for work, args in works:
                    name = "oda_helper" + work.__name__
                    threading.Thread(target=work, args=args, name=name, daemon=True).start()
                self._unstarted = ""
            except RuntimeError as problem:
                # There are too many threads, or the interpreter is shutting down.
                self._threads = running
                for archive in new:
                    archive.threads = None
                self._start_again = time.monotonic() + TRY_AGAIN
                self._unstarted = (
                    "Records are kept in %s and not sent, since a thread cannot be started (%s). "
                    "The next start sends them if this process cannot." % (self.spool(), problem)
                )
                _log.warning("%s", self._unstarted)

    def _stop(self) -> None:
        """Ends the threads, unless there is work again or somebody else waits for them."""
        with self._lock:
            waited = self._leftovers.draining or self._leftovers.closing > 1
            archives = list(self._archives.values())
            if not self._live and self._leftovers.empty() and not waited:
                self._threads, self._archives, self._spool = None, {}, None
        _release(self._dirty)
        _release(self._sweep)
        for archive in archives:
            _release(archive.wake)

    def _wake(self, url: Optional[str] = None) -> None:
        """Wakes the sender of an archive, or all of them."""
        for archive in list(self._archives.values()):
            if url is None or archive.url == url:
                _release(archive.wake)

    def _sync(self, token: object) -> None:
        while self._threads is token:
            self._dirty.acquire()
            time.sleep(SYNC_EVERY)
            for live in list(self._live.values()):
                try:
                    live.session.sync()
                except OSError as problem:
                    self._report_unsynced(problem)

    def _ship(self, token: object, archive: _Used) -> None:
        while self._threads is token:
            # The thread before this one may still be in its last round.
            with archive.sending:
                if self._threads is not token:
                    break
                wait = self._round(archive)
            if wait is None or wait > 0:
                archive.wake.acquire(timeout=-1 if wait is None else wait)
                if not self._waiting:
                    archive.hurry.acquire(timeout=LINGER)
        _release(archive.wake)  # it may have been meant for the next thread
        archive.client.close()

    def _leftover(self, token: object) -> None:
        while self._threads is token:
            held = {live.session.name for live in list(self._live.values())}
            try:
                with self._lock:  # close() forgets the spool, which must not be set again
                    if self._threads is not token:
                        break
                    spool = self._folder()
                wait = self._leftovers.round(_settings.search_folders(spool.path), held)
            except Exception as problem:
                _log.error("The spool cannot be searched: %r.", problem)
                self._spool = None
                wait = 0.0
                time.sleep(TRY_AGAIN)  # even if somebody waits and wakes this thread
            self._wake()  # what waited for it may continue
            if wait > 0:
                self._sweep.acquire(timeout=wait)
        _release(self._sweep)  # it may have been meant for the next thread
        self._leftovers.close()

    def _round(self, archive: Archive) -> Optional[float]:
        """Gives every session for an archive its turn; returns when the next one is due.

        Those that failed come last, so that they do not take every try that an archive
        is given. Else those that were unused longest come first, since they are the first
        to be released.
        """
        archive.hurried = self._leftovers.closing > 0
        waits = []
        lives = [each for each in list(self._live.items()) if each[1].delivery.archive is archive]
        for key, live in sorted(lives, key=lambda item: (item[1].delivery.failed, item[1].used)):
            rest = live.due - time.monotonic()
            if rest > 0:  # somebody who waits has woken this thread
                waits.append(rest)
                continue
            try:
                wait = self._turn(key, live)
            except Exception:
                # The others still get their turn.
                _log.exception("Sending to the archive failed; trying again.")
                wait = live.rest()
            if wait is not None:
                waits.append(wait)
        return min(waits) if waits else None

    def _turn(self, key: Tuple[str, str], live: _Live) -> Optional[float]:
        """Sends what it can of a session, and ends it if it is no longer needed."""
        try:
            if self._leftovers.before(key):
                wait: Optional[float] = OLDER_FIRST
            else:
                wait = live.delivery.steps(written=True)
                if wait is None:
                    self._caught_up(live.delivery.archive)
        except OSError as problem:
            _log.error("The spool %s cannot be read: %s.", live.session.folder, problem)
            if isinstance(problem, FileNotFoundError):
                self._let_go(key, live)  # it was removed; the next one will be complete
                return None
            wait = live.rest()
        with self._lock:
            if self._live.get(key) is not live:
                return None
            newest = live.used >= max(other.used for other in self._live.values())
            unused = time.monotonic() - live.used
            many = len(self._live) > MAX_SESSIONS and not newest
            # The record of a call that is announced must find the session of its key.
            rests = unused > RESTED and not newest and not self.running.holds(live.session)
            crowded = many and (rests or len(self._live) > MOST_SESSIONS)
            idle = rests and unused > IDLE_SECONDS
            if live.wanted or not (self._leftovers.closing or crowded or idle):
                if many:  # it is released once it rests
                    wait = RESTED if wait is None else min(wait, RESTED)
                return wait
            if live.delivery.stuck:
                if not live.session.stop_now(lambda lag: None):
                    return OLDER_FIRST
                self._leftovers.ignore(live.session.name, own=True)
            elif wait is None and live.session.close_at(live.delivery.outbox.position):
                if live.delivery.outbox.keeps():
                    self._aside += 1
                else:
                    _spool.remove(live.session.files)
            elif crowded:
                # It continues as a leftover, without open files.
                # Add it before it is closed: flush() looks for it in one of the two.
                folder, block = live.session.folder, live.session.block
                if not live.session.stop_now(lambda lag: self._leftovers.add(folder, block, lag)):
                    return OLDER_FIRST
            else:
                return wait
            # It is closed, and nothing of it is lost.
            del self._live[key]
        # Without the lock: whoever was interrupted in the session may wait for it.
        live.session.release()
        _release(self._sweep)
        return None

    def _caught_up(self, archive: Archive) -> None:
        """Has an archive that is back say so, when what waited for it is sent."""
        back = archive.returned
        if back is None or self._leftovers.waits(archive.url):
            return
        with self._lock:
            lives = [live for live in self._live.values() if live.delivery.archive is archive]
        # A busy script always has something to send. Everything up to now is sent if
        # nothing that waits is older than the return of the archive.
        now = time.monotonic()
        if not any(live.delivery.creating or now - live.session.age() < back for live in lives):
            archive.caught_up()

    def _let_go(self, key: Tuple[str, str], live: _Live) -> None:
        """Ends the work on a session. What only this process knows about it is lost."""
        waiting = live.session.stop()  # first: nothing may be added after it is counted
        with self._lock:
            if self._live.get(key) is live:
                del self._live[key]
                if live.session.name not in self._leftovers.own() and not live.delivery.stuck:
                    if waiting:
                        why = "the session %s was removed or damaged" % live.session.folder
                        self._drop(why, waiting)
        live.session.release()

    def _archive(self, url: str) -> _Used:
        with self._lock:
            if url not in self._archives:
                self._archives[url] = _Used(url, lambda: self._leftovers.sent(url))
            return self._archives[url]

    def _folder(self) -> Folder:
        """The spool of this process, created if necessary."""
        with self._lock:
            if self._spool is None or not self._spool.named():
                try:
                    self._spool = _settings.make_spool(_settings.spool_folder())
                except OSError as problem:
                    self._spool = _settings.make_spare()
                    _log.warning("Records are kept in %s, since %s.", self._spool.path, problem)
            return self._spool
