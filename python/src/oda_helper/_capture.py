"""The decorator that records a function called on the telescope.

It stands between a script and the telescope, so one rule is above all others: what
the function returns or raises reaches the caller at once, as if there were no
decorator. Errors in recording go to the log.
"""

import functools
import inspect
import json
import logging
import os
import time
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, FrozenSet, NamedTuple, Optional

from . import _settings
from ._describe import arguments, cut, is_secret, text
from ._failure import failure
from ._process import recorder

_log = logging.getLogger("oda_helper")
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_warned = set()  # variables that this process has warned about


def capture_request_response(function: Callable) -> Callable:
    """Records every call of a function, with its arguments and its result.

    Works on functions, coroutine functions and methods. Generator functions are
    returned unchanged and not recorded, since they run later, when the caller
    iterates. The record goes to the ExecutionBlock in EB_ID of the archive at ODA_URL
    (or ODA_URI). If one of them is missing, a warning is logged once and the function
    is simply called.
    """
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(capture_request_response(function.__func__))
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return function
    name, secret = _name(function), _secret_positions(function)

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def recorded(*args, **kwargs):
            call = _begin(name, args, kwargs, secret)
            try:
                result = await function(*args, **kwargs)
            except BaseException as error:
                _end(call, error=error)
                raise
            _end(call, result)
            return result

    else:

        @functools.wraps(function)
        def recorded(*args, **kwargs):
            call = _begin(name, args, kwargs, secret)
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                _end(call, error=error)
                raise
            _end(call, result)
            return result

    return recorded


class _Call(NamedTuple):
    """A call that has begun."""

    eb_id: Optional[str]
    request: str
    arguments: Any
    sent: datetime
    clock: float


def _begin(name: str, args: tuple, kwargs: dict, secret: FrozenSet[int]) -> Optional[_Call]:
    """Notes the arguments now, since the function may change them."""
    try:
        if not _settings.archive_url():
            _warn("ODA_URL", _settings.url_fault())
            recorder().missed()
            return None
        described = arguments(args, kwargs, secret)
        return _Call(_settings.block_id(), name, described, _now(), time.perf_counter())
    except Exception:
        _log.exception("A call of %s is not recorded.", name)
        return None


def _end(call: Optional[_Call], result: Any = None, error: Optional[BaseException] = None) -> None:
    """Records a call that has ended."""
    if call is None:
        return
    try:
        # Use the monotonic clock: even if the clock is set back meanwhile, the
        # response must not precede the request.
        received = call.sent + timedelta(seconds=time.perf_counter() - call.clock)
        # A function may create the block that it is recorded in.
        eb_id, url = call.eb_id or _settings.block_id(), _settings.archive_url()
        if not eb_id or not url:
            found = os.environ.get("EB_ID", "")[:200]
            if not url:
                _warn("ODA_URL", _settings.url_fault())
            elif found:
                _warn("EB_ID", "EB_ID is not a valid identifier (it is %r)" % found)
            else:
                _warn("EB_ID", "EB_ID is not set")
            recorder().missed()
            return
        record = {"request": call.request, "request_args": call.arguments}
        if error is None:
            record.update(status="OK", response={"result": text(result)})
        else:
            record.update(status="ERROR", error=failure(error))
        record["request_sent_at"] = _stamp(call.sent)
        record["response_received_at"] = _stamp(received)
        recorder().record(eb_id, url, _encode(record).encode("utf-8"))
    except Exception:
        _log.exception("A call of %s is not recorded.", call.request)


def _name(function: Callable) -> str:
    """Module and name of a function or another callable."""
    module = getattr(function, "__module__", None) or type(function).__module__
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return cut("%s.%s" % (module, name), 1024)


def _secret_positions(function: Callable) -> FrozenSet[int]:
    try:
        names = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return frozenset()  # its signature is unknown
    return frozenset(
        i
        for i, found in enumerate(names)
        if found.kind in (found.POSITIONAL_ONLY, found.POSITIONAL_OR_KEYWORD)
        and is_secret(found.name)
    )


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _stamp(at: datetime) -> str:
    return at.isoformat(timespec="microseconds")[:-6] + "Z"


def _warn(variable: str, fault: str) -> None:
    """Warns about a variable, once per process."""
    if variable not in _warned:
        _warned.add(variable)
        _log.warning("%s. Calls are not recorded.", fault)
