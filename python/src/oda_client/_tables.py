"""Makes tables of items, for those who have pandas or astropy."""

import json
import re
from datetime import datetime, timezone
from importlib import import_module
from typing import Any, Dict, Iterable, List, Optional

from ._block import failed
from ._sky import Cone

# What a column holds: time, whole, seconds, duration, degrees, truth or text. Others are kept as they are.
Columns = Dict[str, str]

_WITH_GAPS = {"whole": "Int64", "truth": "boolean"}  # what pandas calls them if some are missing
_UNITS = {"seconds": "s", "duration": "s", "degrees": "deg"}  # of columns of numbers

RECORDS: Columns = {
    "sequence": "whole",
    "request": "text",
    "status": "text",
    "failed": "truth",
    "request_sent_at": "time",
    "response_received_at": "time",
    "seconds": "seconds",
    "request_args": "any",
    "response": "any",
    "error": "text",
    "recorded_at": "time",
}

_MANAGED: Columns = {
    "version": "whole",
    "created_by": "text",
    "created_on": "time",
    "last_modified_by": "text",
    "last_modified_on": "time",
}

SUMMARIES: Columns = {
    "kind": "text",
    "id": "text",
    "name": "text",
    "telescope": "text",
    **_MANAGED,
    "targets": "text",
    "target": "text",
    "ra": "degrees",
    "dec": "degrees",
    "references": "text",
    "status": "text",
    "class": "text",
    "status_at": "time",
}

TARGETS: Columns = {name: holds for name, holds in SUMMARIES.items() if name != "targets"}

IDENTIFIERS: Columns = {"id": "text"}
VERSIONS: Columns = {**_MANAGED, "bytes": "whole", "records": "whole"}
CHANGES: Columns = {
    "position": "whole",
    "kind": "text",
    "id": "text",
    "change": "text",
    "version": "whole",
    "first_sequence": "whole",
    "last_sequence": "whole",
    "sequence": "whole",
    "status": "text",
    "class": "text",
    "at": "time",
    "current": "truth",
    "by": "text",
    "on": "time",
}
STATUSES: Columns = {
    "kind": "text",
    "id": "text",
    "sequence": "whole",
    "status": "text",
    "class": "text",
    "reason": "text",
    "at": "time",
    "version": "whole",
    "previous": "text",
    "by": "text",
    "on": "time",
}
RUNS: Columns = {
    "obs_block_id": "text",
    "obs_block_name": "text",
    "sbd_id": "text",
    "sbd_name": "text",
    "current_version": "whole",
    "sbd_done": "truth",
    "changed_since_last_run": "truth",
    "sbi_id": "text",
    "eb_id": "text",
    "sbd_version": "whole",
    "status": "text",
    "class": "text",
    "started": "time",
    "ended": "time",
    "busy_seconds": "seconds",
    "calls": "whole",
    "failures": "whole",
}

CALLS: Columns = {
    "at": "time",
    "eb_id": "text",
    "sequence": "whole",
    "request": "text",
    "sent_at": "time",
    "received_at": "time",
    "took": "duration",
    "failed": "truth",
    "error_type": "text",
    "error": "text",
    "device": "text",
    "telescope": "text",
    "by": "text",
}
COUNTS: Columns = {"key": "text", "calls": "whole", "failures": "whole", "took": "duration"}

_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(\.\d+)?\s*(Z|[+-]\d\d:?\d\d)?\Z", re.IGNORECASE
)


_EPOCH = datetime(1970, 1, 1)


def row(item: Any) -> Dict[str, Any]:
    """The row of an item that has no other form: its members, with its metadata among them."""
    if not isinstance(item, dict):
        return {"id": item}
    found = {name: value for name, value in item.items() if name != "metadata"}
    metadata = item.get("metadata")
    return {**found, **metadata} if isinstance(metadata, dict) else found


def record_row(item: Dict[str, Any]) -> Dict[str, Any]:
    """The row of a record."""
    record = item["record"]
    sent, received = (
        moment(record.get("request_sent_at")),
        moment(record.get("response_received_at")),
    )
    error = record.get("error")
    return {
        **{name: record.get(name) for name in RECORDS},
        "sequence": item["sequence"],
        "recorded_at": item["recorded_at"],
        "failed": failed(record),
        "seconds": (received - sent).total_seconds()
        if sent and received and received >= sent
        else None,
        "error": error.get("detail") if isinstance(error, dict) else error,
    }


def call_row(item: Dict[str, Any]) -> Dict[str, Any]:
    """The row of a call. Its time is when it was sent, else when it was answered."""
    error = item["error"] or {}
    return {
        **item,
        "at": item["sent_at"] or item["received_at"],
        "took": item["seconds"],
        "failed": item["outcome"] == "failed",
        "error_type": error.get("type"),
        "error": error.get("detail"),
    }


def count_row(item: Dict[str, Any]) -> Dict[str, Any]:
    """The row of a count of calls."""
    return {**item, "took": item["seconds"]}


