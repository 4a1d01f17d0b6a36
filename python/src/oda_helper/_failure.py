"""Describes an exception of a recorded function, within bounds.

The exception is only inspected: its text, its traceback and its causes. The output
resembles what Python prints, and never takes long: lines of source come from the cache
if they have been read before, and only for a few frames.
"""

import linecache
from types import TracebackType
from typing import Dict, List, Optional, Set

from ._describe import cut

MAX_DETAIL = 4096
MAX_STACKTRACE = 16 << 10
MAX_FRAMES = 20
MAX_CAUSES = 4

_CAUSE = "\nThe above exception was the direct cause of the following exception:\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n"


def failure(error: BaseException) -> Dict[str, str]:
    """The member "error" of a record."""
    try:
        trace = _stacktrace(error)
    except Exception as problem:
        trace = "(no stacktrace: %s)" % type(problem).__name__
    return {"detail": cut(detail(error), MAX_DETAIL), "stacktrace": trace}


def detail(error: BaseException) -> str:
    """Type and text of an exception."""
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ not in ("builtins", "__main__"):
        name = "%s.%s" % (kind.__module__, name)
    try:
        said = str(error)
    except Exception as problem:
        said = "(its text failed with %s)" % type(problem).__name__
    return "%s: %s" % (name, said) if said else name


def _stacktrace(error: BaseException) -> str:
    pieces: List[str] = []
    link = ""
    # The first frame is the decorator's, which is not interesting.
    trace = error.__traceback__ and error.__traceback__.tb_next
    seen: Set[int] = set()
    while error is not None and len(seen) < MAX_CAUSES and id(error) not in seen:
        seen.add(id(error))
        pieces.insert(0, _one(error, trace) + link)
        if error.__cause__ is not None:
            error, link = error.__cause__, _CAUSE
        elif error.__context__ is not None and not error.__suppress_context__:
            error, link = error.__context__, _CONTEXT
        else:
            break
        trace = error.__traceback__
    whole = "\n".join(pieces)
    if len(whole) > MAX_STACKTRACE:
        # The end matters most: it is where the exception was raised.
        whole = "...\n" + whole[-MAX_STACKTRACE:]
    return cut(whole, MAX_STACKTRACE + 16)


def _one(error: BaseException, trace: Optional[TracebackType]) -> str:
    lines = []
    while trace is not None:
        lines.append((trace.tb_frame.f_code, trace.tb_lineno, trace.tb_frame.f_globals))
        if len(lines) > 2 * MAX_FRAMES:
            del lines[MAX_FRAMES // 2]
        trace = trace.tb_next
    left_out = len(lines) > MAX_FRAMES
    if left_out:
        lines = lines[: MAX_FRAMES // 2] + lines[-MAX_FRAMES // 2 :]
    text = ["Traceback (most recent call last):"]
    for i, (code, number, variables) in enumerate(lines):
        if left_out and i == MAX_FRAMES // 2:
            text.append("  ...")
        text.append('  File "%s", line %d, in %s' % (code.co_filename, number or 0, code.co_name))
        source = linecache.getline(code.co_filename, number or 0, variables).strip()
        if source:
            text.append("    " + source[:200])
    text.append(cut(detail(error), MAX_DETAIL))
    return "\n".join(text)
