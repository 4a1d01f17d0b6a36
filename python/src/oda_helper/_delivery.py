"""Sends the records of one session to the archive, in order, each stored once.

Every record has a key, by which the archive recognises a repetition; so a batch whose
answer was lost is simply sent again. Nothing is dropped: what the archive refuses for
good is set aside in the session's folder.
"""

import http.client
import json
import logging
import random
import ssl
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _json, _settings
from ._http import ANSWER_TIMEOUT, FAILURES, Answer, Client, describe
from ._outbox import BATCH_RECORDS, Line, Outbox
from ._spool import RECORD, STATUS

FIRST_DELAY, LAST_DELAY = 0.1, 5.0
UNKNOWN_DELAY = 30.0  # between tries if only a person can help
STEPS = 16  # requests for one session before the next has its turn
HURRIED_DELAY = 1.0  # between tries while the process waits to end
LONG_OUTAGE = 60.0  # seconds; its end is worth a message that everybody sees
SLOW = 5.0  # seconds; after a slower request the next has fewer records
BROKEN = (  # and after these
    ConnectionResetError, BrokenPipeError, http.client.IncompleteRead,
    ssl.SSLEOFError, ssl.SSLZeroReturnError,
)  # fmt: skip

# Why nothing can be sent to an archive: its URL, what is wrong, and a folder.
AWAY = "The archive at %s is unavailable (%s). Records are kept in %s and sent when it is back."
DENIED = (
    "The archive at %s does not accept the token (%s). Records are kept in %s and sent when it "
    "does. Set a good one in ODA_TOKEN or in the file that ODA_TOKEN_FILE names."
)
WITHHELD = (
    "The archive at %s wants a token (%s). It gets none, since only the spool names it. Records "
    "are kept in %s. If it is your archive, set ODA_URL to its address."
)

_log = logging.getLogger("oda_helper")


class Archive:
    """The archive at a URL: its connection, and whether to try it now.

    All sessions for one archive share it, so that an unavailable archive is tried once
    and not once per session. A quiet one does not concern this process: its failures
    are not warnings. ``elsewhere`` counts records that others have sent to it; ``token``
    returns the token to send.
    """

    def __init__(
        self,
        url: str,
        elsewhere: Callable[[], int] = lambda: 0,
        token: Callable[[], Optional[str]] = _settings.token,
    ):
        self.url = url
        self.client = Client(url, answer=ANSWER_TIMEOUT, token=token)
        self.hurried = False
        self.quiet = False
        self.trusted = True  # it may get the token
        self._elsewhere = elsewhere
        self.trouble = ""  # why nothing can be sent; empty if it can
        self.sent = 0  # records that it has stored
        self.returned: Optional[float] = None  # when it was back; None once that was said
        self._since = 0.0  # when it was first unavailable
        self._before = 0  # records that were sent before
        self._said = ""  # the message about it, as it was logged
        self._delay = FIRST_DELAY
        self._next = 0.0

    def wait(self) -> float:
        """Seconds until the next try."""
        return max(0.0, self._next - time.monotonic())

    def poke(self) -> None:
        """Makes the next try happen at once."""
        self._next = 0.0

    def bounded(self, delay: float) -> float:
        """The delay, or less if a caller waits."""
        return min(delay, HURRIED_DELAY) if self.hurried else delay

    def level(self, level: int) -> int:
        """The level at which to log what goes wrong."""
        return logging.INFO if self.quiet else level

    def failed(self, text: str, why: str, retry_after: Optional[float], folder: str) -> None:
        """Notes that nothing can be sent, for one of the reasons above; logs it once."""
        if not self._said and self.returned is None:
            self._since, self._before = time.monotonic(), self._total()
        self.trouble = text % (self.url, why, folder)
        if self._said != text:
            self._said = text
            _log.log(self.level(logging.WARNING), text, self.url, why, folder)
        delay = self._delay * random.uniform(0.5, 1.0)
        if retry_after is not None:
            delay = max(delay, min(retry_after, LAST_DELAY))
        self._next = time.monotonic() + self.bounded(delay)
        self._delay = min(2 * self._delay, LAST_DELAY)

    def worked(self) -> None:
        """Notes that the archive has answered."""
        if self._said:
            self._said = self.trouble = ""
            self.returned = time.monotonic()
        self._delay, self._next = FIRST_DELAY, 0.0

    def _total(self) -> int:
        return self.sent + self._elsewhere()

    def caught_up(self) -> None:
        """Says once that what waited during an outage is sent."""
        if self.returned is None:
            return
        long = self.returned - self._since >= LONG_OUTAGE
        self.returned = None
        count = self._total() - self._before
        _log.log(
            self.level(logging.WARNING) if long else logging.INFO,
            "The archive at %s is back, %d record%s sent.",
            self.url, count, "" if count == 1 else "s",
        )  # fmt: skip


