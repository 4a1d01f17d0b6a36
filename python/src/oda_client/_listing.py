"""What lists are: iterators over all pages, which can become tables."""

from itertools import islice
from typing import Any, Callable, Dict, Generic, Iterator, Optional, TypeVar

from oda_helper._errors import OdaError

from . import _tables

T = TypeVar("T")


class Listing(Iterator[T], Generic[T]):
    """An iterator that asks the archive for page after page, as it is read.

    It holds one page. ``to_pandas`` and ``to_astropy`` read the rest of it into a table.
    After an error or an interrupt it is not at its end, and cannot go on: it raises again.
    """

    def __init__(
        self,
        items: Iterator[T],
        limit: Optional[int] = None,
        row: Callable[[T], Dict[str, Any]] = _tables.row,
        columns: Optional[_tables.Columns] = None,
    ):
        if limit is not None and limit < 0:
            raise ValueError("A limit is a number from 0, not %r." % (limit,))
        self._items = items if limit is None else islice(items, limit)
        self._row, self._columns = row, columns
        self._broken = False

    def __iter__(self) -> "Listing[T]":
        return self

    def __next__(self) -> T:
        if self._broken:
            raise OdaError("The rest of this list could not be read. Ask the archive for it again.")
        self._broken = True  # unless it gets there
        try:
            item = next(self._items)
        except StopIteration:
            self._broken = False
            raise
        self._broken = False
        return item

    def __repr__(self) -> str:
        return "<Listing: use it in a for loop, or list(...), .to_pandas(), .to_astropy()>"

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each item. Times are in UTC."""
        return _tables.to_pandas(map(self._row, self), self._columns)

    def to_astropy(self) -> Any:
        """An astropy Table with a row for each item. Times are in UTC."""
        return _tables.to_astropy(map(self._row, self), self._columns)
