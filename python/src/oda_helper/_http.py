"""One connection to the archive, and what its answers mean.

A Client is used by one thread at a time. It keeps its connection open between
requests. If the archive has closed a kept connection meanwhile, it is opened again once;
this is safe, because everything sent over a kept connection may be sent twice. It follows
no redirects, so the token is sent to no other server.
"""

import base64
import http.client
import io
import logging
import socket
import ssl
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set
from urllib.parse import SplitResult, unquote, urlsplit

from . import _json, _settings
from ._errors import PROBLEM, OdaError, of_type
from ._visible import visible

CONNECT_TIMEOUT = 5.0
ANSWER_TIMEOUT = 30.0
MAX_ANSWER = 256 << 20
SLOWEST = 4 << 10  # bytes of an answer in a second

# What can go wrong between here and the archive.
FAILURES = (OSError, http.client.HTTPException, ValueError)
# After these a request cannot have arrived. After others it may be stored.
NOT_SENT = (ConnectionRefusedError, socket.gaierror, ssl.SSLCertVerificationError)
MAYBE = " It may or may not be stored: read it to find out."
MAYBE_NEW = " It may or may not be stored: look for it before you post it again."

# Problems with the body itself: it will never be accepted.
_FINAL = {
    PROBLEM + code
    for code in ("invalid-json", "body-too-large", "key-reused", "status-mismatch", "unknown-version")
}
_PASSING = (408, 425, 429)  # statuses below 500 that mean "not now"


_log = logging.getLogger("oda_helper")
_plain: Set[str] = set()  # the hosts that this has been said of