class Delivery:
    """Sends one session to the archive.

    ``settle`` is called for records that need no more waiting; ``stored`` is called with
    the identifier of the block when the archive has it. ``lag`` says how many records
    wait and for how long, which the archive is told; without it the archive is told nothing.
    """

    def __init__(
        self,
        outbox: Outbox,
        archive: Archive,
        settle: Callable[[int, int], None],
        stored: Callable[[str], None],
        lag: Optional[Callable[[], Tuple[int, float]]] = None,
    ):
        self.outbox, self.archive = outbox, archive
        self.stuck = False  # only a person can help
        self.trouble = ""  # why this session is not sent; empty if it is
        self.most = BATCH_RECORDS  # records in the next request
        self._settle, self._stored, self._lag = settle, stored, lag
        self._next = 0.0
        self._said = ""
        self.failed = 0.0  # when it was last tried in vain; 0 if that was not the last try
        self._slow = False  # the last request took long, or the line broke
        self.creating = outbox.block.create is not None and not outbox.noted

    def steps(self, written: bool = False) -> Optional[float]:
        """Takes several steps, and returns the result of the last.

        While a session is being written there is nearly always something new, and
        sending it record by record would cost the script more than it gains. So
        catching up once is enough.
        """
        self.outbox.look_again()  # it may have waited for a long time
        for _ in range(STEPS):
            wait = self.step()
            if wait != 0:
                return wait
            if written and not self.creating and not self.outbox.has_more():
                return None
        return 0.0

    def step(self) -> Optional[float]:
        """Sends one request, if there is something to send and it is time.

        Returns None if there is nothing to do, else how long to wait
        before the next step.
        """
        batch = self.outbox.batch()
        self._report_damage()
        if self.stuck or not (batch or self.creating):
            return None
        wait = max(self.archive.wait(), self._next - time.monotonic())
        if wait > 0:
            return wait
        if self.creating:
            self._create()
        else:
            self._send(batch)
        return self.archive.wait()

    def poke(self) -> None:
        """Makes the next try happen at once."""
        self._next = 0.0

    def _ask(
        self,
        method: str,
        path: str,
        body: Optional[bytes],
        headers: Optional[Dict[str, str]] = None,
    ) -> Optional[Answer]:
        """Sends a request. None means that the archive is unavailable: try again."""
        block = self.outbox.block
        begun = time.monotonic()
        try:
            answer = self.archive.client.request(
                method, "/ebs/%s%s" % (block.eb_id, path), body, block.user, headers
            )
        except FAILURES as problem:
            # Something on the way may cut off what is long, or what takes long.
            self._slow = time.monotonic() - begun >= SLOW or isinstance(problem, BROKEN)
            self.failed = time.monotonic()
            why = describe(problem) + _settings.default_hint(self.archive.url)
            self.archive.failed(AWAY, why, None, self.outbox.folder)
            return None
        self._slow = time.monotonic() - begun >= SLOW or answer.status == 408
        if answer.status == 401:
            self._unusable(answer, DENIED if self.archive.trusted else WITHHELD)
            return None
        if not answer.passing():
            self.archive.worked()
        elif answer.status not in (200, 413):
            self._unusable(answer)
            return None
        return answer

    def _unusable(self, answer: Answer, text: str = AWAY) -> None:
        """Notes an answer that may concern all sessions: not from the archive, or temporary.

        It may also concern this one only. Others have their turn before it is tried again.
        """
        self.failed = time.monotonic()
        why = "%d: %s" % (answer.status, answer.problem()["detail"])
        self.archive.failed(text, why, answer.retry_after, self.outbox.folder)

    def _create(self) -> None:
        block = self.outbox.block
        answer = self._ask("PUT", "", _json.write(block.create), {"If-None-Match": "*"})
        if answer is not None and answer.status == 412:
            answer = self._ask("GET", "", None)
            found = answer.document() if answer is not None and answer.status == 200 else {}
            if found.get("eb_id") == block.eb_id and not _holds(found, block.create or {}):
                self._stuck("another ExecutionBlock is stored under its identifier")
                return
        if answer is None:
            return
        if answer.status == 200 and answer.document().get("eb_id") == block.eb_id:
            self.archive.worked()
            self.outbox.created()
            # Report this first: a caller that waits for the block must find it
            # stored.
            self._stored(block.eb_id)
            self._said, self.trouble, self.failed = "", "", 0.0
            self.creating = False
        elif answer.refused():
            self._stuck("the archive refuses its ExecutionBlock: " + answer.problem()["detail"])
        elif answer.passing():
            self._unusable(answer)
        else:
            self._unknown(answer)

    def _send(self, batch: List[Line]) -> None:
        lines = _together(batch[: self.most])
        first = lines[0]
        headers = {}
        if first.sort == RECORD:
            if self._lag is not None:
                headers["Recorder-Lag"] = "records=%d, seconds=%.3f" % self._lag()
            answer = self._ask("POST", "/request_responses", _body(lines), headers)
        elif first.sort == STATUS:
            headers["Idempotency-Key"] = first.key.decode()
            answer = self._ask("POST", "/status", first.content, headers)
        else:
            self._stuck(
                "line %s is a %s, which this program does not know how to send; use a newer one"
                % (first.key.decode(), first.sort.decode())
            )
            return
        if answer is None:
            if self._slow:
                self.most = max(1, len(lines) // 2)
        elif answer.status == 200 and self._acknowledges(answer, lines):
            self.archive.worked()
            if not self._slow:
                self.most = min(2 * self.most, BATCH_RECORDS)
            self.archive.sent += len(lines)
            self._passed(lines)
        elif len(lines) > 1 and (answer.status == 413 or answer.refused()):
            # Too much at once, or one record is refused: halving finds it.
            self.most = len(lines) // 2
        elif answer.refused():
            problem = answer.problem()
            self.outbox.refuse(first, answer.status, problem["type"], problem["detail"])
            _log.error(
                "The archive refused a %s of %s (%d: %s). It is kept in refused.log in %s.",
                first.sort.decode(), self.outbox.block.eb_id, answer.status, problem["detail"], self.outbox.folder,
            )  # fmt: skip
            self._passed(lines)
        elif answer.unknown() and self.outbox.block.create is not None:
            self.creating = True
            self._unknown(answer, again=1.0)
        elif answer.passing():
            self._unusable(answer)
        else:
            self._unknown(answer)

    def _acknowledges(self, answer: Answer, lines: List[Line]) -> bool:
        """Whether this is the archive's answer to these lines.

        A gateway may answer instead of the archive.
        """
        found = answer.document()
        if lines[0].sort == STATUS:
            return found.get("id") == self.outbox.block.eb_id and _stored(found)
        records = found.get("records")
        return isinstance(records, list) and len(records) == len(lines) and all(map(_stored, records))

    def _passed(self, lines: List[Line]) -> None:
        """Notes that lines are stored or set aside."""
        self._said, self.trouble, self.failed = "", "", 0.0
        # Count first: a caller that waits for this position must find it
        # passed.
        self._settle(len(lines), sum(len(line.text) + 1 for line in lines))
        self.outbox.done(len(lines))

    def _unknown(self, answer: Answer, again: float = UNKNOWN_DELAY) -> None:
        """Reports an answer that may need a person's help, and waits."""
        self.most = 1  # more would be sent in vain, too
        why = "%d: %s" % (answer.status, answer.problem()["detail"])
        if answer.denied():  # the next token may have another role
            again = min(again, LAST_DELAY)
        self._next = time.monotonic() + self.archive.bounded(again)
        if why != self._said:
            self._said = why
            self.trouble = (
                "The archive at %s refuses the records of %s (%s). They are kept in %s; "
                "trying again."
                % (self.archive.url, self.outbox.block.eb_id, why, self.outbox.folder)
            )
            _log.log(self.archive.level(logging.ERROR), "%s", self.trouble)

    def _stuck(self, why: str) -> None:
        self.stuck = True
        self.trouble = "The records in %s cannot be sent: %s. They are kept." % (
            self.outbox.folder,
            why,
        )
        _log.log(self.archive.level(logging.ERROR), "%s", self.trouble)

    def _report_damage(self) -> None:
        if self.outbox.damaged:
            _log.error(
                "%d lines of the spool were damaged and are not sent. They are kept in "
                "damaged.log in %s.",
                self.outbox.damaged, self.outbox.folder,
            )  # fmt: skip
            self.outbox.damaged = 0


def _body(lines: List[Line]) -> bytes:
    records = b",".join([b'{"key":"%s","record":%s}' % (line.key, line.content) for line in lines])
    return b'{"records":[%s]}' % records


def _together(lines: List[Line]) -> List[Line]:
    """The first lines that go in one request: records, or one line that is none."""
    for i, line in enumerate(lines):
        if line.sort != RECORD:
            return lines[: max(i, 1)]
    return lines


def _stored(answer: Any) -> bool:
    """Whether the archive says with which sequence it has stored something."""
    return isinstance(answer, dict) and isinstance(answer.get("sequence"), int)


def _holds(stored: Dict[str, Any], create: Dict[str, Any]) -> bool:
    """Whether a stored document has every member of another.

    Members that the archive writes itself are ignored.
    """
    return all(
        name in stored and _canonical(stored[name]) == _canonical(value)
        for name, value in create.items()
        if name not in ("metadata", "request_responses")
    )


def _canonical(value: Any) -> str:
    """The same text for the same value, however its numbers are spelt."""
    return json.dumps(json.loads(json.dumps(value), parse_int=float), sort_keys=True)
