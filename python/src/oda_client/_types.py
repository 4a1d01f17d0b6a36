"""What callers may give, for checkers of types and editors."""

from datetime import date, datetime, timedelta
from typing import (
    Any, Dict, Literal, Mapping, Protocol, Sequence, SupportsFloat, Tuple, TypedDict, Union,
)  # fmt: skip

Document = Dict[str, Any]
Kind = Literal["sbds", "sbis", "ebs", "prjs", "notes", "sbd", "sbi", "eb", "prj", "note"]
Kinds = Union[None, Kind, Sequence[Kind]]
Identifiers = Union[None, str, Sequence[str]]

StatusClass = Literal["planned", "running", "done", "failed", "stopped"]
Level = Literal["info", "warning", "problem"]
Loss = Literal["weather", "fault", "other"]
Subject = Union[str, Mapping[str, Any]]


class AstropyTime(Protocol):
    """A Time of astropy, as far as it is needed here."""

    def to_datetime(self, timezone: Any = None) -> Any:
        """The time as a datetime."""


Time = Union[str, date, datetime, AstropyTime]
Angle = SupportsFloat  # degrees, or a quantity of astropy
Cone = Union[str, Tuple[Angle, Angle, Angle], Tuple[Any, Angle]]


class ListFilters(TypedDict, total=False):
    """What Archive.query takes. None is as good as nothing."""

    user: Union[None, str]
    user_match_type: Literal[None, "equals", "starts_with", "contains"]
    created_after: Union[None, Time]
    created_before: Union[None, Time]
    last_modified_after: Union[None, Time]
    last_modified_before: Union[None, Time]


class SearchFilters(ListFilters, total=False):
    """What Archive.search takes."""

    q: Union[None, str]
    telescope: Union[None, str]
    status: Union[None, str]
    class_: Union[None, StatusClass]
    unobserved: Literal[None, True]
    ref: Union[None, str]
    ref_version: Union[None, int]
    cone: Union[None, Cone]
    where: Union[None, str, Sequence[str]]
    about: Union[None, str]
    from_: Union[None, Time]
    to: Union[None, Time]
    level: Union[None, Level]
    tag: Union[None, str]
    withdrawn: Literal[None, True]
    sort: Literal[None, "created", "-created", "modified", "-modified", "id", "-id"]


class CallFilters(TypedDict, total=False):
    """What Archive.calls and Archive.tally take."""

    from_: Union[None, Time]
    to: Union[None, Time]
    at: Union[None, Time]
    outcome: Literal[None, "ok", "failed"]
    request: Union[None, str]
    device: Union[None, str]
    telescope: Union[None, str]
    eb: Union[None, str]
    error: Union[None, str]
    q: Union[None, str]
    longer_than: Union[None, float, timedelta]
