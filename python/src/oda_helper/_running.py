"""Tells the archive which calls go on, so that one that hangs can be seen.

A call that has lasted a second is announced, and again at a third of its lease, until its
record ends it. A daemon thread does that, with one request at a time. No call waits for it:
to begin and to end, a call is put into a dictionary and taken out of it. What cannot be
said is forgotten; only what still goes on is tried again.
"""

import logging
import random
import threading
import time
from collections import deque
from itertools import islice
from typing import Callable, Deque, Dict, List, Optional

from ._call import Call, Key, encode, stamp
from ._errors import PROBLEM
from ._http import FAILURES, Answer, Client, describe
from ._session import Session

AFTER = 1.0  # seconds; a call that has lasted as long is announced
LEASE = 60  # seconds for which the archive believes it
MOST = 1000  # calls that are announced: the oldest. An archive takes no more of one caller
BATCH = 50  # requests before new calls have their turn
REST = 0.001  # between requests, so that the script has its turn
ANSWER = 5.0  # seconds that a request may take
FIRST_DELAY, LAST_DELAY = 1.0, 5.0  # between tries of an archive that is away
TRY_AGAIN = 5.0  # after a failure of the spool, or to start a thread
MAX_BODY = 15 << 10  # bytes; an archive takes 16 KiB

_log = logging.getLogger("oda_helper")


class _Archive:
    """The connection to an archive, and whether to use it now."""

    def __init__(self, url: str):
        self.client = Client(url, connect=ANSWER, answer=ANSWER)
        self.next = 0.0
        self._delay = FIRST_DELAY

    def ask(self, method: str, key: Key, body: Optional[bytes] = None) -> Optional[Answer]:
        """Sends a request. None means that nothing can be said now."""
        block = key.session.block
        try:
            path = "/ebs/%s/running/%s" % (block.eb_id, key)
            answer = self.client.request(method, path, body, block.user)
            if not (answer.passing() and answer.status != 204) or _full(answer):
                self._delay = FIRST_DELAY
                return answer
            why = "%d" % answer.status
        except FAILURES as problem:
            why = describe(problem)
        _log.debug("What is running cannot be said to %s (%s).", block.url, why)
        self.next = time.perf_counter() + self._delay * random.uniform(0.5, 1.0)
        self._delay = min(2 * self._delay, LAST_DELAY)
        return None


def _full(answer: Answer) -> bool:
    """Whether the archive has no room for one more call, but for those that it knows."""
    return answer.status == 429 and answer.problem()["type"] == PROBLEM + "too-many-running"


