"""The writing side of the spool: what a recorded call waits for.

A record is one write to a file that the operating system caches. It survives the end
of the process, even by kill -9, and is synced to disk in the background. There is no
network here, and nothing waits for a disk except under the policy "always".
"""

import errno
import itertools
import os
import secrets
import threading
import time
from collections import deque
from typing import Callable, Deque, List, Optional, Tuple

from . import _spool
from ._folder import Folder
from ._spool import Block

CLOSED = "closed"  # returned by append if the session accepts no more records

# How many moments of recording are remembered, to know how old the oldest record is.
MARKS, MARK_EVERY = 512, 0.05


class NotSynced(OSError):
    """A record is in the spool, but could not be synced to disk."""


class Session:
    """A session of this process: its folder, its lock and its newest segment.

    Signal handlers may record too, at any point, so the thread that holds the lock can
    take it again.
    """

    def __init__(self, spool: Folder, block: Block, limit: int, policy: str):
        self.block = block
        self.name = "%s.%s" % (block.eb_id, secrets.token_hex(8))
        self.folder = os.path.join(spool.path, self.name)
        self.closed = False
        self.segment = 0  # the newest; 0 before the first record
        self.recorded = 0  # records written
        self.settled = 0  # records stored or put aside
        self._key = self.name[-16:].encode()
        self._limit, self._policy = limit, policy
        self._lock = threading.RLock()
        self._busy = False
        self._interrupting: Deque[Tuple[bytes, bytes, int]] = deque()
        self._file: Optional[int] = None
        self._size = 0
        self._numbers = itertools.count(1)
        self._written = self._shipped = 0  # bytes
        self._marks: Deque[Tuple[int, float]] = deque()  # numbers of records, and when they came
        self._mark_every = MARK_EVERY
        self._oldest: Optional[float] = None  # when the oldest that waits came, as last seen
        self._failed = False  # the last write failed
        self._torn = False  # the newest segment must not be written to
        self._dirty = False
        self._fresh = True  # there are names and small files to sync
        self._syncing = threading.RLock()
        self._retired: List[int] = []
        # It appears complete and locked, so that nobody mistakes it for
        # abandoned.
        self.files = spool.make(_spool.COMING + self.name[-16:])
        self._guard = self._complete()

    def _complete(self) -> int:
        guard = None
        try:
            guard = _spool.take_lock(self.files)
            if guard is None:
                raise OSError(errno.EBUSY, "the new session %s is held" % self.files.path)
            # Sync in the background, as for records: a slow disk must not delay
            # the call that opens the session.
            _spool.replace(self.files, _spool.BLOCK, self.block.encode())
            # Sessions of one block are sent in order of this time; file times
            # are too coarse for two that are made at once.
            self.files.touch(_spool.BLOCK, time.time_ns())
            self.files.rename(self.name)
        except BaseException:
            self.files.remove()
            if guard is not None:
                os.close(guard)
            raise
        return guard

    def take(self) -> int:
        """A number for a line that is written later, or never."""
        return next(self._numbers)

    def append(
        self, content: bytes, sort: bytes = _spool.RECORD, number: int = 0
    ) -> Optional[str]:
        """Writes a line. Returns None, or why it was dropped, or CLOSED.

        Without a number that was taken before, it takes the next.
        """
        with self._lock:
            if self._busy:
                # A signal handler has interrupted the writing of another
                # line, which continues when the handler is done.
                self._interrupting.append((content, sort, number))
                return None
            why = self._append(content, sort, number)
            while self._interrupting:
                why = self._append(*self._interrupting.popleft()) or why
        if self._policy == "always" and why is None:
            try:
                self.sync()
            except OSError as problem:
                raise NotSynced(*problem.args) from problem
        return why

    def _append(self, content: bytes, sort: bytes, number: int) -> Optional[str]:
        self._busy = True
        try:
            return self._put(content, sort, number)
        except FileNotFoundError:
            self.closed = True  # the folder was removed
            return CLOSED
        except OSError as problem:
            self._failed = True
            return "the spool cannot be written: %s" % problem
        finally:
            self._busy = False

    def _put(self, content: bytes, sort: bytes, number: int) -> Optional[str]:
        if self.closed:
            return CLOSED
        line = _spool.line(self._key, number or self.take(), sort, content)
        waiting = max(0, self._written - self._shipped)
        if waiting + len(line) > self._limit:
            return "the spool is full: %d bytes wait" % waiting
        # After a failure, begin the next segment, so that the old one can be
        # removed once it is shipped.
        full = self._size >= _spool.SEGMENT_BYTES or self._failed and self._size
        if self._file is None or self._torn or full:
            self._rotate()
        self._write(line)
        self._failed = False
        self._size += len(line)
        self._written += len(line)
        self.recorded += 1
        self._mark()
        self._dirty = True
        return None

    def _mark(self) -> None:
        """Remembers roughly when the last record came; bounded, however many wait."""
        now = time.monotonic()
        if self._marks and now - self._marks[-1][1] < self._mark_every:
            return
        if len(self._marks) >= MARKS:
            self._marks = deque(list(self._marks)[::2])
            self._mark_every *= 2
        self._marks.append((self.recorded, now))

    def _write(self, line: bytes) -> None:
        file = self._file
        assert file is not None  # _put has opened it
        written = os.write(file, line)
        if written != len(line):
            try:
                # A part of the line was written: remove it.
                os.ftruncate(file, os.fstat(file).st_size - written)
            except OSError:
                self._torn = True  # nothing may be written after it
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _rotate(self) -> None:
        try:
            file = self.files.create(_spool.segment_name(self.segment + 1))
        except FileExistsError:  # made by a call that was interrupted, as by Ctrl-C
            self.segment += 1
            return self._rotate()
        before, self._file, self._size, self._torn = self._file, file, 0, False
        self.segment += 1
        self._fresh = True
        if before is not None:
            self._retired.append(before)

    def end(self) -> Tuple[int, int]:
        """Segment and offset after the last record."""
        with self._lock:
            if self._file is None or self._torn:
                return self.segment, self._size
            return self.segment, os.fstat(self._file).st_size

    def settle(self, records: int, size: int) -> None:
        """Notes that records were stored or put aside; called by one thread at a time.

        It takes no lock: a signal handler may have interrupted a recording, and wait for
        this.
        """
        self.settled += records
        self._shipped += size

    def lag(self) -> int:
        """How many records wait."""
        return max(0, self.recorded - self.settled)

    def age(self) -> float:
        """For how many seconds, roughly, the oldest of them has waited."""
        if self._lock.acquire(blocking=False):  # as for settle, do not wait
            try:
                if not self.lag():
                    self._marks.clear()
                    self._mark_every = MARK_EVERY
                while len(self._marks) > 1 and self._marks[1][0] <= self.settled + 1:
                    self._marks.popleft()
                self._oldest = self._marks[0][1] if self._marks else None
            finally:
                self._lock.release()
        oldest = self._oldest
        return 0.0 if oldest is None else max(0.0, time.monotonic() - oldest)

    def sync(self) -> None:
        """Syncs what is new to disk, as the policy says."""
        with self._syncing:  # what another thread syncs is not on disk before it is done
            self._sync()

    def _sync(self) -> None:
        with self._lock:
            if self.closed:
                return
            retired, self._retired = self._retired, []
            fresh, self._fresh = self._fresh, False
            # A copy, since the segment may be closed while it is synced.
            file = os.dup(self._file) if self._dirty and self._file is not None else None
            self._dirty = False
        try:
            if self._policy != "never":
                for descriptor in retired + ([] if file is None else [file]):
                    os.fsync(descriptor)
                if fresh:
                    self.files.sync(_spool.BLOCK)
                    self.files.sync()
                    assert self.files.within is not None
                    self.files.within.sync()
        except FileNotFoundError:
            pass  # everything has been shipped in the meantime
        except OSError:
            with self._lock:
                # Nobody can tell which part of the segment is on disk, not even
                # after a later success: the next record begins a new segment.
                self._torn, self._fresh = True, self._fresh or fresh
            raise
        finally:
            for descriptor in retired + ([] if file is None else [file]):
                os.close(descriptor)

    def close_at(self, position: Tuple[int, int]) -> bool:
        """Closes the session for writing if nothing was added after a position."""
        if not self._lock.acquire(blocking=False):
            return False  # somebody writes, or was interrupted in it
        try:
            if not self.closed and self.end() > position:
                return False
            self.closed = True
            return True
        finally:
            self._lock.release()

    def stop_now(self, before: Callable[[int], None]) -> bool:
        """Closes the session for writing, after a call with how many records wait in it.

        It does nothing if somebody writes: the writer may be interrupted by a signal
        handler that waits for the caller.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            before(self.lag())
            self.closed = True
            return True
        finally:
            self._lock.release()

    def stop(self) -> int:
        """Closes the session for writing; returns how many records wait in it."""
        with self._lock:
            self.closed = True
            return self.lag()

    def release(self) -> None:
        """Ends the work on the session; another process may take it over."""
        with self._lock:
            self.closed = True
            files = self._retired + [self._guard] + ([] if self._file is None else [self._file])
            self._retired, self._file, self._guard = [], None, -1
        for descriptor in files:
            if descriptor >= 0:
                os.close(descriptor)

    def abandon(self) -> None:
        """In a forked child: leaves the session to the parent.

        The lock belongs to the parent and to every copy of its descriptor, so the copy
        is closed. Do not wait: another thread of the parent may have held the lock of
        this object when the child was made.
        """
        self.closed = True
        files = self._retired + [self._guard, self._file]
        self._retired, self._guard, self._file = [], -1, None
        for descriptor in files:
            if descriptor is not None and descriptor >= 0:
                try:
                    os.close(descriptor)
                except OSError:
                    pass  # another thread had closed it just before