def summary_row(item: Dict[str, Any], cone: Optional[Cone] = None) -> Dict[str, Any]:
    """The row of what a search has found, with the position of one target.

    It is the one nearest to the centre of the cone, or the first if there is no cone.
    """
    targets = item["targets"]
    chosen = min(targets, key=cone.separation) if cone and targets else (targets or [{}])[0]
    return {
        **target_row(with_target(item, chosen)),
        "targets": ", ".join(str(target.get("name") or "?") for target in targets),
    }


def with_target(item: Dict[str, Any], target: Dict[str, Any]) -> Dict[str, Any]:
    """A summary with one target instead of all."""
    found = {name: value for name, value in item.items() if name != "targets"}
    return {
        **found, "target": target.get("name"), "ra": target.get("ra"), "dec": target.get("dec")
    }  # fmt: skip


def target_row(item: Dict[str, Any]) -> Dict[str, Any]:
    """The row of a summary with one target."""
    references = ", ".join(str(reference.get("id")) for reference in item["references"])
    status = item.get("status") or {}
    said = {name: status.get(name) for name in ("status", "class")}
    return {**row(item), "references": references, **said, "status_at": status.get("at")}


def moment(value: Any) -> Optional[datetime]:
    """A time in a document, which is in UTC unless it says otherwise; None if it is none."""
    found = _TIME.match(value) if isinstance(value, str) else None
    if not found:
        return None
    day, clock, fraction, zone = found.groups()
    if len(clock) == 5:
        clock += ":00"
    zone = "+00:00" if zone in (None, "Z", "z") else zone[:3] + ":" + zone[-2:]
    try:
        at = datetime.fromisoformat(
            "%sT%s.%s%s" % (day, clock, (fraction or "")[1:7].ljust(6, "0"), zone)
        )
        return at.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None


def _library(name: str, package: str) -> Any:
    try:
        return import_module(name)
    except ImportError as problem:
        raise ImportError(
            "This table needs %s, which is not installed here (%s). Install it: pip install %s"
            % (package, problem, package)
        ) from None


def _gather(rows: Iterable[Dict[str, Any]], columns: Optional[Columns]) -> Dict[str, List[Any]]:
    """The values of each column, None for those that are missing."""
    found: Dict[str, List[Any]] = {name: [] for name in columns or ()}
    count = 0
    for each in rows:
        for name in each.keys() - found.keys() if columns is None else ():
            found[name] = [None] * count
        for name, values in found.items():
            values.append(each.get(name))
        count += 1
    return found


def to_pandas(rows: Iterable[Dict[str, Any]], columns: Optional[Columns]) -> Any:
    """A DataFrame of the rows."""
    pandas = _library("pandas", "pandas")
    kinds = {"whole": "int64", "truth": "bool", "any": object, **dict.fromkeys(_UNITS, "float64")}
    found = {}
    for name, values in _gather(rows, columns).items():
        holds = (columns or _MANAGED).get(name, "")
        if holds == "time":
            moments = pandas.Series([moment(each) for each in values], dtype=object)
            found[name] = pandas.to_datetime(moments, utc=True)
        elif holds == "duration":
            seconds = pandas.Series(values, dtype="float64")
            found[name] = pandas.to_timedelta(seconds, unit="s").dt.round("us")
        elif holds in _WITH_GAPS and None in values:
            found[name] = pandas.Series(values, dtype=_WITH_GAPS[holds])
        else:  # pandas knows what to do with texts, but not with none at all
            found[name] = pandas.Series(values, dtype=kinds.get(holds, None if values else object))
    return pandas.DataFrame(found)


def to_astropy(rows: Iterable[Dict[str, Any]], columns: Optional[Columns]) -> Any:
    """A Table of the rows, with units. What is missing is masked, or NaN among numbers."""
    table = _library("astropy.table", "astropy")

    def column(values: List[Any], kind: type, filler: Any) -> Any:
        missing = [each is None for each in values]
        filled = [filler if each is None else each for each in values]
        if any(missing) and kind is not float:
            return table.MaskedColumn(filled, mask=missing, dtype=kind)
        return table.Column(filled, dtype=kind)

    found = table.Table()
    for name, values in _gather(rows, columns).items():
        holds = (columns or _MANAGED).get(name, "")
        if holds == "time":
            found[name] = _times(values)
        elif holds == "whole":
            found[name] = column(values, int, 0)
        elif holds in _UNITS:
            found[name] = column(values, float, float("nan"))
            found[name].unit = _UNITS[holds]
        elif holds == "truth":
            found[name] = column(values, bool, False)
        else:
            found[name] = column([_text(each) for each in values], str, "")
    return found


def _text(value: Any) -> Optional[str]:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _times(values: List[Any]) -> Any:
    numpy, time = import_module("numpy"), import_module("astropy.time")
    moments = [moment(each) for each in values]
    missing = numpy.array([at is None for at in moments], dtype=bool)
    texts = [(at or _EPOCH).replace(tzinfo=None).isoformat() for at in moments]
    found = time.Time(texts, format="isot", scale="utc", precision=6)
    if missing.any():
        found[missing] = numpy.ma.masked
    return found
