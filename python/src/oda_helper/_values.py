"""The plain values of well-known types: what a person would write down for them.

Nothing is imported for this: a library that the program has not imported has no values
in it. A value that misbehaves counts as unknown.
"""

import sys
from datetime import date, time, timedelta
from enum import Enum
from typing import Any, Dict

MAX_ELEMENTS = 1000  # of an array that is given completely
FIRST_ELEMENTS = 20  # of a larger one

UNKNOWN = object()


def plain(value: Any) -> Any:
    """Something simpler that stands for the value, or UNKNOWN."""
    try:
        return _plain(value, type(value))
    except Exception:
        return UNKNOWN


def _plain(value: Any, kind: type) -> Any:
    if issubclass(kind, Enum):
        return value._value_
    if issubclass(kind, (date, time)):
        return value.isoformat()
    if issubclass(kind, timedelta):
        return value.total_seconds()
    if hasattr(kind, "__dataclass_fields__"):
        return _members(value, kind)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return dict(zip(kind._fields, tuple.__iter__(value)))
    pathlib = sys.modules.get("pathlib")
    if pathlib is not None and issubclass(kind, pathlib.PurePath):
        return str(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(kind, (numpy.generic, numpy.ndarray)):
        units = sys.modules.get("astropy.units")
        if units is not None and issubclass(kind, units.Quantity):
            return {"value": value.value, "unit": str(value.unit)}
        return _array(value) if issubclass(kind, numpy.ndarray) else _scalar(value, numpy)
    return UNKNOWN


def _members(value: Any, kind: type) -> Dict[str, Any]:
    # A field that its author keeps out of the repr may be a secret.
    fields = sys.modules["dataclasses"].fields(kind)
    return {field.name: getattr(value, field.name) for field in fields if field.repr}


def _scalar(value: Any, numpy: Any) -> Any:
    if isinstance(value, numpy.datetime64):
        return str(value)
    if isinstance(value, numpy.timedelta64):
        return float(value / numpy.timedelta64(1, "s"))
    found = value.item()
    return float(found) if isinstance(found, numpy.longdouble) else found


def _array(value: Any) -> Any:
    if value.size > MAX_ELEMENTS:
        first = value.flat[:FIRST_ELEMENTS]  # copies no more than these
        return {"shape": list(value.shape), "dtype": str(value.dtype), "first": _array(first)}
    if value.dtype.kind in "mM":  # times
        value = value.astype(str)
    return value.tolist()
