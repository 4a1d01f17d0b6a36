"""The reading side of the spool: which lines are next, and what happened to them.

An Outbox reads the lines of a session in order, in batches. It moves on only when
it is told that a batch is finished; until then it returns the same batch. A
damaged line is set aside and skipped.
"""

import logging
import os
import re
import time
import zlib
from typing import Callable, List, NamedTuple, Optional, Set, Tuple

from . import _spool
from ._folder import Folder
from ._spool import Block

BATCH_RECORDS = 1000
BATCH_BYTES = (1 << 20) - (16 << 10)  # leaves room for what surrounds the records
MAX_LINE = 64 << 20  # the largest body that an archive accepts by default

# A thread that runs Python code blocks the other threads of the process,
# including the script. After this many lines it lets them run.
_LINES_BEFORE_REST = 50
_REST = 0.0002

_SORT = re.compile(rb"[a-z]+\Z")

_log = logging.getLogger("oda_helper")


class Line(NamedTuple):
    """A complete line of a segment, and the position after it."""

    key: bytes
    sort: bytes  # RECORD, STATUS, or one that only a newer program knows
    content: bytes  # what is to be sent
    text: bytes
    end: Tuple[int, int]


class Outbox:
    """The lines of a session that are not shipped.

    ``writing`` returns the number of the segment that is being written, 0 before the
    first, and None if nobody writes: then a line without an end is cut off for good.
    """

    def __init__(self, files: Folder, block: Block, writing: Callable[[], Optional[int]]):
        self.files, self.folder, self.block = files, files.path, block
        self.name = os.path.basename(self.folder)
        self._key = self.name[-16:].encode() + b"-"
        self._writing = writing
        # Whether a position was saved, which also means that the archive has
        # the block.
        self.noted = True
        self.position = self._load()
        self.damaged = 0  # number of lines put aside by this object, until it is reported
        self.aside = 0  # number of damaged and refused ones
        self._aside = self._known_damage()
        self._batch: List[Line] = []
        self._more = False  # there was more when the batch was read

    def _load(self) -> Tuple[int, int]:
        try:
            segment, offset = map(int, self.files.read(_spool.SHIPPED, 64).split())
            if segment >= 1 and offset >= 0:
                return segment, offset
        except (OSError, ValueError):
            pass
        self.noted = False
        return 1, 0  # sending again is safe

    def _known_damage(self) -> Set[Tuple[bytes, ...]]:
        try:
            with open(self.files.open(_spool.DAMAGED), "rb") as file:
                return {tuple(text.split()[1:3]) for text in file if text.startswith(b"# ")}
        except OSError:
            return set()

    def batch(self) -> List[Line]:
        """The next lines, if there are any now."""
        if not self._batch:
            self._batch = self._read()
        return self._batch

    def has_more(self) -> bool:
        """Whether more was waiting when the last batch was read."""
        return bool(self._batch) or self._more

    def look_again(self) -> None:
        """Notes that more may have come since the batch was read."""
        self._more = self._more or bool(self._batch)

    def _read(self) -> List[Line]:
        segment, offset = self.position
        while True:
            # Ask before reading the segment: the answer may be outdated by
            # then, but a segment that it calls complete is complete.
            writing = self._writing()
            text = self._text(segment, offset, writing)
            end = text.rfind(b"\n") + 1
            if end:
                read_to = offset + len(text)
                lines, offset = self._split(segment, offset, text[:end])
                self._more = offset < read_to or len(text) >= BATCH_BYTES or segment != writing
                if lines:
                    return lines
            elif writing is not None and segment >= writing:
                return []
            elif text:
                self._put_aside(segment, offset, "the line is cut off", text)
                offset += len(text)
            else:
                following = [n for n in _spool.segments(self.files) if n > segment]
                if not following:
                    return []
                segment, offset = following[0], 0
            # All of it was damaged or sent. The next segment may still be empty,
            # so this is noted before there is something to send.
            self._move((segment, offset))

    def _text(self, segment: int, offset: int, writing: Optional[int]) -> bytes:
        """The bytes from there: at least one complete line, if there is one."""
        try:
            descriptor = self.files.open(_spool.segment_name(segment))
            with open(descriptor, "rb", buffering=0) as file:
                if offset > os.fstat(file.fileno()).st_size:
                    return b""
                file.seek(offset)
                text = file.read(BATCH_BYTES)
                while text and b"\n" not in text[-BATCH_BYTES:] and len(text) < MAX_LINE:
                    more = file.read(BATCH_BYTES)
                    if not more:
                        break
                    text += more
                return text
        except FileNotFoundError:
            if segment == writing:
                raise  # it was removed
            return b""

    def _split(self, segment: int, offset: int, text: bytes) -> Tuple[List[Line], int]:
        lines: List[Line] = []
        at = size = 0
        while at < len(text) and len(lines) < BATCH_RECORDS:
            end = text.index(b"\n", at)
            whole = text[at:end]
            if lines and size + len(whole) > BATCH_BYTES:
                break
            why, line = self._parse(whole, (segment, offset + end + 1))
            if line is None:
                self._put_aside(segment, offset + at, why, whole)
            else:
                lines.append(line)
                size += len(whole)
            at = end + 1
            if len(lines) % _LINES_BEFORE_REST == 0:
                time.sleep(_REST)
        return lines, offset + at

    def _parse(self, text: bytes, end: Tuple[int, int]) -> Tuple[str, Optional[Line]]:
        if text[8:9] != b" ":
            return "not a line of a spool", None
        if b"%08x" % zlib.crc32(text[9:]) != text[:8]:
            return "the checksum does not match", None
        key, sort, content = (text[9:].split(b" ", 2) + [b"", b""])[:3]
        number = key[len(self._key) :]
        if not key.startswith(self._key) or not number.isdigit() or number.startswith(b"0"):
            return "the key is not one of this session", None
        if not _SORT.match(sort):
            return "it does not say what it is", None
        if sort in (_spool.RECORD, _spool.STATUS) and not content.startswith(b"{"):
            return "the %s is not JSON" % sort.decode(), None
        return "", Line(key, sort, content, text, end)

    def _put_aside(self, segment: int, offset: int, why: str, text: bytes) -> None:
        place = (b"%d" % segment, b"%d" % offset)
        if place in self._aside:
            return  # it was put aside before the position could be saved
        self._keep(_spool.DAMAGED, "%d %d %s" % (segment, offset, why), text)
        self._aside.add(place)
        self.damaged += 1

    def refuse(self, line: Line, status: int, kind: str, detail: str) -> None:
        """Sets aside a line that the archive will never accept."""
        self._keep(_spool.REFUSED, "%d %s %s" % (status, kind, detail), line.text)

    def _keep(self, name: str, why: str, text: bytes) -> None:
        descriptor = self.files.extend(name)
        with open(descriptor, "wb") as file:
            comment = "# " + " ".join(why.split()) + "\n"
            file.write(comment.encode("utf-8", "replace") + text + b"\n")
            file.flush()
            os.fsync(descriptor)
        self.aside += 1

    def created(self) -> None:
        """Notes that the archive has the block."""
        self._move(self.position)

    def done(self, count: int) -> None:
        """Moves past the first lines of the batch: stored, or set aside."""
        end = self._batch[count - 1].end
        self._batch = self._batch[count:]
        self._move(end)

    def _move(self, position: Tuple[int, int]) -> None:
        self.position = position
        try:
            _spool.replace(self.files, _spool.SHIPPED, b"%d %d\n" % position)
        except OSError as problem:
            # The disk may be full. Without the note, records are only sent
            # again.
            _log.debug("%s: %s", self.folder, problem)
        for segment in _spool.segments(self.files):
            if segment < position[0]:
                self.files.unlink(_spool.segment_name(segment))

    def keeps(self) -> bool:
        """Whether there is something for a person to look at."""
        return any(self.files.has(name) for name in (_spool.DAMAGED, _spool.REFUSED))
