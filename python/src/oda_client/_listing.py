"""What lists are: read page by page, as often as somebody asks, and made into tables."""

from itertools import islice
from typing import Any, Callable, Dict, Generic, Iterator, Optional, TypeVar

from oda_helper._errors import OdaError

from . import _sky, _tables

T = TypeVar("T")


class Listing(Iterator[T], Generic[T]):
    """A list in the archive, which is asked for page by page as it is read.

    Each loop, each list() and each table reads it again from its beginning, as the archive
    has it then. After next(), they go on from there to the end. A reading holds one page.
    """

    def __init__(
        self,
        read: Callable[[], Iterator[T]],
        limit: Optional[int] = None,
        row: Callable[[T], Dict[str, Any]] = _tables.row,
        columns: Optional[_tables.Columns] = None,
    ):
        if limit is not None and limit < 0:
            raise ValueError("A limit is a number from 0, not %r." % (limit,))
        self._read, self._limit = read, limit
        self._row, self._columns = row, columns
        self._begun: Optional[_Reading[T]] = None  # by next()

    def __iter__(self) -> Iterator[T]:
        if self._begun is not None and not self._begun.ended:
            return self._begun
        return self._reading()

    def __next__(self) -> T:
        if self._begun is None:
            self._begun = self._reading()
        return next(self._begun)

    def _reading(self) -> "_Reading[T]":
        return _Reading(islice(self._read(), self._limit))

    def __repr__(self) -> str:
        return "<Listing: use it in a for loop, or list(...), .to_pandas(), .to_astropy()>"

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each item. Times are in UTC."""
        return _tables.to_pandas(map(self._row, self), self._columns)

    def to_astropy(self) -> Any:
        """An astropy Table with a row for each item. Times are in UTC."""
        return _tables.to_astropy(map(self._row, self), self._columns)


class Found(Listing[Dict[str, Any]]):
    """The summaries that a search has found.

    In a table of them, target, ra and dec are of the target nearest to the centre of the
    cone that was searched, or of the first one if there was no cone.
    """

    def __init__(
        self,
        read: Callable[[], Iterator[Dict[str, Any]]],
        limit: Optional[int],
        cone: Optional[_sky.Cone],
    ):
        super().__init__(
            read, limit, lambda item: _tables.summary_row(item, cone), _tables.SUMMARIES
        )
        self._cone = cone

    def targets(self) -> Listing[Dict[str, Any]]:
        """Every target of what was found, or those in the cone if the search has one.

        Each is a summary with ``target`` (its name), ``ra`` and ``dec`` in degrees instead
        of ``targets``.
        """
        return Listing(self._targets, columns=_tables.TARGETS, row=_tables.target_row)

    def _targets(self) -> Iterator[Dict[str, Any]]:
        for item in self:
            for target in item["targets"]:
                if self._cone is None or self._cone.holds(target):
                    yield _tables.with_target(item, target)


class Progress(Dict[str, Any]):
    """How far a Project is, as the archive has answered."""

    @property
    def runs(self) -> Listing[Dict[str, Any]]:
        """The runs of all SBDefinitions, in their order; one that has none is a row without.

        Each has the members of a run, and ``obs_block_id``, ``obs_block_name``, ``sbd_id``,
        ``sbd_name``, ``current_version``, ``done`` and ``changed_since_last_run``.
        """
        return Listing(self._runs, columns=_tables.RUNS)

    def _runs(self) -> Iterator[Dict[str, Any]]:
        for block in self["blocks"]:
            for each in block["sbds"]:
                whose = {
                    "obs_block_id": block["obs_block_id"],
                    "obs_block_name": block["name"],
                    "sbd_id": each["sbd_id"],
                    "sbd_name": each["name"],
                    "current_version": each["version"],
                    "sbd_done": each["done"],
                    "changed_since_last_run": each["changed_since_last_run"],
                }
                for run in each["runs"] or [dict.fromkeys(_RUN)]:
                    yield {**whose, **run}


_RUN = (
    "sbi_id", "eb_id", "sbd_version", "status", "class", "started", "ended", "busy_seconds",
    "calls", "failures",
)  # fmt: skip


class Tally(Dict[str, Any]):
    """How many calls there are, as the archive has answered."""

    @property
    def counts(self) -> Listing[Dict[str, Any]]:
        """The counts, those with the most failures first, or by date."""
        return Listing(lambda: iter(self["tally"]), None, _tables.count_row, _tables.COUNTS)


class _Reading(Iterator[T]):
    """One reading of a list.

    After an error or an interrupt it is not at its end, and cannot go on: it raises again.
    """

    def __init__(self, items: Iterator[T]):
        self._items = items
        self._broken = self.ended = False

    def __next__(self) -> T:
        if self._broken:
            raise OdaError("The rest of this list could not be read. Ask the archive for it again.")
        self._broken = True  # unless it gets there
        try:
            item = next(self._items)
        except StopIteration:
            self._broken, self.ended = False, True
            raise
        self._broken = False
        return item
