"""The decorator that records a function called on the telescope.

It stands between a script and the telescope, so one rule is above all others: what
the function returns or raises reaches the caller at once, as if there were no
decorator. Errors in recording go to the log.
"""

import atexit
import functools
import inspect
import logging
import time
from datetime import timedelta
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Optional,
    Set,
    Tuple,
    TypeVar,
    overload,
)

from . import _settings
from ._call import Call, encode, now, stamp
from ._describe import MAX_ARGUMENTS, arguments, cut, text
from ._failure import failure
from ._process import recorder
from ._secrets import is_secret

_log = logging.getLogger("oda_helper")
_warned: Set[str] = set()  # variables that this process has warned about

F = TypeVar("F", bound=Callable[..., Any])


@overload
def capture_request_response(function: F) -> F: ...


@overload
def capture_request_response() -> Callable[[F], F]: ...


def capture_request_response(function: Any = None) -> Any:
    """Records every call of a function, with its arguments and its result.

    Works on functions, coroutine functions, generator functions of both kinds, and
    methods, with or without parentheses. A call of a generator function is recorded at its
    end. The record goes to the ExecutionBlock in EB_ID of the archive at ODA_URL (or ODA_URI),
    by default http://127.0.0.1:8080. Without EB_ID, a warning is logged once and the
    function is simply called.
    """
    if function is None:
        return capture_request_response
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(capture_request_response(function.__func__))
    name, secret = _name(function), _secret_positions(function)
    inside = _inside(function)
    recorded: Any

    if inspect.iscoroutinefunction(inside):

        @functools.wraps(function)
        async def recorded(*args: Any, **kwargs: Any) -> Any:
            call = _begin(name, args, kwargs, secret, goes_on=True)
            try:
                _go_on(call)
                result = await function(*args, **kwargs)
            except GeneratorExit:
                _closed(call)
                raise
            except BaseException as error:
                _end(call, error=error)
                raise
            _end(call, result)
            return result

    elif inspect.isgeneratorfunction(inside):

        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            call = _begin(name, args, kwargs, secret, goes_on=True)
            try:
                _go_on(call)
                result = yield from function(*args, **kwargs)
            except GeneratorExit:
                _closed(call)
                raise
            except BaseException as error:
                _end(call, error=error)
                raise
            _end(call, result)
            return result

    elif inspect.isasyncgenfunction(inside):

        @functools.wraps(function)
        async def recorded(*args: Any, **kwargs: Any) -> Any:
            call = _begin(name, args, kwargs, secret, goes_on=True)
            try:
                _go_on(call)
                items = function(*args, **kwargs)
                item = await items.__anext__()
                while True:
                    try:
                        sent = yield item
                    except GeneratorExit:
                        await items.aclose()
                        raise
                    except BaseException as thrown:
                        item = await items.athrow(thrown)
                    else:
                        item = await items.asend(sent)
            except StopAsyncIteration:
                _end(call)
            except GeneratorExit:
                _closed(call)
                raise
            except BaseException as error:
                _end(call, error=error)
                raise

    else:

        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            call = _begin(name, args, kwargs, secret)
            try:
                _go_on(call)
                result = function(*args, **kwargs)
            except BaseException as error:
                _end(call, error=error)
                raise
            _end(call, result)
            return result

    return recorded


class _Unended:
    """The result of a call that was left before its end."""

    def __init__(self, said: str):
        self._said = said

    def __repr__(self) -> str:
        return self._said


CLOSED = _Unended("<closed before its end>")
LEFT = _Unended("<not ended when the process ended>")


def _begin(
    name: str,
    args: Tuple[Any, ...],
    kwargs: Dict[str, Any],
    secret: FrozenSet[int],
    goes_on: bool = False,
) -> Optional[Call]:
    """Notes the arguments now, since the function may change them."""
    try:
        url = _settings.archive_url()
        if not url:
            _miss("ODA_URL", _settings.url_fault(), _settings.URL_ADVICE)
            return None
        described = arguments(args, kwargs, secret)
        return Call(_settings.block_id(), url, name, described, goes_on)
    except Exception:
        recorder().missed()
        _log.exception("A call of %s is not recorded.", name)
        return None


def _go_on(call: Optional[Call]) -> None:
    """Notes that a call goes on.

    Whatever interrupts the script from here on ends the call, so that none is noted for ever.
    """
    if call is not None:
        try:
            recorder().running.begun(call)
        except Exception:
            _log.exception("That a call of %s goes on is not said.", call.request)


def _end(call: Optional[Call], result: Any = None, error: Optional[BaseException] = None) -> None:
    """Records a call that has ended."""
    if call is None:
        return
    known = call.among.pop(id(call), None) is not None
    if not known and call.goes_on:
        return  # it was recorded when the process began to end
    kept = False
    try:
        # Use the monotonic clock: even if the clock is set back meanwhile, the
        # response must not precede the request.
        received = call.sent + timedelta(seconds=time.perf_counter() - call.clock)
        eb_id: Optional[str] = call.eb_id
        url: Optional[str] = call.url
        if not eb_id:  # a function may create the block that it is recorded in
            eb_id, url = _settings.block_id(), _settings.archive_url()
        if not eb_id or not url:
            if not url:
                _miss("ODA_URL", _settings.url_fault(), _settings.URL_ADVICE)
            else:
                _miss("EB_ID", _settings.block_fault(), _settings.BLOCK_ADVICE)
            return
        record: Dict[str, Any] = {"request": call.request, "request_args": call.arguments}
        if error is None:
            record.update(status="OK", response={"result": text(result)})
        else:
            record.update(status="ERROR", error=failure(error))
        record["request_sent_at"] = stamp(call.sent)
        record["response_received_at"] = stamp(received)
        kept = recorder().record(eb_id, url, encode(record).encode("utf-8"), key=call.key)
    except Exception:
        recorder().missed()
        _log.exception("A call of %s is not recorded.", call.request)
    finally:
        # In a forked child it is not known: its parent has announced it.
        if known and call.key is not None and not kept:
            recorder().running.withdraw(call.key)


def _closed(call: Optional[Call]) -> None:
    """Records a call whose caller wants no more of it, unless it is recorded already."""
    if call is not None and id(call) in call.among:
        _end(call, CLOSED)


def _end_all() -> None:
    """Records what has not ended when the process ends: later it would be too late."""
    for call in recorder().running.going_on():
        _end(call, LEFT)


# It runs before the recorder is closed, since that registered first.
atexit.register(_end_all)


def _inside(function: Any) -> Any:
    """What a call runs: of a partial, what it is of; of an object, its method."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _name(function: Callable[..., Any]) -> str:
    """Module and name of a function or another callable."""
    module = getattr(function, "__module__", None) or type(function).__module__
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return cut("%s.%s" % (module, name), 1024)


def _secret_positions(function: Callable[..., Any]) -> FrozenSet[int]:
    try:
        names = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return frozenset()  # its signature is unknown
    secret: Set[int] = set()
    for i, found in enumerate(names):
        if is_secret(found.name):
            if found.kind in (found.POSITIONAL_ONLY, found.POSITIONAL_OR_KEYWORD):
                secret.add(i)
            elif found.kind is found.VAR_POSITIONAL:
                secret.update(range(i, MAX_ARGUMENTS))
    return frozenset(secret)


def _miss(variable: str, fault: str, advice: str) -> None:
    """Counts a call that is not recorded, and says why once per process."""
    recorder().missed()
    if variable not in _warned:
        _warned.add(variable)
        _log.warning("%s. Calls are not recorded. %s", fault, advice)
