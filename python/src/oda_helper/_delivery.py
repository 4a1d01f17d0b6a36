"""Sends the records of one session to the archive, in order, each stored once.

Every record has a key, by which the archive knows it when it comes again; so a
batch whose answer was lost is simply sent again. Nothing is given up: what the
archive refuses for good is put aside in the session's folder.
"""

import json
import logging
import random
import time
from typing import Any, Dict, List, Optional

from ._http import FAILURES, Answer, Client, describe
from ._outbox import Line, Outbox

FIRST_DELAY, LAST_DELAY = 0.1, 5.0
UNKNOWN_DELAY = 30.0  # between tries where only a person can help
STEPS = 16  # requests for one session before the next has its turn
HURRIED_DELAY = 1.0  # between tries while the process waits to end

_log = logging.getLogger("oda_helper")


class Archive:
    """An archive at a URL: the way to it, and whether it is worth trying.

    All sessions for one archive share this, so that one that is away is tried
    once and not once for each of them.
    """

    def __init__(self, url: str):
        self.url = url
        self.client = Client(url)
        self.hurried = False
        self._away = False
        self._delay = FIRST_DELAY
        self._next = 0.0

    def wait(self) -> float:
        """Seconds until the next try."""
        return max(0.0, self._next - time.monotonic())

    def poke(self) -> None:
        """Makes the next try happen at once."""
        self._next = 0.0

    def bounded(self, delay: float) -> float:
        """The delay, or less where somebody waits."""
        return min(delay, HURRIED_DELAY) if self.hurried else delay

    def failed(self, why: str, retry_after: Optional[float], folder: str) -> None:
        """Notes that the archive is away; says so once."""
        if not self._away:
            self._away = True
            _log.warning(
                "The archive at %s cannot be used (%s). Records are kept in %s, and are sent "
                "when it is back.",
                self.url, why, folder,
            )  # fmt: skip
        delay = self._delay * random.uniform(0.5, 1.0)
        if retry_after is not None:
            delay = max(delay, min(retry_after, LAST_DELAY))
        self._next = time.monotonic() + self.bounded(delay)
        self._delay = min(2 * self._delay, LAST_DELAY)

    def worked(self) -> None:
        """Notes that the archive has answered."""
        if self._away:
            self._away = False
            _log.info("The archive at %s is back.", self.url)
        self._delay, self._next = FIRST_DELAY, 0.0


