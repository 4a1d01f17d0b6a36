"""Sends requests to one archive, from any thread, and repeats those that may be repeated."""

import os
import random
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple
from urllib.parse import urlencode

from oda_helper import _json, _models, _settings
from oda_helper._errors import PROBLEM, OdaError, Unreachable
from oda_helper._http import FAILURES, MAYBE, MAYBE_NEW, NOT_SENT, Answer, Client, TooLong, describe

TRIES = 4
FIRST_PAUSE, LAST_PAUSE = 0.1, 10.0
CONNECT_TIMEOUT = 10.0
ANSWER_TIMEOUT = 90.0  # the report of a night may take a minute
MAX_IDLE = 8  # connections that are kept

# What an answer is: a list, or an object that has members of these types.
Shape = Optional[Dict[str, type]]
LIST: Shape = None
DOCUMENT: Shape = {"metadata": dict}

Query = Sequence[Tuple[str, str]]

_NOT_NOW = (408, 425, 429, 502, 503, 504)


class Sender:
    """Sends requests to the archive at a URL that ends in /api/v1."""

    def __init__(
        self,
        url: str,
        user: Callable[[], Optional[str]],
        token: Callable[[], Optional[str]],
    ):
        self.url = url
        self.user = user
        self._token = token
        self._idle: List[Client] = []
        self._process = os.getpid()

    def read(self, shape: Shape, path: str, query: Query = (), tries: int = TRIES) -> Any:
        """The JSON that the archive answers."""
        return self.get(shape, path, query, tries)[0]

    def get(
        self, shape: Shape, path: str, query: Query = (), tries: int = TRIES
    ) -> Tuple[Any, Answer]:
        """The JSON that the archive answers, and the answer itself."""
        answer = self.send("GET", _with(path, query), tries=tries)
        return self._json(answer, shape), answer

    def text(self, path: str, query: Query = ()) -> str:
        """What the archive answers for people."""
        answer = self.send("GET", _with(path, query), headers={"Accept": "text/plain"})
        return answer.body.decode("utf-8")

    def store(
        self,
        method: str,
        path: str,
        document: Any,
        key: Optional[str] = None,
        shape: Shape = DOCUMENT,
    ) -> Any:
        """Sends a document and returns what is stored. With a key it may be repeated."""
        body = _models.write(document)
        if key is not None:
            answer = self.send(method, path, body, {"Idempotency-Key": key})
        else:
            answer = self.send(method, path, body, once=True)
        return self._json(answer, shape, MAYBE if key is None else MAYBE_NEW)

    def _json(self, answer: Answer, shape: Shape, maybe: str = "") -> Any:
        try:
            found, why = _json.read(answer.body), "The answer does not come from an archive."
        except (ValueError, RecursionError):
            found, why = None, "The answer is not JSON."
        if isinstance(found, dict):
            if shape and all(isinstance(found.get(name), kind) for name, kind in shape.items()):
                return found
        elif isinstance(found, list) and not shape:
            return found
        raise OdaError(self._wrong_address(why) + maybe, answer.status)

    def send(
        self,
        method: str,
        path: str,
        body: Optional[bytes] = None,
        headers: Optional[Dict[str, str]] = None,
        once: bool = False,
        tries: int = TRIES,
    ) -> Answer:
        """Sends a request until it succeeds; raises OdaError if it does not.

        What must be sent once is repeated only if it cannot have reached the archive.
        """
        try:
            self._token()
        except (OSError, ValueError) as problem:
            raise OdaError("There is no token to send: %s." % problem) from None
        maybe = ""  # set when it may have been stored without an answer that says so
        for attempt in range(1, tries + 1):
            wait = FIRST_PAUSE * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
            try:
                answer = self._attempt(method, path, body, headers, once)
            except TooLong as problem:
                raise OdaError(
                    "%s. Read the records of a block with records()." % problem
                ) from None
            except FAILURES as problem:
                if body is not None and not isinstance(problem, NOT_SENT):
                    maybe = MAYBE if once else MAYBE_NEW
                if attempt == tries or once and maybe:
                    why = describe(problem) + _settings.default_hint(self.url)
                    text = "The archive at %s cannot be reached: %s." % (self.url, why)
                    raise Unreachable(text + maybe) from problem
            else:
                if answer.status == 200:
                    return answer
                error = answer.error()
                # A gateway may have given up waiting while the archive goes on. If the
                # archive itself answers, it says what was stored.
                if body is not None and answer.status >= 500 and _foreign(error):
                    maybe = MAYBE if once else MAYBE_NEW
                wait = max(wait, answer.retry_after or 0)
                if once or attempt == tries or answer.status not in _NOT_NOW or wait > LAST_PAUSE:
                    raise self._error(error, maybe, answer.headers.get("Link"))
            time.sleep(wait)
        raise AssertionError("unreachable")

    def _attempt(
        self,
        method: str,
        path: str,
        body: Optional[bytes],
        headers: Optional[Dict[str, str]],
        once: bool,
    ) -> Answer:
        client = self._take()
        if once:
            client.close()  # over a kept connection it might be sent twice
        answer = client.request(method, path, body, self.user(), headers)
        if len(self._idle) < MAX_IDLE and self._process == os.getpid():
            self._idle.append(client)
        else:
            client.close()
        return answer

    def _take(self) -> Client:
        """A connection that nobody uses now."""
        if self._process != os.getpid():  # the connections belong to the parent
            self.close()
            self._process = os.getpid()
        try:
            return self._idle.pop()
        except IndexError:
            return Client(self.url, CONNECT_TIMEOUT, ANSWER_TIMEOUT, self._token)

    def _error(self, error: OdaError, maybe: str, link: Optional[str] = None) -> OdaError:
        kind, text = type(error), error.detail
        if error.type == PROBLEM + "no-such-path" or _foreign(error):
            text = self._wrong_address(text)
        problem = kind(text + maybe, error.status, error.type, error.errors)
        problem._link = link
        return problem

    def _wrong_address(self, why: str) -> str:
        return (
            "%s is not the interface of an archive, or something in between answers instead. %s "
            "Give the address at which a browser shows the home page of the archive."
            % (self.url, why)
        )

    def close(self) -> None:
        """Closes the connections; the next request opens another."""
        idle, self._idle = self._idle, []
        for client in idle:
            client.close()

    __del__ = close


def _with(path: str, query: Query) -> str:
    return path + "?" + urlencode(query) if query else path


def fixed(token: str) -> Callable[[], Optional[str]]:
    """A function that returns a token that was given."""
    checked = _settings.usable_token(token, "the token")
    return lambda: checked or None


def passing(problem: OdaError) -> bool:
    """Whether the same request may succeed later, without anybody's help."""
    if isinstance(problem, Unreachable):
        return True
    status = problem.status or 0
    return status > 0 and _foreign(problem) or status in _NOT_NOW or status >= 500


def _foreign(problem: OdaError) -> bool:
    """Whether something else has answered instead of the archive."""
    return not (problem.type or "").startswith(PROBLEM)
