"""Documents that come as objects: of pydantic, dataclasses, with to_dict, or with numbers of numpy.

No such library is imported: a model is known by its methods.
"""

import dataclasses
import logging
import sys
import typing
from datetime import date, datetime, time
from enum import Enum
from typing import Any, Dict, Mapping, Union

from . import _json

_log = logging.getLogger("oda_helper")


def to_json(model: Any) -> bytes:
    """The JSON text of a dict, a JSON text or a model."""
    if isinstance(model, str):
        return model.encode("utf-8")
    if isinstance(model, (bytes, bytearray)):
        return bytes(model)
    if hasattr(model, "model_dump_json"):  # pydantic 2
        return to_json(model.model_dump_json())
    if hasattr(type(model), "parse_obj") and hasattr(model, "json"):  # pydantic 1
        return to_json(model.json())
    return write(model)


def write(document: Any) -> bytes:
    """A document as JSON, also if it has dates, models or numpy's numbers in it.

    Raises TypeError if it has something that JSON has no form for, else ValueError.
    """
    try:
        return _json.write(document)
    except TypeError:
        pass
    try:
        return _json.write(_plain(document))
    except RecursionError:
        raise ValueError("the document contains itself, or is nested too deeply") from None


def like(model: Any, stored: bytes) -> Any:
    """What is stored, as an object of the model's class; as a dict if there is no class.

    It never raises: the document is stored, and nobody may be told otherwise.
    """
    document, kind = _json.read(stored), type(model)
    try:
        if hasattr(kind, "model_validate_json"):
            return kind.model_validate_json(stored)
        if hasattr(kind, "model_validate"):
            return kind.model_validate(document)
        if hasattr(kind, "parse_obj"):
            return kind.parse_obj(document)
        if hasattr(kind, "from_dict"):
            return kind.from_dict(document)
        if dataclasses.is_dataclass(model):
            return _made(kind, document)
    except Exception as problem:
        _log.warning(
            "The document is stored, but %s does not accept it as it is stored now (%s). "
            "It is returned as a dict.",
            kind.__name__, problem,
        )  # fmt: skip
    return document


def _plain(value: Any) -> Any:
    """A value of a document as JSON has it, and all of it."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return {_plain(key): _plain(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, (date, time)) and value == value:  # unlike the NaT of pandas
        return value.isoformat()
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.generic, numpy.ndarray)):
        return _numbers(value, numpy)
    if hasattr(value, "model_dump"):
        return _plain(value.model_dump(mode="json"))
    if hasattr(value, "to_dict"):
        return _plain(value.to_dict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    raise TypeError(
        "A document cannot hold a value of type %s: give a number or a text instead."
        % type(value).__name__
    )


def _numbers(value: Any, numpy: Any) -> Any:
    """A number of numpy, or the list that an array is."""
    if hasattr(value, "unit"):
        raise TypeError(
            "A document cannot hold a quantity: give its number, such as x.to_value('deg')."
        )
    if isinstance(value, numpy.ndarray):
        # tolist() does not make plain values of times, objects and the longest numbers.
        if value.dtype.kind in "biufU" and value.dtype.char != "g":
            return value.tolist()
        return [_plain(item) for item in value] if value.ndim else _plain(value[()])
    convert = {"b": bool, "i": int, "u": int, "f": float, "M": str}.get(value.dtype.kind)
    if convert is None or value != value and convert is str:
        raise TypeError("A document cannot hold %s %s." % (type(value).__name__, value))
    return convert(value)


def _made(hint: Any, value: Any) -> Any:
    """The value of a member whose type is known from its annotation."""
    if value is None:
        return None
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Union or type(hint).__name__ == "UnionType":  # X | Y, since Python 3.10
        chosen = [each for each in arguments if each is not type(None)]
        return _made(chosen[0], value) if len(chosen) == 1 else value
    if origin in (list, tuple) and isinstance(value, list) and arguments:
        return origin(_made(arguments[0], item) for item in value)
    if origin is dict and isinstance(value, dict):
        return {key: _made(arguments[1], member) for key, member in value.items()}
    if not isinstance(hint, type):
        return value
    if dataclasses.is_dataclass(hint) and isinstance(value, dict):
        return _object(hint, value)
    if issubclass(hint, datetime) and isinstance(value, str):
        # Before 3.11, Python does not know what Z means.
        return hint.fromisoformat(value[:-1] + "+00:00" if value.endswith("Z") else value)
    if issubclass(hint, date) and isinstance(value, str):
        return hint.fromisoformat(value)
    return hint(value) if issubclass(hint, Enum) else value


def _object(kind: Any, document: Dict[str, Any]) -> Any:
    hints = typing.get_type_hints(kind, vars(sys.modules[kind.__module__]))
    given: Dict[str, Any] = {}
    later: Dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name in document:
            made = _made(hints[field.name], document[field.name])
            (given if field.init else later)[field.name] = made
    found = kind(**given)
    for name, value in later.items():
        object.__setattr__(found, name, value)
    return found