class Delivery:
    """The way of one session to the archive."""

    def __init__(self, outbox: Outbox, archive: Archive, settle=lambda records, size: None):
        self.outbox, self.archive = outbox, archive
        self.stuck = False  # only a person can help
        self._settle = settle
        self._next = 0.0
        self._said = ""
        self._singly = 0  # how many records of a refused batch go one by one
        self.creating = outbox.block.create is not None and not outbox.noted

    def steps(self, written: bool = False) -> Optional[float]:
        """Takes some steps, and gives what the last of them gave.

        While a session is being written there is nearly always something new, and
        sending it record by record would cost the script more than it gains.
        So it is enough to have caught up.
        """
        for _ in range(STEPS):
            wait = self.step()
            if wait != 0:
                return wait
            if written and not self.creating and not self.outbox.behind():
                return None
        return 0.0

    def step(self) -> Optional[float]:
        """Sends one request, if there is something to send and it is time.

        Gives None where there is nothing to do, else for how long to wait
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

    def _ask(self, method: str, path: str, body: Optional[bytes], headers=None) -> Optional[Answer]:
        """Sends a request. None says that the archive is away: try again."""
        block = self.outbox.block
        try:
            answer = self.archive.client.request(
                method, "/ebs/%s%s" % (block.eb_id, path), body, block.user, headers
            )
        except FAILURES as problem:
            self.archive.failed(describe(problem), None, self.outbox.folder)
            return None
        if answer.status == 429 or answer.status >= 500:
            why = "%d: %s" % (answer.status, answer.problem()["detail"])
            self.archive.failed(why, answer.retry_after, self.outbox.folder)
            return None
        self.archive.worked()
        return answer

    def _create(self) -> None:
        create = self.outbox.block.create
        body = json.dumps(create, ensure_ascii=False, separators=(",", ":")).encode()
        answer = self._ask("PUT", "", body, {"If-None-Match": "*"})
        if answer is None:
            return
        if answer.status == 412:
            answer = self._ask("GET", "", None)
            if answer is None:
                return
            if answer.status == 200 and not _holds(answer.body, create):
                self._stuck("another ExecutionBlock is stored under its identifier")
                return
        if answer.status == 200 and b'"eb_id"' in answer.body:
            self.outbox.created()
            self.creating = False
        elif answer.refused():
            self._stuck("the archive does not take its ExecutionBlock: " + answer.problem()["detail"])
        else:
            self._unknown(answer)

    def _send(self, batch: List[Line]) -> None:
        lines = batch[:1] if self._singly else batch
        answer = self._ask("POST", "/request_responses", _body(lines))
        if answer is None:
            return
        # Something between here and the archive may answer in its place.
        if answer.status == 200 and answer.body.count(b'"sequence"') == len(lines):
            self._passed(lines)
        elif answer.refused():
            if len(lines) > 1:
                self._singly = len(lines)
                return
            problem = answer.problem()
            self.outbox.refuse(lines[0], answer.status, problem["type"], problem["detail"])
            _log.error(
                "The archive refused a record of %s (%d: %s). It is kept in refused.log in %s.",
                self.outbox.block.eb_id, answer.status, problem["detail"], self.outbox.folder,
            )  # fmt: skip
            self._passed(lines)
        elif answer.status == 404 and self.outbox.block.create is not None:
            self.creating = True
            self._unknown(answer, again=1.0)
        else:
            self._unknown(answer)

    def _passed(self, lines: List[Line]) -> None:
        """Notes that lines are stored or put aside."""
        self._singly = max(0, self._singly - len(lines))
        self._said = ""
        # Counted first: who waits for the place to be passed finds it so.
        self._settle(len(lines), sum(len(line.text) + 1 for line in lines))
        self.outbox.done(len(lines))

    def _unknown(self, answer: Answer, again: float = UNKNOWN_DELAY) -> None:
        """Reports an answer that waiting alone may not cure, and waits."""
        why = "%d: %s" % (answer.status, answer.problem()["detail"])
        self._next = time.monotonic() + self.archive.bounded(again)
        if why != self._said:
            self._said = why
            _log.error(
                "The archive at %s does not take the records of %s (%s). They are kept in %s; "
                "trying again.",
                self.archive.url, self.outbox.block.eb_id, why, self.outbox.folder,
            )  # fmt: skip

    def _stuck(self, why: str) -> None:
        self.stuck = True
        _log.error("The records in %s cannot be sent: %s. They are kept.", self.outbox.folder, why)

    def _report_damage(self) -> None:
        if self.outbox.damaged:
            _log.error(
                "%d lines of the spool were damaged and are not sent. They are kept in "
                "damaged.log in %s.",
                self.outbox.damaged, self.outbox.folder,
            )  # fmt: skip
            self.outbox.damaged = 0


def _body(lines: List[Line]) -> bytes:
    records = b",".join([b'{"key":"%s","record":%s}' % (line.key, line.record) for line in lines])
    return b'{"records":[%s]}' % records


def _holds(text: bytes, create: Dict[str, Any]) -> bool:
    """Whether a stored document has every member of another.

    What the archive writes itself is left out.
    """
    try:
        stored = json.loads(text)
    except ValueError:
        return False
    return isinstance(stored, dict) and all(
        name in stored and _canonical(stored[name]) == _canonical(value)
        for name, value in create.items()
        if name not in ("metadata", "request_responses")
    )


def _canonical(value: Any) -> str:
    """The same text for the same value, however its numbers were spelt."""
    return json.dumps(json.loads(json.dumps(value), parse_int=float), sort_keys=True)
