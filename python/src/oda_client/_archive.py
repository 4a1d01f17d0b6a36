"""The operations on an archive."""

import logging
import operator
import random
import time
import uuid
from datetime import date, datetime, timedelta, timezone
from typing import (
    TYPE_CHECKING, Any, Callable, Iterator, List, Literal, Mapping, Optional, Sequence, Tuple, Union, overload,
)  # fmt: skip
from urllib.parse import parse_qsl, quote, urlsplit
from zoneinfo import ZoneInfo

from oda_helper import _json, _models, _settings
from oda_helper._errors import PROBLEM, Conflict, OdaError

from . import _sending, _sky, _tables, _words
from ._block import Block
from ._listing import Found, Listing, Progress, Tally
from ._sending import DOCUMENT, LIST, Sender, Shape
from ._types import (
    CallFilters, Document, Identifiers, Kind, Kinds, Level, ListFilters, Loss, SearchFilters,
    StatusClass, Subject, Time,
)  # fmt: skip

if TYPE_CHECKING:  # a checker knows it by itself; nothing else is installed
    from typing_extensions import Unpack

Query = List[Tuple[str, str]]

LIST_PAGE, SEARCH_PAGE, VERSION_PAGE, RECORD_PAGE, CHANGE_PAGE = 10000, 1000, 1000, 1000, 1000
STATUS_PAGE, CALL_PAGE = 1000, 1000
ANY: Any = object()  # a status that is not looked at
CHANGES: Shape = {"changes": list, "next": int}
STATUS: Shape = {"sequence": int, "version": int}
DAMAGED = PROBLEM + "damaged"
FOLLOW_WAIT = 20  # seconds that the archive may hold back an empty answer

_log = logging.getLogger("oda_client")