class _Timed(io.RawIOBase):
    """What a connection receives until a moment, however slowly it comes.

    A time-out of a socket begins again with each byte that is waited for.
    """

    def __init__(self, sock: socket.socket, raw: io.RawIOBase):
        self._sock, self._raw = sock, raw
        self.until = time.monotonic() + (sock.gettimeout() or ANSWER_TIMEOUT)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        left = self.until - time.monotonic()
        if left <= 0:
            raise socket.timeout("timed out")
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """An answer whose head takes no longer than the time-out of its connection."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any):
        super().__init__(sock, *args, **kwargs)
        self.timed = _Timed(sock, self.fp.detach())
        self.fp = io.BufferedReader(self.timed)


class TooLong(http.client.HTTPException):
    """An answer is longer than is read into memory."""


class Answer(NamedTuple):
    """An answer of the archive."""

    status: int
    body: bytes
    headers: http.client.HTTPMessage

    @property
    def retry_after(self) -> Optional[float]:
        """How many seconds to wait, if the archive says so."""
        return _seconds(self.headers.get("Retry-After"))

    def document(self) -> Dict[str, Any]:
        """The body as a JSON object, or empty if it is something else."""
        try:
            found = _json.read(self.body)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def problem(self) -> Dict[str, str]:
        """Type and detail of a problem, even if the body is not one."""
        found = self.document()
        kind = str(found.get("type") or "about:blank")
        detail = str(found.get("detail") or "")
        if not kind.startswith(PROBLEM):
            detail = self._not_an_archive(detail)
        for fault in faults(found)[:5]:
            if str(fault.get("detail")) not in detail:
                detail += " %s: %s" % (fault.get("pointer"), fault.get("detail"))
        return {"type": visible(kind), "detail": visible(detail[:2000])}

    def _not_an_archive(self, said: str) -> str:
        place = self.headers.get("Location")
        if place and 300 <= self.status < 400:
            return "It redirects to %s. Give that address instead." % place[:200]
        text = "The answer, with status %d, does not come from an archive" % self.status
        return "%s: %s" % (text, said) if said else text + "."

    def passing(self) -> bool:
        """Whether the same request may succeed later, without anybody's help.

        This is so for every answer that does not come from the archive itself.
        """
        later = self.status in _PASSING or self.status >= 500
        return later or not self.problem()["type"].startswith(PROBLEM)

    def refused(self) -> bool:
        """Whether the archive will never accept what was sent.

        Only the archive itself can say so, and only about the body: the user, the path
        and an incomplete transfer are not the fault of a record.
        """
        if not 400 <= self.status < 500:
            return False
        found = self.document()
        if found.get("type") == PROBLEM + "invalid-request":
            return any(str(fault.get("pointer")).startswith("/") for fault in faults(found))
        return str(found.get("type")) in _FINAL

    def denied(self) -> bool:
        """Whether it is about who sent the request, not about what was sent."""
        return self.status in (401, 403)

    def unknown(self) -> bool:
        """Whether the archive says that it does not have the entity."""
        return self.document().get("type") == PROBLEM + "not-found"

    def error(self) -> OdaError:
        """The problem as an exception."""
        problem = self.problem()
        kind = of_type(problem["type"])
        return kind(problem["detail"], self.status, problem["type"], faults(self.document()))


class Client:
    """Sends requests to the archive at a URL that ends in /api/v1.

    ``token`` returns the token to send, if there is one; it is asked for each request.
    """

    def __init__(
        self,
        url: str,
        connect: float = CONNECT_TIMEOUT,
        answer: float = ANSWER_TIMEOUT,
        token: Callable[[], Optional[str]] = _settings.token,
    ):
        parts = urlsplit(url)
        self._path = parts.path
        self._token = token
        self._through: Dict[str, str] = {}  # what a proxy must be told with each request
        self._before = ""  # what a proxy needs before the path
        self._host, self._port = parts.hostname, parts.port
        self._secure = parts.scheme == "https"
        self._connect_timeout, self._answer_timeout = connect, answer
        self._connection: Optional[http.client.HTTPConnection] = None
        self._context: Optional[ssl.SSLContext] = None

    def _say_plain(self) -> None:
        """Logs, once for each host, that others can read the token on its way."""
        host = self._host or ""
        if self._secure or host in _plain or _settings.loopback(host):
            return
        if len(_plain) < 16:
            _plain.add(host)
            _log.warning(
                "The token is sent to %s over plain http, where others can read it. Use https.",
                host,
            )

    def request(
        self,
        method: str,
        path: str,
        body: Optional[bytes] = None,
        user: Optional[str] = None,
        headers: Optional[Dict[str, Any]] = None,
    ) -> Answer:
        """Sends one request and reads its answer; raises one of FAILURES."""
        sent: Dict[str, Any] = {"Accept": "application/json"}
        if body is not None:
            sent["Content-Type"] = "application/json"
        if user:
            sent["X-Forwarded-User"] = user.encode("utf-8")
        token = self._token()
        if token:
            sent["Authorization"] = "Bearer " + token
            self._say_plain()
        sent.update(headers or {})
        kept = self._connection is not None
        try:
            return self._once(method, path, body, sent)
        except (ConnectionError, http.client.BadStatusLine):
            self.close()
            if not kept:
                raise
        except BaseException:
            self.close()
            raise
        try:
            return self._once(method, path, body, sent)
        except BaseException:
            self.close()
            raise

    def _once(
        self, method: str, path: str, body: Optional[bytes], headers: Dict[str, Any]
    ) -> Answer:
        connection = self._connection or self._open()
        connection.sock.settimeout(self._answer_timeout)
        try:
            connection.request(
                method, self._before + self._path + path, body, {**headers, **self._through}
            )
        except (BrokenPipeError, ConnectionResetError) as problem:
            # The archive may have answered before it received the whole body.
            try:
                response = connection.getresponse()
            except (OSError, http.client.HTTPException):
                raise problem from None
        else:
            response = connection.getresponse()
        text = _whole(response, self._answer_timeout)
        if response.will_close:
            self.close()
        return Answer(response.status, text, response.headers)

    def _open(self) -> http.client.HTTPConnection:
        host, port = self._host or "", self._port
        proxy = _settings.proxy(self._secure, host, port)
        near, at = (proxy.hostname or "", proxy.port or 80) if proxy else (host, port)
        if self._secure:
            if self._context is None:
                self._context = ssl.create_default_context()
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                near, at, timeout=self._connect_timeout, context=self._context
            )
        else:
            connection = http.client.HTTPConnection(near, at, timeout=self._connect_timeout)
        self._before, self._through = "", {}
        if proxy and self._secure:
            connection.set_tunnel(host, port or 443, _credentials(proxy))
        elif proxy:
            shown = "[%s]" % host if ":" in host else host
            self._before = "http://%s:%d" % (shown, port or 80)
            self._through = _credentials(proxy)
        connection.response_class = _Response
        self._connection = connection
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def close(self) -> None:
        """Closes the connection; the next request opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _credentials(proxy: SplitResult) -> Dict[str, str]:
    """The header with the user and password in the address of a proxy."""
    if not proxy.username:
        return {}
    pair = "%s:%s" % (unquote(proxy.username), unquote(proxy.password or ""))
    return {"Proxy-Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


def _whole(response: http.client.HTTPResponse, seconds: float) -> bytes:
    """The body of an answer, which may take some seconds, or longer if it is long."""
    assert isinstance(response, _Response)
    pieces: List[bytes] = []
    left = MAX_ANSWER
    response.timed.until = time.monotonic() + seconds
    while left > 0:
        piece = response.read(SLOWEST)
        if not piece:
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            return b"".join(pieces)
        pieces.append(piece)
        left -= len(piece)
        response.timed.until += len(piece) / SLOWEST
    raise TooLong("the answer is longer than %d MiB" % (MAX_ANSWER >> 20))


def faults(problem: Dict[str, Any]) -> List[Dict[str, Any]]:
    """The faults that a problem lists."""
    found = problem.get("errors")
    return [fault for fault in found if isinstance(fault, dict)] if isinstance(found, list) else []


def _seconds(text: Optional[str]) -> Optional[float]:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None


def describe(problem: BaseException) -> str:
    """Why there was no answer, in a few words."""
    if isinstance(problem, socket.timeout):
        return "it did not answer in time"
    if isinstance(problem, ssl.SSLCertVerificationError):
        return (
            "its certificate is not trusted (%s); name the file with the certificate of its "
            "authority in SSL_CERT_FILE" % problem.verify_message
        )
    if isinstance(problem, ssl.SSLError) and "WRONG_VERSION_NUMBER" in str(problem):
        return "it does not speak HTTPS; write its address with http://"
    if isinstance(problem, http.client.IncompleteRead):
        return "its answer was cut off"
    if isinstance(problem, http.client.BadStatusLine) and not isinstance(problem, ConnectionError):
        return "its answer is not HTTP: %.60r" % str(problem)
    return visible(str(problem)) or type(problem).__name__