class Running:
    """The calls of this process that go on.

    ``key`` returns a key for the record of a call, or None if there is none now.
    """

    def __init__(self, key: Callable[[str, str], Optional[Key]], block: Callable[[], Optional[str]]):
        self._key, self._block = key, block
        self._calls: Dict[int, Call] = {}  # in the order in which they began
        self._over: Deque[Key] = deque(maxlen=MOST)  # of calls whose record has another
        self._archives: Dict[str, _Archive] = {}
        self._thread: Optional[threading.Thread] = None
        self._starting = threading.RLock()
        self._start_again = 0.0
        self._resting = True  # the thread must be woken or started
        self._wake = threading.Lock()  # released for that, as in _recorder
        self._closing = False

    # Called by callers.

    def begun(self, call: Call) -> None:
        """Notes a call. Taken out of ``call.among``, it has ended."""
        call.among = self._calls
        self._calls[id(call)] = call
        if self._resting:
            self._rouse()

    def going_on(self) -> List[Call]:
        """The coroutines and generators that have begun."""
        return [call for call in list(self._calls.values()) if call.goes_on]

    def holds(self, session: Session) -> bool:
        """Whether a call is announced with a key of a session."""
        keys = [call.key for call in list(self._calls.values())]
        return any(key is not None and key.session is session for key in keys)

    def withdraw(self, key: Key) -> None:
        """Takes back that a call is running, since no record will end it."""
        self._over.append(key)
        if self._resting:
            self._rouse()

    def close(self) -> None:
        """Ends the thread as soon as no call goes on."""
        with self._starting:
            self._closing = True
            release(self._wake)

    def abandon(self) -> None:
        """In a forked child: leaves the calls to the parent, which records them."""
        self._calls.clear()

    def _rouse(self) -> None:
        """Wakes the thread, or starts it."""
        with self._starting:
            self._closing = False
            if self._thread is not None:
                release(self._wake)
                return
            if time.monotonic() < self._start_again:
                return
            # Note it first: a signal handler may come here, too.
            self._thread = threading.Thread(
                target=self._work, name="oda_helper_running", daemon=True
            )
            try:
                self._thread.start()
            except BaseException as problem:
                self._thread = None
                # There are too many threads, or the interpreter is shutting down.
                self._start_again = time.monotonic() + TRY_AGAIN
                if not isinstance(problem, RuntimeError):
                    raise

    # Called by the thread.

    def _work(self) -> None:
        wait = AFTER  # a call that has just begun is not due earlier
        while self._needed():
            time.sleep(wait)
            try:
                wait = self._round()
            except Exception:
                _log.debug("What is running is not said.", exc_info=True)
                wait = AFTER

    def _needed(self) -> bool:
        """Rests while no call goes on; returns False if the thread should end."""
        while True:
            with self._starting:
                if self._thread is not threading.current_thread():
                    return False
                self._resting = True  # first: a call that begins from now on wakes this thread
                if self._calls or self._over:
                    self._resting = False
                    return True
                for archive in self._archives.values():
                    archive.client.close()
                self._archives.clear()
                if self._closing:
                    self._thread = None
                    return False
            self._wake.acquire()

    def _round(self) -> float:
        """Says what is due; returns how long to wait before the next round."""
        while self._over:
            key = self._over.popleft()
            archive = self._archive(key.session.block.url)
            if archive.next <= time.perf_counter():
                archive.ask("DELETE", key)
        due: List[Call] = []
        now, wait = time.perf_counter(), AFTER
        for call in list(islice(list(self._calls.values()), MOST)):
            if not call.due:
                call.due = call.clock + AFTER
            if call.due <= now:
                due.append(call)
            else:
                wait = min(wait, call.due - now)
        due.sort(key=lambda call: call.key is not None)  # new ones first
        for call in due[:BATCH]:
            self._say(call)
        return REST if len(due) > BATCH else wait

    def _say(self, call: Call) -> None:
        """Announces a call, or renews what was said of it, and notes when it is due again."""
        now = time.perf_counter()
        # A function may create the block that it is recorded in.
        eb_id = call.eb_id or self._block()
        call.due = now + (AFTER if eb_id is None else LEASE / 3)
        archive = self._archive(call.url)
        if archive.next > now:
            call.due = archive.next
            return
        if eb_id is None:
            return
        if call.key is None:
            key = self._key(eb_id, call.url)
            if key is None:
                call.due = now + AFTER
                return
            call.key, call.said = key, _said(call)
        if id(call) not in self._calls:
            return  # whether or not its record has the key: it has ended
        if archive.ask("PUT", call.key, call.said) is None:
            call.due = archive.next
        time.sleep(REST)

    def _archive(self, url: str) -> _Archive:
        if url not in self._archives:
            self._archives[url] = _Archive(url)
        return self._archives[url]


def _said(call: Call) -> bytes:
    """What is said of a call: without its arguments if they are too long."""
    said = {
        "request": call.request,
        "request_args": call.arguments,
        "request_sent_at": stamp(call.sent),
        "lease_seconds": LEASE,
    }
    body = encode(said).encode("utf-8")
    if len(body) > MAX_BODY:
        del said["request_args"]
        body = encode(said).encode("utf-8")
    return body


def release(lock: threading.Lock) -> None:
    """Wakes the thread that waits for a lock."""
    try:
        lock.release()
    except RuntimeError:
        pass  # it is already awake