class Archive:
    """An observation archive.

    ``url`` is its address: of its home page, of its interface, or of any of its pages.
    Without it, it is the one in ODA_URL, or else http://127.0.0.1:8080. ``token`` is sent with
    each request; without it, ODA_TOKEN or the file in ODA_TOKEN_FILE, which is read for each.
    ``user`` is the acting user, where the archive does not know its callers; without it
    ODA_USER, or whoever works here.

    Kinds are sbds, sbis, ebs, prjs and notes. An identifier tells its kind by its prefix, unless
    ``kind`` is given. Documents are dicts. Lists ask for one page at a time as they are read,
    or for at most ``limit`` items; each loop reads them from the beginning. Requests that may be repeated are, a few times, if the
    archive is unavailable. An Archive can be used by several threads.

    What the archive refuses is an OdaError: NotFound, Conflict, Unreachable, or another one. What
    cannot be asked at all, such as an unknown kind, is a ValueError.
    """

    def __init__(
        self, url: Optional[str] = None, token: Optional[str] = None, *, user: Optional[str] = None
    ):
        if user is not None and _settings.usable_user(user) is None:
            raise OdaError("The user %r is not 1 to 256 printable characters." % user[:300])
        try:
            bearer = _settings.token if token is None else _sending.fixed(token)
        except ValueError as problem:
            raise OdaError("There is no token to send: %s." % problem) from None

        def acting() -> Optional[str]:
            return user or _settings.user(bool(token))

        self._sender = Sender(_address(url), acting, bearer)

    @property
    def url(self) -> str:
        """The address of the interface, which ends in /api/v1."""
        return self._sender.url

    def __repr__(self) -> str:
        return "Archive(%r)" % self.url

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections. A later call opens them again."""
        self._sender.close()

    # Documents.

    def get(
        self, id: str, *, version: Optional[int] = None, kind: Optional[Kind] = None
    ) -> Document:
        """The document as it is stored now, or a version of it."""
        path = self._path(id, kind)
        if version is not None:
            path += "/versions/%d" % operator.index(version)
        return self._document(path)

    def at(self, id: str, time: Time, *, kind: Optional[Kind] = None) -> Document:
        """The document as it was at a time, with the records that it then had."""
        if time is None:
            raise ValueError("There is no time; get() gives the document as it is now.")
        return self._document(self._path(id, kind), _words.query({"at": time}))

    def put(
        self, document: Mapping[str, Any], *, kind: Optional[Kind] = None, keep_records: bool = False
    ) -> Document:
        """Stores a document under its identifier and returns it as it is stored.

        Its metadata must be as it was read: if somebody else has stored or recorded since,
        Conflict says what differs, and nothing is stored. With ``keep_records``, the new
        version of an ExecutionBlock has the records of the stored one, however many were
        added meanwhile, and those in the document do not count.
        """
        collection, id = _words.identity(document, kind)
        path = target = self._path(id, collection)
        if keep_records:
            document = {
                name: value for name, value in document.items() if name != "request_responses"
            }
            target += "?records=keep"
        try:
            return _shown(collection, self._sender.store("PUT", target, document))
        except Conflict as conflict:
            try:
                stored = self._document(path)
            except OdaError:
                raise conflict from None
            conflict.stored = stored
            sent = _json.read(_models.write(document))
            conflict.differs = _words.differences(sent, stored)
            if keep_records:
                conflict.differs.pop("/request_responses", None)
            raise

    def post(self, kind: Kind, document: Optional[Mapping[str, Any]] = None) -> Document:
        """Stores a document under a new identifier and returns it as it is stored."""
        collection, key = _words.collection(kind), str(uuid.uuid4())
        return _shown(
            collection, self._sender.store("POST", "/" + collection, document or {}, key)
        )

    # Finding.

    def query(
        self, kind: Kind, *, limit: Optional[int] = None, **filters: "Unpack[ListFilters]"
    ) -> Listing[str]:
        """The identifiers of a kind, by user, by time of creation or of modification.

        ``user`` with ``user_match_type`` (equals, starts_with, contains), or
        ``created_after`` and ``created_before``, or ``last_modified_after`` and
        ``last_modified_before``. Times are datetimes, dates or texts.
        """
        path = "/" + _words.collection(kind)
        query = _words.query({**filters, "limit": min(limit or LIST_PAGE, LIST_PAGE)})
        return Listing(lambda: self._linked(path, query), limit, columns=_tables.IDENTIFIERS)

    @overload
    def search(
        self,
        kind: Kind,
        *,
        limit: Optional[int] = None,
        fields: Literal["summary"] = "summary",
        **filters: "Unpack[SearchFilters]",
    ) -> Found: ...

    @overload
    def search(
        self,
        kind: Kind,
        *,
        limit: Optional[int] = None,
        fields: Literal["id"],
        **filters: "Unpack[SearchFilters]",
    ) -> Listing[str]: ...

    @overload
    def search(
        self,
        kind: Kind,
        *,
        limit: Optional[int] = None,
        fields: Literal["document"],
        **filters: "Unpack[SearchFilters]",
    ) -> Listing[Document]: ...

    def search(
        self,
        kind: Kind,
        *,
        limit: Optional[int] = None,
        fields: Literal["summary", "id", "document"] = "summary",
        **filters: "Unpack[SearchFilters]",
    ) -> Union[Found, Listing[Any]]:
        """What is found by any combination of filters; without any, everything.

        ``q`` (words), ``telescope``, ``status``, ``class_`` (planned, running, done, failed,
        stopped), ``unobserved=True`` (SBDefinitions of which no run is done), ``ref`` with
        ``ref_version``, ``cone`` (right ascension,
        declination and radius in degrees, or a SkyCoord and a radius), ``where`` (a condition,
        or a list of them), those of query, and ``sort`` (-created, created, modified,
        -modified, id, -id). Notes are also found by ``about`` (an identifier), ``from_`` and
        ``to``, ``level``, ``tag`` and ``withdrawn=True`` (withdrawn ones as well). The items are summaries; with ``fields="document"`` the
        documents, with ``fields="id"`` the identifiers. What is damaged cannot be read: a
        warning names it, the others come first, and then an OdaError, unless ``limit`` others
        were found.
        """
        cone = _sky.cone(filters.get("cone"))
        wanted = {
            **filters,
            "cone": filters.get("cone") if cone is None else str(cone),
            "fields": fields,
            "limit": min(limit or SEARCH_PAGE, SEARCH_PAGE),
        }
        collection, query = _words.collection(kind), _words.query(wanted)

        def read() -> Iterator[Any]:
            return self._found(collection, fields, query)

        if fields == "summary":
            return Found(read, limit, cone)
        return Listing(read, limit, columns=_tables.IDENTIFIERS if fields == "id" else None)

    def _found(self, kind: str, fields: str, query: Query) -> Iterator[Any]:
        first: Optional[OdaError] = None
        damaged = 0
        while True:
            try:
                page = self._sender.read({"items": list}, "/%s/search" % kind, query)
            except OdaError as problem:
                rest = _linked_query(problem._link or "")
                if problem.type != DAMAGED or rest in ([], query):
                    raise
                _log.warning("%s The search goes on after it.", problem)
                first, damaged, query = first or problem, damaged + 1, rest
                continue
            for item in page["items"]:
                yield _shown(kind, item) if fields == "document" else item
            if page.get("next") is None:
                break
            query = [pair for pair in query if pair[0] != "cursor"] + [("cursor", page["next"])]
        if first is not None and damaged > 1:
            text = "%s So it is with %d more." % (first, damaged - 1)
            first = OdaError(text, first.status, DAMAGED)
        if first is not None:
            raise first

    # Statuses.

    def status(self, id: str, *, kind: Optional[Kind] = None) -> Document:
        """What came of an entity: the current status.

        It has ``status``, ``class``, ``reason``, ``at``, ``version``, ``previous``, ``by``, ``on``
        and ``sequence``, which is 0 as long as nobody has said a status; then it is that in
        the document.
        """
        found: Document = self._sender.read(STATUS, self._path(id, kind) + "/status")
        return found

    def say(
        self,
        id: str,
        status: str,
        *,
        reason: Optional[str] = None,
        class_: Optional[StatusClass] = None,
        at: Optional[Time] = None,
        version: Optional[int] = None,
        previous: Optional[str] = ANY,
        kind: Optional[Kind] = None,
    ) -> Document:
        """Says what came of an entity, and returns the entry.

        ``class_`` says what an unusual word means (planned, running, done, failed, stopped),
        ``at`` when that was, ``version`` which version is meant. If ``previous`` is
        given and is not the current status (None: there is none), Conflict says what is, and
        nothing is stored.
        """
        told = {"reason": reason, "class": class_, "version": version}
        body: Document = {name: each for name, each in told.items() if each is not None}
        body["status"] = status
        if at is not None:
            body["at"] = _words.written(at)
        if previous is not ANY:
            body["previous"] = previous
        path, key = self._path(id, kind) + "/status", str(uuid.uuid4())
        try:
            found: Document = self._sender.store("POST", path, body, key, STATUS)
        except Conflict as conflict:
            try:
                conflict.stored = self.status(id, kind=kind)
            except OdaError:
                raise conflict from None
            conflict.differs = {"/previous": (previous, conflict.stored["status"])}
            raise
        return found

    def statuses(
        self, id: str, *, limit: Optional[int] = None, kind: Optional[Kind] = None
    ) -> Listing[Document]:
        """What was said of an entity, newest first."""
        query = _words.query({"limit": min(limit or STATUS_PAGE, STATUS_PAGE)})
        path = self._path(id, kind) + "/status/history"
        return Listing(
            lambda: self._linked(path, query, "statuses"), limit, columns=_tables.STATUSES
        )

    # Notes.

    def note(
        self,
        text: str,
        *,
        about: Union[None, Subject, Sequence[Subject]] = None,
        level: Optional[Level] = None,
        telescope: Optional[str] = None,
        from_: Optional[Time] = None,
        to: Optional[Time] = None,
        lost: Union[None, float, timedelta] = None,
        lost_to: Optional[Loss] = None,
        tags: Optional[Sequence[str]] = None,
        urls: Optional[Sequence[str]] = None,
    ) -> Document:
        """Writes what there is to say about the night, and returns the note as it is stored.

        ``about`` is what the note is about: an identifier, or several; ``eb-…#17`` is the
        17th call of a block. ``level`` is info, warning or problem, which somebody should
        solve. Without ``from_`` it is about now, without ``to`` about one moment. ``lost`` is
        how much observing time was lost, in seconds, to weather, fault or other.
        """
        told = {"level": level, "telescope": telescope, "time_lost_type": lost_to}
        body: Document = {name: each for name, each in told.items() if each is not None}
        body["text"] = text
        if about is not None:
            several = [about] if isinstance(about, (str, Mapping)) else about
            body["about"] = [_words.subject(each) for each in several]
        for name, when in ("from", from_), ("to", to):
            if when is not None:
                body[name] = _words.written(when)
        if lost is not None:
            body["time_lost_s"] = lost.total_seconds() if isinstance(lost, timedelta) else lost
        for name, texts in ("tags", tags), ("urls", urls):
            if texts is not None:
                body[name] = list(texts)
        return self.post("notes", body)

    # History.

    def versions(
        self, id: str, *, limit: Optional[int] = None, kind: Optional[Kind] = None
    ) -> Listing[Document]:
        """The versions of an entity, newest first: who stored them, when, and their size."""
        query = _words.query({"limit": min(limit or VERSION_PAGE, VERSION_PAGE)})
        path = self._path(id, kind) + "/versions"
        return Listing(
            lambda: self._linked(path, query, "versions"), limit, columns=_tables.VERSIONS
        )

    def diff(
        self,
        id: str,
        from_version: Optional[int] = None,
        to_version: Optional[int] = None,
        *,
        kind: Optional[Kind] = None,
    ) -> List[Document]:
        """What changed between two versions, as a JSON Patch (RFC 6902).

        By default it is what the current version changed in the one before.
        """
        path, query = self._diff(id, from_version, to_version, kind)
        found: List[Document] = self._sender.read(LIST, path, query)
        return found

    def diff_text(
        self,
        id: str,
        from_version: Optional[int] = None,
        to_version: Optional[int] = None,
        *,
        kind: Optional[Kind] = None,
    ) -> str:
        """The same as diff, for people: a unified diff of the documents."""
        path, query = self._diff(id, from_version, to_version, kind)
        return self._sender.text(path, query)

    def _diff(
        self, id: str, start: Optional[int], end: Optional[int], kind: Optional[str]
    ) -> Tuple[str, Query]:
        return self._path(id, kind) + "/diff", _words.query({"from": start, "to": end})

    def provenance(self, id: str, *, kind: Optional[Kind] = None) -> Document:
        """Everything that can be reached over references: ``nodes``, ``edges``, ``truncated``."""
        path = self._path(id, kind) + "/provenance"
        found: Document = self._sender.read({"nodes": list}, path)
        return found

    def progress(self, id: str) -> Progress:
        """How far a Project is: the runs of each of its SBDefinitions.

        It is what the archive answers, with ``blocks``, ``sbds``, ``sbds_done`` and
        ``truncated``; its ``runs`` are a list, and a DataFrame with ``runs.to_pandas()``.
        """
        found: Document = self._sender.read({"blocks": list}, self._path(id, "prjs") + "/progress")
        return Progress(found)

    # Records, calls, changes and nights.

    def records(
        self, id: str, *, after: int = 0, limit: Optional[int] = None
    ) -> Listing[Document]:
        """The records of an ExecutionBlock, in order.

        Each has ``sequence``, ``recorded_at`` and the ``record`` itself.
        """
        path = self._path(id, "ebs") + "/request_responses"
        most = min(limit or RECORD_PAGE, RECORD_PAGE)
        return Listing(
            lambda: self._recorded(path, after, most), limit, _tables.record_row, _tables.RECORDS
        )

    def _recorded(self, path: str, after: int, most: int) -> Iterator[Document]:
        while True:
            query = _words.query({"after": after, "limit": most})
            page, answer = self._sender.get({"records": list}, path, query)
            yield from page["records"]
            if not answer.headers.get("Link") or not page["records"]:
                return
            after = page["records"][-1]["sequence"]

    def calls(
        self,
        *,
        limit: Optional[int] = None,
        sort: Literal["-sent", "sent"] = "-sent",
        **filters: "Unpack[CallFilters]",
    ) -> Listing[Document]:
        """Calls in all ExecutionBlocks, the latest first.

        One of ``outcome="failed"``, ``eb``, ``at`` (in progress then), or both ``from_`` and
        ``to`` must be there, so that the question has a bound. ``request`` is a function,
        or the end of its name after a dot; ``device``, ``telescope``, ``error`` (its type),
        ``q`` (words of request, device and error) and ``longer_than`` (seconds, or a
        timedelta) narrow it down. With ``sort="sent"``, the earliest call comes first.
        """
        most = min(limit or CALL_PAGE, CALL_PAGE)
        query = _words.query({**filters, "sort": sort, "limit": most})
        return Listing(
            lambda: self._linked("/calls", query, "calls"),
            limit,
            _tables.call_row,
            _tables.CALLS,
        )

    def tally(
        self,
        by: Literal["request", "error", "device", "telescope", "eb", "day"],
        **filters: "Unpack[CallFilters]",
    ) -> Tally:
        """How many of these calls there are, by what they have in common.

        The filters are those of ``calls``. It is what the archive answers, with ``tally``
        and ``complete``; its ``counts`` are a list, and a DataFrame with
        ``counts.to_pandas()``.
        """
        query = _words.query({**filters, "by": by})
        return Tally(self._sender.read({"tally": list}, "/calls/tally", query))

    def changes(
        self,
        after: Union[int, str] = 0,
        *,
        limit: Optional[int] = None,
        kind: Kinds = None,
        id: Identifiers = None,
    ) -> Listing[Document]:
        """What was stored, recorded and said after a position, up to now.

        ``kind`` and ``id`` are one or several to look for.
        """
        filters = _filters(kind, id)
        return Listing(lambda: self._changed(after, filters), limit, columns=_tables.CHANGES)

    def _changed(self, after: Union[int, str], filters: Query) -> Iterator[Document]:
        end = self._end()
        after = end if after == "now" else after
        while after != end:  # a position after the end is refused
            query = _words.query({"after": after, "limit": CHANGE_PAGE})
            page = self._sender.read(CHANGES, "/changes", query + filters)
            for change in page["changes"]:
                # Records before the end may have been joined by later ones.
                more = change.get("last_sequence", 0) - change.get("first_sequence", 0)
                if change["position"] - more > end:
                    return
                yield change
            if not int(after) < page["next"] < end:
                return
            after = page["next"]

    def _end(self) -> int:
        """The position at which the log of changes ends."""
        return int(self._sender.read(CHANGES, "/changes", [("after", "now")])["next"])

    def follow(
        self, after: Union[int, str] = "now", *, kind: Kinds = None, id: Identifiers = None
    ) -> Iterator[Document]:
        """The changes after a position, and then each new one as it comes, without end.

        It begins when it is called, not when it is first read. It waits for an archive that
        is unavailable or restarts, and goes on where it was: no change is missed, and none
        comes twice. It can be read further after an error or an interrupt. To go on in
        another process, give the ``position`` of the last change.
        """
        filters = _filters(kind, id)
        if after == "now":
            after = self._end()
        else:  # so that what cannot work is said at once
            query = _words.query({"after": after, "limit": 1})
            self._sender.read(CHANGES, "/changes", query + filters)
        return _Following(lambda after: self._followed(after, filters), int(after))

    def _followed(self, after: int, filters: Query) -> Iterator[Document]:
        pause, away = _sending.FIRST_PAUSE, False
        while True:
            query = _words.query({"after": after, "wait": FOLLOW_WAIT, "limit": CHANGE_PAGE})
            try:
                page = self._sender.read(CHANGES, "/changes", query + filters, tries=1)
            except OdaError as problem:
                if not _sending.passing(problem):
                    raise
                if not away:
                    away = True
                    _log.warning("%s Following goes on when it is back.", problem)
                time.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(2 * pause, _sending.LAST_PAUSE)
                continue
            pause, away = _sending.FIRST_PAUSE, False
            yield from page["changes"]
            after = page["next"]

    def night(
        self, date: Union[str, date], *, telescope: Optional[str] = None, zone: Optional[str] = None
    ) -> Document:
        """What was done in the night that began on a date: telescopes, blocks, calls, errors.

        A night lasts from noon to noon, in the time zone with an IANA name or without one in
        that of the telescope or of the archive. A datetime stands for the night in which it
        lies; without a zone of its own it is in UTC.
        """
        began = _night_of(date, zone) if isinstance(date, datetime) else date
        query = {"date": began, "telescope": telescope, "zone": zone}
        shape: Shape = {"calls": int, "zone": str}
        found: Document = self._sender.read(shape, "/night", _words.query(query))
        if isinstance(date, datetime) and zone is None:
            query["date"] = _night_of(date, found["zone"])  # only the archive knows its zone
            if query["date"] != began:
                found = self._sender.read(shape, "/night", _words.query(query))
        return found

    def running(
        self, id: Optional[str] = None, *, telescope: Optional[str] = None
    ) -> List[Document]:
        """The calls that have begun and not ended: in all blocks, in one, or of a telescope.

        ``silent`` says that nobody has heard of the call for longer than was promised: it
        hangs, or its program has died.
        """
        path = "/running" if id is None else self._path(id, "ebs") + "/running"
        query = _words.query({"telescope": telescope})
        found: List[Document] = self._sender.read({"running": list}, path, query)["running"]
        return found

    # Paths and pages.

    def _path(self, id: str, kind: Optional[str]) -> str:
        return "/%s/%s" % (_words.kind_of(id, kind), quote(id, safe=""))

    def _document(self, path: str, query: Sequence[Tuple[str, str]] = ()) -> Document:
        return _shown(path.split("/")[1], self._sender.read(DOCUMENT, path, query))

    def _linked(self, path: str, query: Query, member: Optional[str] = None) -> Iterator[Any]:
        """The items of all pages of a list, each of which has a link to the next."""
        while True:
            shape: Shape = LIST if member is None else {member: list}
            page, answer = self._sender.get(shape, path, query)
            yield from page if member is None else page[member]
            link = answer.headers.get("Link")
            if not link:
                return
            following = _linked_query(link)
            if following == query:
                raise OdaError(
                    "The archive at %s links a page to itself." % self.url, answer.status
                )
            query = following


def _night_of(time: datetime, zone: Optional[str]) -> date:
    """The date on which the night began in which a time lies."""
    if time.tzinfo is None:
        time = time.replace(tzinfo=timezone.utc)
    try:
        there = ZoneInfo(zone) if zone else timezone.utc
    except (KeyError, ValueError, OSError):
        text = "The time zone %r is not known here: give the date, or install tzdata." % zone
        raise ValueError(text) from None
    return (time.astimezone(there) - timedelta(hours=12)).date()


def _linked_query(link: str) -> Query:
    """The query of the address in a Link header."""
    return parse_qsl(urlsplit(link.partition("<")[2].partition(">")[0]).query)


class _Following(Iterator[Document]):
    """Changes after a position. Unlike a generator, it goes on after an error."""

    def __init__(self, begin: Callable[[int], Iterator[Document]], after: int):
        self._begin, self._after = begin, after
        self._changes = begin(after)

    def __next__(self) -> Document:
        try:
            change = next(self._changes)
        except BaseException:
            self._changes = self._begin(self._after)
            raise
        self._after = change["position"]
        return change


def _address(url: Optional[str]) -> str:
    """The address of the interface: of this URL, or without one as ODA_URL says."""
    try:
        found = _settings.archive_url() if url is None else _settings.normalise(url)
    except ValueError as problem:
        raise OdaError(
            "The address %s. Write it as http://archive.example:8080." % problem
        ) from None
    if found is None:
        raise OdaError("%s. Give the address of the archive, or set it." % _settings.url_fault())
    return found


def _shown(kind: str, document: Document) -> Document:
    """A document as callers get it."""
    return Block(document) if kind == "ebs" else document


def _filters(kind: Kinds, id: Identifiers) -> Query:
    kinds = [kind] if isinstance(kind, str) else kind or []
    ids = [id] if isinstance(id, str) else id
    return _words.query({"kind": [_words.collection(each) for each in kinds], "id": ids})
