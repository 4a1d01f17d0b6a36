"""oda_client against a real archive."""

import contextlib
import io
import json
import os
import socket
import sqlite3
import subprocess
import threading
import time
import types
import unittest
import urllib.request
from datetime import date, datetime, timedelta, timezone
from unittest import mock

from oda_client import Archive, Block, Conflict, NotFound, OdaError, Unreachable, _archive, _sending
from oda_helper import _http, _json
from proxy import Proxy
from support import PATIENCE, Case, Server, binary, free_port, has, needs, wait_until
from test_delivery import PAGE, Gateway, problem

CALLS = [
    {"request": "observe.configure", "status": "OK", "request_sent_at": "2026-03-01T21:04:05Z", "response": {"result": "'done'"}},
    {"request": "observe.scan", "status": "ERROR", "error": {"detail": "no <beam>"},
     "request_sent_at": "2026-03-01T21:04:06Z", "response_received_at": "2026-03-01T21:04:09.5Z"},
]  # fmt: skip


class ClientCase(Case):
    def setUp(self):
        super().setUp()
        self.archive = Archive(self.server.url)
        self.addCleanup(self.archive.close)

    def send(self, method, path, body):
        client = _http.Client(self.server.url + "/api/v1")
        self.addCleanup(client.close)
        self.assertEqual(client.request(method, path, body).status, 200)


class Notes(ClientCase):
    def test_are_written_found_and_resolved(self):
        note = self.archive.note(
            "Receptor 17 is noisy\n\nagain", about=["eb-notes#17", "sbds/M51@2", {"kind": "prjs", "id": "prj-x"}],
            level="problem", telescope="ska_notes", from_=datetime(2026, 3, 1, 21, 10), to="2026-03-01T21:50:00Z",
            lost=timedelta(minutes=40), lost_to="fault", tags=["receptor"], urls=["https://example.org/REC-17"],
        )  # fmt: skip
        self.assertEqual(note["about"], [
            {"kind": "ebs", "id": "eb-notes", "sequence": 17}, {"kind": "sbds", "id": "M51", "version": 2}, {"kind": "prjs", "id": "prj-x"},
        ])  # fmt: skip
        self.assertEqual((note["from"], note["time_lost_s"]), ("2026-03-01T21:10:00Z", 2400))
        plain = self.archive.note("wind", telescope="ska_notes", lost=60)
        found = lambda **filters: [each["id"] for each in self.archive.search("notes", telescope="ska_notes", sort="created", **filters)]  # noqa: E731
        self.assertEqual(found(), [note["note_id"], plain["note_id"]])
        self.assertEqual(found(about="eb-notes"), [note["note_id"]])
        self.assertEqual(found(level="problem", tag="receptor"), [note["note_id"]])
        self.assertEqual(found(from_="2026-03-01", to=datetime(2026, 3, 2)), [note["note_id"]])
        unresolved = lambda: next(iter(self.archive.search("notes", about="eb-notes")))["unresolved"]  # noqa: E731
        self.assertTrue(unresolved())
        self.archive.say(note["note_id"], "Resolved")
        self.assertFalse(unresolved())
        self.archive.put({**plain, "withdrawn": True})
        self.assertEqual(found(), [note["note_id"]])
        self.assertEqual(found(withdrawn=True), [note["note_id"], plain["note_id"]])
        self.assertEqual(self.archive.get(note["note_id"])["text"], note["text"])

    def test_that_make_no_sense_are_refused(self):
        for words, ask in [
            ("does not tell what it is of", lambda: self.archive.note("x", about="M51")),
            ("A note is about an identifier", lambda: self.archive.note("x", about=[5])),
        ]:
            with self.assertRaisesRegex(ValueError, words):
                ask()
        with self.assertRaisesRegex(OdaError, "before it begins"):
            self.archive.note("x", from_="2026-03-02", to="2026-03-01")


class Documents(ClientCase):
    def test_are_created_read_changed_and_stored_again(self):
        for kind, field in (("sbds", "sbd_id"), ("sbi", "sbi_id"), ("ebs", "eb_id"), ("prj", "prj_id")):
            with self.subTest(kind):
                made = self.archive.post(kind, {"name": "a"})
                read = self.archive.get(made[field])
                self.assertEqual(read, made)
                read["name"] = "b"
                stored = self.archive.put(read)
                self.assertEqual((stored["name"], stored["metadata"]["version"]), ("b", 2))
                self.assertEqual(self.archive.get(made[field], version=1), made)
                for wrong in (1.9, "1"):
                    self.assertRaises(TypeError, self.archive.get, made[field], version=wrong)
                self.assertRaises(ValueError, self.archive.at, made[field], None)

    def test_change_only_where_they_are_changed(self):
        odd = b'{"f":0.35e9,"n":[1.10,123456789012345678901234567890.123456789,1e400,-0.0,-0],"s":"\\u00e9","prj_id":"prj-odd"}'
        self.send("PUT", "/prjs/prj-odd", odd)
        read = self.archive.get("prj-odd")
        self.assertEqual((read["f"], read["n"][0]), (0.35e9, 1.1))
        json.dumps(read["f"])
        read["name"] = "x"
        self.archive.put(read)
        self.assertEqual([each["path"] for each in self.archive.diff("prj-odd") if "metadata" not in each["path"]], ["/name"])

    def test_may_have_the_numbers_of_numpy_in_them(self):
        numpy = needs("numpy")
        odd = {
            "gain": numpy.float32(0.5), "beams": numpy.int64(7), "on": numpy.bool_(True), "f": _json.read("0.35e9"),
            "grid": numpy.arange(1500).reshape(2, 750), "long": numpy.longdouble(1.5), "longs": numpy.ones(1, numpy.longdouble),
            "masked": numpy.ma.array([1, 2], mask=[True, False]), "one": numpy.array(3.5), "mixed": numpy.array(["a", None, numpy.int8(1)]),
            "at": numpy.datetime64("2026-03-01T21:04:05.123456789"), "days": numpy.array(["2026-03-01"], "datetime64[D]"),
            "by_beam": {numpy.int16(5): numpy.uint8(1)},
        }  # fmt: skip
        want = {
            "gain": 0.5, "beams": 7, "on": True, "f": 0.35e9, "grid": [list(range(750)), list(range(750, 1500))], "long": 1.5, "longs": [1.0],
            "masked": [None, 2], "one": 3.5, "mixed": ["a", None, 1], "at": "2026-03-01T21:04:05.123456789", "days": ["2026-03-01"],
            "by_beam": {"5": 1},
        }  # fmt: skip
        stored = self.archive.put(types.MappingProxyType({"sbd_id": "sbd-numpy", **odd}))
        self.assertEqual({name: stored[name] for name in want}, want)
        self.assertEqual(stored["f"].spelling, "0.35e9")
        self.assertEqual(self.archive.post("prjs", odd)["gain"], 0.5)
        Archive(self.server.url, user="john").put({**stored, "gain": 2})
        with self.assertRaises(Conflict) as caught:
            self.archive.put({**stored, **odd})
        self.assertEqual([place for place in caught.exception.differs if "metadata" not in place], ["/gain"])

    def test_may_not_have_what_no_document_can_hold(self):
        cases = [(object(), TypeError), (timedelta(1), TypeError), ({1, 2}, TypeError), (1j, TypeError), (float("nan"), ValueError)]
        if has("numpy"):
            numpy = needs("numpy")
            cases += [(numpy.nan, ValueError), (numpy.array([numpy.inf]), ValueError), (numpy.complex64(1), TypeError),
                      (numpy.datetime64("NaT"), TypeError), (numpy.timedelta64(1, "s"), TypeError)]  # fmt: skip
        if has("astropy"):
            cases.append((3 * needs("astropy.units").deg, TypeError))
        if has("pandas"):
            cases += [(needs("pandas").NaT, TypeError), (needs("pandas").NA, TypeError)]
        loop = [object()]
        loop.append(loop)
        for value, problem in [*cases, (loop, (TypeError, ValueError))]:
            with self.subTest(value=repr(value)), self.assertRaises(problem):
                self.archive.post("sbds", {"x": [value]})

    def test_are_stored_under_the_identifier_in_them_whatever_else_they_name(self):
        stored = self.archive.put({"eb_id": "eb-old", "sbd_id": "sbd-1"})
        self.assertEqual(stored["eb_id"], "eb-old")
        self.archive.put({"sbd_id": "sbi-wrong-prefix"})
        self.assertEqual(self.archive.get("sbi-wrong-prefix", kind="sbds")["sbd_id"], "sbi-wrong-prefix")
        with self.assertRaises(NotFound):
            self.archive.get("sbi-wrong-prefix")

    def test_without_an_identifier_or_a_kind_are_refused_at_once(self):
        archive = Archive("http://127.0.0.1:%d" % free_port())  # nothing is sent
        for says, call in (
            ("use post", lambda: archive.put({"name": "x"})),
            ("sbd_id", lambda: archive.put({"prj_id": "prj-1"}, kind="sbds")),
            ("kind=", lambda: archive.get("x-1")),
            ("sbds, sbis, ebs, prjs and notes", lambda: archive.query("sdbs")),
            ("sbds, sbis, ebs, prjs and notes", lambda: archive.search("projects")),
            ("An identifier is a text", lambda: archive.versions("")),
            ("A limit", lambda: archive.changes(limit=-1)),
            ("A cone is", lambda: archive.search("sbds", cone=(1, 2))),
            ("A cone is", lambda: archive.search("sbds", cone=(1, 2, "wide"))),
            ("A cone is", lambda: archive.search("sbds", cone=5)),
        ):
            with self.subTest(says), self.assertRaisesRegex(ValueError, says):
                call()

    def test_that_are_not_there_are_not_found(self):
        self.archive.put({"sbd_id": "sbd-one"})
        for call in (
            lambda: self.archive.get("sbd-none"),
            lambda: self.archive.get("sbd-one", version=7),
            lambda: self.archive.at("sbd-one", "2001-01-01"),
            lambda: list(self.archive.versions("sbd-none")),
            lambda: list(self.archive.records("eb-none")),
            lambda: self.archive.provenance("sbd-none"),
        ):
            with self.assertRaisesRegex(NotFound, "could not be found") as caught:
                call()
            self.assertEqual((caught.exception.status, caught.exception.type), (404, "urn:oda:problem:not-found"))

    def test_that_somebody_else_has_stored_are_a_conflict_with_what_differs(self):
        mine = self.archive.post("sbds", {"name": "a", "more": {"x": 1, "~/": 2}})
        theirs = Archive(self.server.url, user="john").put({**mine, "name": "b"})
        with self.assertRaises(Conflict) as caught:
            self.archive.put({**mine, "more": {"x": 5, "~/": 2}, "extra": None})
        conflict = caught.exception
        self.assertEqual((conflict.status, conflict.type), (422, "urn:oda:problem:metadata-mismatch"))
        self.assertEqual(conflict.stored, theirs)
        self.assertIn({"pointer": "/metadata/version", "detail": "is 1, stored is 2"}, conflict.errors)
        self.assertEqual(conflict.differs["/name"], ("a", "b"))
        self.assertEqual(conflict.differs["/more/x"], (5, 1))
        self.assertEqual(conflict.differs["/metadata/version"], (1, 2))
        self.assertEqual(conflict.differs["/metadata/last_modified_by"], (mine["metadata"]["created_by"], "john"))
        self.assertNotIn("/more/~0~1", conflict.differs)
        self.assertIn("john", str(conflict))
        self.assertEqual(self.archive.get(mine["sbd_id"]), theirs)

    def test_keep_the_records_that_a_script_adds(self):
        block = self.archive.post("ebs", {"request_responses": CALLS[:1]})
        self.send("POST", "/ebs/%s/request_response" % block["eb_id"], json.dumps(CALLS[1]).encode())
        with self.assertRaises(Conflict):
            self.archive.put({**block, "name": "x"})
        kept = self.archive.put({**block, "name": "x"}, keep_records=True)
        self.assertEqual((kept["name"], kept["request_responses"]), ("x", CALLS))

    def test_that_are_refused_say_where(self):
        with self.assertRaises(OdaError) as caught:
            self.archive.put({"sbd_id": "sbd-2", "metadata": {"version": 0}})
        self.assertEqual((caught.exception.status, caught.exception.errors[0]["pointer"]), (400, "/metadata/version"))

    def test_are_stored_by_whoever_works_here(self):
        for env, user, want in (
            ({}, None, None),
            ({"JUPYTERHUB_USER": "hub"}, None, "hub"),
            ({"JUPYTERHUB_USER": "hub", "ODA_USER": "ada ä"}, None, "ada ä"),
            ({"ODA_USER": "ada"}, "mary", "mary"),
        ):
            with self.subTest(env=env), mock.patch.dict(os.environ, env):
                if want is None:
                    want = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
                stored = Archive(self.server.url, user=user).post("prjs", {})
                self.assertEqual(stored["metadata"]["created_by"], want)
        with self.assertRaisesRegex(OdaError, "user"):
            Archive(self.server.url, user="a\nb")


class Statuses(ClientCase):
    def test_are_said_and_read(self):
        block = self.archive.post("ebs", {"status": "READY"})["eb_id"]
        first = self.archive.status(block)
        self.assertEqual((first["sequence"], first["status"], first["class"], first["by"]), (0, "READY", "planned", None))
        said = self.archive.say(block, "Executing", previous="ready")
        self.assertEqual((said["sequence"], said["class"], said["previous"]), (1, "running", "READY"))
        at = datetime(2026, 3, 1, 23, tzinfo=timezone(timedelta(hours=2)))
        late = self.archive.say(block, "rained out", class_="stopped", reason="rain", at=at, version=1)
        self.assertEqual((late["class"], late["reason"], late["at"]), ("stopped", "rain", "2026-03-01T21:00:00.000000Z"))
        self.assertEqual(self.archive.status(block), said)
        with mock.patch.object(_archive, "STATUS_PAGE", 1):
            statuses = self.archive.statuses(block)
            self.assertEqual(list(statuses), [late, said])
            self.assertEqual(list(statuses), [late, said])
        self.assertEqual(list(self.archive.statuses(block, limit=1)), [late])
        self.assertEqual([each["change"] for each in self.archive.changes(id=block)], ["stored", "status", "status"])

    def test_that_contradict_are_a_conflict(self):
        block = self.archive.post("ebs")["eb_id"]
        self.archive.say(block, "Aborted", previous=None)
        for previous in (None, "Executing"):
            with self.assertRaisesRegex(Conflict, "Aborted") as caught:
                self.archive.say(block, "Observed", previous=previous)
            self.assertEqual(caught.exception.differs, {"/previous": (previous, "Aborted")})
            self.assertEqual(caught.exception.stored, self.archive.status(block))
        with self.assertRaisesRegex(OdaError, "no version 7"):
            self.archive.say(block, "Observed", version=7)
        with self.assertRaisesRegex(OdaError, "1 to 64"):
            self.archive.say(block, "")
        with self.assertRaises(NotFound):
            self.archive.say("eb-none", "Observed")
        with self.assertRaises(NotFound):
            list(self.archive.statuses("eb-none"))
        self.assertEqual(len(list(self.archive.statuses(block))), 1)

    def test_are_found(self):
        done, failed = (self.archive.post("sbis", {"telescope": "ska_statuses"})["sbi_id"] for _ in range(2))
        self.archive.say(done, "Fully Observed")
        self.archive.say(failed, "Failed")
        found = lambda **filters: [each["id"] for each in self.archive.search("sbis", telescope="ska_statuses", **filters)]  # noqa: E731
        self.assertEqual(found(class_="done"), [done])
        self.assertEqual(found(status="FULLY_OBSERVED"), [done])
        self.assertEqual(found(class_="failed", status=None), [failed])
        self.assertEqual([each["status"]["class"] for each in self.archive.search("sbis", telescope="ska_statuses", sort="created")],
                         ["done", "failed"])  # fmt: skip
        with self.assertRaisesRegex(OdaError, "class"):
            found(class_="finished")


class Lists(ClientCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        archive = Archive(cls.server.url, user="lists")
        cls.ids = [archive.post("sbds", {"name": "field %d" % n, "telescope": "ska_mid"})["sbd_id"] for n in range(25)]
        cls.began = archive.get(cls.ids[0])["metadata"]["created_on"]

    def test_go_over_all_pages_and_ask_for_no_more_than_is_read(self):
        with mock.patch.multiple(_archive, LIST_PAGE=10, SEARCH_PAGE=10, VERSION_PAGE=2, CHANGE_PAGE=10):
            self.assertEqual(list(self.archive.query("sbds", user="lists")), self.ids)
            found = list(self.archive.search("sbds", user="lists", sort="created"))
            self.assertEqual([each["id"] for each in found], self.ids)
            self.assertEqual(list(self.archive.search("sbds", user="lists", sort="created", fields="id")), self.ids)
            documents = list(self.archive.search("sbds", sort="created", user="lists", fields="document", limit=12))
            self.assertEqual([each["name"] for each in documents], ["field %d" % n for n in range(12)])
            sent = []
            with mock.patch.object(_http.Client, "request", autospec=True, side_effect=counted(sent)):
                self.assertEqual(list(self.archive.query("sbds", user="lists", limit=3)), self.ids[:3])
                self.assertIn("limit=3", sent[0])
                listing = self.archive.query("sbds", user="lists")
                self.assertEqual(len(sent), 1)
                self.assertEqual(next(listing), self.ids[0])
                self.assertEqual(len(sent), 2)
                self.assertEqual(list(self.archive.query("sbds", user="lists", limit=0)), [])

    def test_are_read_again_by_whoever_reads_them_again(self):
        block = self.archive.post("ebs", {"request_responses": CALLS})["eb_id"]
        with mock.patch.multiple(_archive, LIST_PAGE=10, SEARCH_PAGE=10, RECORD_PAGE=1, CHANGE_PAGE=10):
            for make, want in (
                (lambda: self.archive.query("sbds", user="lists"), 25),
                (lambda: self.archive.search("sbds", user="lists"), 25),
                (lambda: self.archive.search("sbds", user="lists", limit=12, fields="id"), 12),
                (lambda: self.archive.versions(self.ids[1]), 1),
                (lambda: self.archive.records(block), 2),
                (lambda: self.archive.changes(id=self.ids, limit=3), 3),
            ):
                listing = make()
                for first in listing:
                    break
                whole = list(listing)
                self.assertEqual((len(whole), whole[0]), (want, first))
                self.assertEqual(list(listing), whole)
                self.assertEqual(sum(1 for _ in listing for _ in listing), want * want)

    def test_go_on_after_next_to_the_end_and_then_begin_again(self):
        listing = self.archive.query("sbds", user="lists", limit=3)
        self.assertEqual([next(listing), *listing], self.ids[:3])
        self.assertEqual(list(listing), self.ids[:3])
        self.assertIsNone(next(listing, None))
        listing = self.archive.query("prjs", user="again")
        self.assertEqual(list(listing), [])
        self.archive.put({"prj_id": "prj-again"})
        self.assertEqual(list(listing), [])
        Archive(self.server.url, user="again").put({"prj_id": "prj-later"})
        self.assertEqual(list(listing), ["prj-later"])

    def test_take_times_in_any_form(self):
        first = datetime.fromisoformat(self.began[:-1] + "+00:00")
        for after in (self.began, first, first.astimezone(timezone(timedelta(hours=5))), first.replace(tzinfo=None), date(2026, 1, 1)):
            found = self.archive.query("sbds", created_after=after)
            self.assertEqual([each for each in found if each in self.ids], self.ids, after)
            self.assertEqual(len(list(self.archive.search("sbds", user="lists", created_after=after))), 25, after)
        late = first + timedelta(days=1)
        self.assertEqual(list(self.archive.query("sbds", created_after=late)), [])

    def test_take_every_filter(self):
        with_target = self.archive.post("prjs", {"targets": [{"name": "M83", "ra": 204.25, "dec": -29.86}], "title": "spiral arms"})
        found = lambda **filters: [each["id"] for each in self.archive.search("prjs", **filters)]  # noqa: E731
        want = [with_target["prj_id"]]
        self.assertEqual(found(cone=(204.2, -29.9, 0.5)), want)
        self.assertEqual(found(cone="204.2,-29.9,0.5"), want)
        self.assertEqual(found(cone=(10, -29.9, 0.5)), [])
        self.assertEqual(found(q="spiral", where=['/targets/*/name = "M83"', '/title ~ "ARMS"']), want)
        self.assertEqual(found(q="spiral", where=['/targets/*/name = "M83"', '/title ~ "legs"'], telescope=None), [])

    def test_refuse_a_filter_that_does_not_exist(self):
        with self.assertRaisesRegex(OdaError, "telescope"):
            list(self.archive.search("sbds", teleskope="ska_mid"))
        with self.assertRaisesRegex(OdaError, "cone"):
            list(self.archive.search("sbds", cone="1,2"))
        with self.assertRaisesRegex(OdaError, "needs a query"):
            list(self.archive.query("sbds"))

    def test_of_versions_have_the_newest_first(self):
        document = self.archive.post("sbds", {"n": 0})
        for n in range(1, 6):
            document = self.archive.put({**document, "n": n})
        with mock.patch.object(_archive, "VERSION_PAGE", 2):
            versions = list(self.archive.versions(document["sbd_id"]))
        self.assertEqual([each["version"] for each in versions], [6, 5, 4, 3, 2, 1])
        at = versions[3]["last_modified_on"]
        self.assertEqual(self.archive.at(document["sbd_id"], at)["n"], 2)
        self.assertEqual([each for each in self.archive.diff(document["sbd_id"], 2, 4) if each["path"] == "/n"],
                         [{"op": "replace", "path": "/n", "value": 3}])  # fmt: skip
        self.assertIn('+  "n": 5', self.archive.diff_text(document["sbd_id"]))
        self.assertEqual(self.archive.provenance(document["sbd_id"])["nodes"][0]["id"], document["sbd_id"])

    def test_of_records_go_over_all_pages(self):
        block = self.archive.post("ebs", {"request_responses": CALLS * 10})
        with mock.patch.object(_archive, "RECORD_PAGE", 7):
            records = list(self.archive.records(block["eb_id"]))
            self.assertEqual([each["sequence"] for each in records], list(range(1, 21)))
            self.assertEqual([each["record"] for each in records], CALLS * 10)
            self.assertEqual([each["sequence"] for each in self.archive.records(block["eb_id"], after=5, limit=9)], list(range(6, 15)))

    def test_of_changes_end_where_the_log_ended(self):
        with mock.patch.object(_archive, "CHANGE_PAGE", 10):
            changes = self.archive.changes(kind="sbd", id=self.ids)
            first = next(changes)
            self.archive.put({**self.archive.get(self.ids[0]), "name": "later"})
            rest = list(changes)
        self.assertEqual([each["id"] for each in [first] + rest], self.ids)
        after = self.archive.changes(rest[-1]["position"], id=self.ids[0])
        self.assertEqual([each["version"] for each in after], [2])

    def test_of_changes_behind_the_end_are_refused(self):
        self.assertEqual(list(self.archive.changes("now")), [])
        with self.assertRaisesRegex(OdaError, "position"):
            list(self.archive.changes(10**9))
        with self.assertRaisesRegex(OdaError, "whole number"):
            list(self.archive.changes(1.9))

    def test_of_changes_have_records_that_later_ones_have_joined(self):
        block = self.archive.post("ebs")["eb_id"]
        record = ("POST", "/ebs/%s/request_response" % block, json.dumps(CALLS[0]).encode())
        self.send(*record)
        with mock.patch.object(_archive, "CHANGE_PAGE", 1):
            changes = self.archive.changes(id=block)
            self.assertEqual(next(changes)["change"], "stored")
            self.send(*record)
            self.assertEqual([each["first_sequence"] for each in changes], [1])

    def test_what_is_running(self):
        eb = self.archive.post("ebs", {"telescope": "ska_running"})["eb_id"]
        other = self.archive.post("ebs")["eb_id"]
        self.assertEqual(self.archive.running(eb), [])
        for block, key in ((eb, "1"), (eb, "2"), (other, "3")):
            call = {"request": "scan", "request_args": {"kwargs": {"device": "SKA001"}}}
            url = "%s/ebs/%s/running/%s" % (self.archive.url, block, key)
            put = urllib.request.Request(url, json.dumps(call).encode(), method="PUT")
            put.add_header("Content-Type", "application/json")
            with urllib.request.urlopen(put, timeout=PATIENCE) as answer:
                self.assertEqual(answer.status, 204)
        self.assertEqual([call["key"] for call in self.archive.running(eb)], ["1", "2"])
        of_telescope = self.archive.running(telescope="ska_running")
        self.assertEqual([call["device"] for call in of_telescope], ["SKA001", "SKA001"])
        self.assertLessEqual({eb, other}, {call["eb_id"] for call in self.archive.running()})
        with self.assertRaises(NotFound):
            self.archive.running("eb-unknown")

    def test_a_night(self):
        self.archive.post("ebs", {"telescope": "ska_night", "request_responses": CALLS})
        noon = datetime(2026, 3, 1, 10)  # there, which is UTC+2
        early = datetime(2026, 3, 2, 11, 59, tzinfo=timezone(timedelta(hours=2)))
        for day in ("2026-03-01", date(2026, 3, 1), noon, noon.replace(hour=23), early):
            night = self.archive.night(day, telescope="ska_night", zone="Africa/Johannesburg")
            self.assertEqual((night["calls"], night["failures"]), (2, 1))


def cut():
    raise OSError("the connection is closed without an answer")


def counted(sent):
    original = _http.Client.request

    def request(self, method, path, *rest):
        sent.append(path)
        return original(self, method, path, *rest)

    return request


class ABlockInANotebook(ClientCase):
    def test_shows_itself_with_its_failures_and_nothing_else_runs(self):
        script = "<script>alert(1)</script>"
        calls = [{**CALLS[1], "request": script, "error": {"detail": script + "x" * 1000}}] * 30
        block = self.archive.post("ebs", {"telescope": script, "request_responses": CALLS + calls})
        self.assertIsInstance(block, dict)
        self.assertEqual(json.loads(json.dumps(block)), block)
        html = block._repr_html_()
        self.assertNotIn("<script", html)
        for text in (block["eb_id"], "32, 31 of them failed", "no &lt;beam&gt;", "observe.scan", "the first 20 of them", "…"):
            self.assertIn(text, html)
        self.assertNotIn("observe.configure", html)
        self.assertLess(len(html), 40000)

    def test_is_shown_however_odd_it_is(self):
        for odd in ({}, {"request_responses": None}, {"request_responses": [1, {"error": "x"}], "metadata": 5, "eb_id": []}):
            self.assertIn("ExecutionBlock", Block(odd)._repr_html_())

    def test_has_failed_calls_by_the_rule_of_the_archive(self):
        calls = [{"request": "a", **more} for more in (
            {}, {"status": None}, {"status": "ok"}, {"status": "OK", "error": None}, {"status": ""}, {"status": "OK", "error": {}}, {"status": "Failed"})]  # fmt: skip
        calls = [{**call, "request_sent_at": "2026-05-01T20:00:00Z"} for call in calls]
        block = self.archive.post("ebs", {"telescope": "rule", "request_responses": calls})
        night = self.archive.night("2026-05-01", telescope="rule")
        self.assertEqual((night["calls"], night["failures"]), (7, 3))
        self.assertIn("7, 3 of them failed", block._repr_html_())


class Following(Case):
    needs_server = False

    def setUp(self):
        super().setUp()
        self.server = Server()
        self.addCleanup(self.server.remove)
        self.server.start()
        self.archive = Archive(self.server.url, user="ada")

    def test_goes_on_through_restarts_without_missing_or_repeating_a_change(self):
        following, got = self.archive.follow(kind="prjs"), []

        def follow():
            for change in following:
                got.append(change["id"])
                if change["id"] == "prj-end":
                    return

        thread = threading.Thread(target=follow, daemon=True)
        with self.assertLogs("oda_client", "WARNING") as logs:
            thread.start()
            for n in range(12):
                self.archive.put({"prj_id": "prj-%d" % n})
                self.archive.put({"sbd_id": "sbd-%d" % n})
                if n % 4 == 3:
                    wait_until(lambda: len(got) > n, "the change")
                    said = len(logs.output)
                    self.server.stop()
                    wait_until(lambda: len(logs.output) > said, "that it is away is said")
                    self.server.start()
            self.archive.put({"prj_id": "prj-end"})
            thread.join(PATIENCE)
        self.assertEqual(got, ["prj-%d" % n for n in range(12)] + ["prj-end"])
        self.assertEqual(len(logs.output), 3, logs.output)

    def test_begins_when_it_is_called_and_resumes_at_a_position(self):
        self.archive.put({"prj_id": "prj-before"})
        following = self.archive.follow()
        self.archive.put({"prj_id": "prj-1"})
        self.archive.put({"prj_id": "prj-2"})
        first = next(following)
        self.assertEqual(first["id"], "prj-1")
        self.assertEqual(next(self.archive.follow(after=first["position"]))["id"], "prj-2")
        self.assertEqual(next(self.archive.follow(after=0, id=["prj-2"]))["id"], "prj-2")

    def test_goes_on_after_an_interrupt(self):
        following = self.archive.follow()
        self.archive.put({"prj_id": "prj-1"})
        self.archive.put({"prj_id": "prj-2"})
        self.assertEqual(next(following)["id"], "prj-1")
        self.assertEqual(next(following)["id"], "prj-2")
        with mock.patch.object(_http.Client, "_once", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                next(following)
        self.archive.put({"prj_id": "prj-3"})
        self.assertEqual(next(following)["id"], "prj-3")

    def test_says_at_once_what_cannot_work(self):
        with self.assertRaises(OdaError) as caught:
            self.archive.follow(after=10**9)
        self.assertEqual(caught.exception.type, "urn:oda:problem:unknown-position")
        with self.assertRaises(Unreachable):
            Archive("http://127.0.0.1:%d" % free_port()).follow()

    def test_goes_on_after_something_else_has_answered(self):
        gateway = Gateway(self, self.server)
        following = Archive(gateway.url).follow()
        self.archive.put({"prj_id": "prj-1"})
        answers = [(200, '{"login": "please"}'), (200, PAGE)]
        gateway.answer = lambda *_: answers.pop() if answers else None
        with self.assertLogs("oda_client", "WARNING") as logs:
            self.assertEqual(next(following)["id"], "prj-1")
        self.assertEqual((len(logs.output), answers), (1, []))

    def test_lists_go_on_when_the_archive_restarts_between_pages(self):
        for n in range(6):
            self.archive.put({"prj_id": "prj-%d" % n})
        with mock.patch.object(_archive, "LIST_PAGE", 2):
            listing = self.archive.query("prjs", user="ada")
            got = [next(listing)]
            self.server.stop()
            self.server.start()
            self.assertEqual(got + list(listing), ["prj-%d" % n for n in range(6)])


    def test_lists_that_fail_are_not_at_their_end(self):
        for n in range(4):
            self.archive.put({"prj_id": "prj-%d" % n})
        with mock.patch.object(_archive, "LIST_PAGE", 2):
            for problem, want in ((ConnectionResetError, Unreachable), (KeyboardInterrupt, KeyboardInterrupt)):
                listing = self.archive.query("prjs", user="ada")
                self.assertEqual([next(listing), next(listing)], ["prj-0", "prj-1"])
                with mock.patch.object(_http.Client, "_once", side_effect=problem), self.assertRaises(want):
                    next(listing)
                for read in (next, list) + ((lambda listing: listing.to_pandas(),) if has("pandas") else ()):
                    with self.assertRaisesRegex(OdaError, "Ask the archive for it again"):
                        read(listing)
            self.assertEqual(len(list(self.archive.query("prjs", user="ada", limit=3))), 3)


class Addresses(ClientCase):
    def test_may_end_in_anything(self):
        want = self.archive.post("sbds", {})
        for end in ("", "/", "/api/v1", "/api/v1/", "/api/v1/ui/", "/api/v5", "/sbds/%s?version=1#name" % want["sbd_id"], "/night?date=2026-01-01"):
            with self.subTest(end):
                self.assertEqual(Archive(self.server.url + end).get(want["sbd_id"]), want)
        self.assertEqual(Archive(self.server.url[7:]).get(want["sbd_id"]), want)  # without http://
        self.assertEqual(Archive().get(want["sbd_id"]), want)  # ODA_URL
        del os.environ["ODA_URL"]
        self.assertEqual(Archive().url, "http://127.0.0.1:8080/api/v1")
        self.assertEqual(repr(Archive("http://u:geheim@h/x")), "Archive('http://h/x/api/v1')")

    def test_below_a_prefix_are_found_from_any_page(self):
        server = Server("--base-path=/ns/oda")
        self.addCleanup(server.remove)
        server.start()
        for end in ("/ns/oda", "/ns/oda/api/v5", "/ns/oda/ebs/eb-1"):
            self.assertEqual(list(Archive(server.url + end).query("sbds", user="x")), [])

    def test_that_cannot_work_say_so_and_what_to_give_instead(self):
        for url, says in (("ftp://x", "http://"), ("http://", "no host"), ("http://h:port", "port"), ("", "no host")):
            with self.subTest(url), self.assertRaisesRegex(OdaError, says):
                Archive(url)
        for says, answer in (
            ("home page", (404, PAGE)),
            ("home page", (200, PAGE)),
            ("home page", (404, '{"detail":"The requested URL was not found","title":"Not Found","status":404}')),
            ("redirects to https://elsewhere/oda", (301, "", ("Location", "https://elsewhere/oda"))),
        ):
            gateway = Gateway(self, self.server, answer)
            with self.subTest(answer), self.assertRaisesRegex(OdaError, says):
                Archive(gateway.url).get("sbd-1")
        with self.assertRaisesRegex(OdaError, "home page"):
            Archive(self.server.url + "/wrong/prefix").get("sbd-1")

    def test_of_something_that_answers_other_json_say_so(self):
        for body in ('{"login": "please"}', '"please"'):
            archive = Archive(Gateway(self, self.server, (200, body)).url)
            for name, call in {
                "get": lambda: archive.get("sbd-1"),
                "at": lambda: archive.at("sbd-1", "2026-01-01"),
                "put": lambda: archive.put({"sbd_id": "sbd-1"}),
                "post": lambda: archive.post("sbds"),
                "query": lambda: next(archive.query("sbds", user="x")),
                "search": lambda: next(archive.search("sbds")),
                "versions": lambda: next(archive.versions("sbd-1")),
                "diff": lambda: archive.diff("sbd-1"),
                "provenance": lambda: archive.provenance("sbd-1"),
                "records": lambda: next(archive.records("eb-1")),
                "changes": lambda: next(archive.changes()),
                "follow": lambda: archive.follow(after=0),
                "night": lambda: archive.night("2026-01-01"),
            }.items():
                with self.subTest(name, body=body):
                    with self.assertRaisesRegex(OdaError, "home page") as caught:
                        call()
                    self.assertEqual(caught.exception.status, 200)

    def test_that_nobody_listens_at_are_unreachable(self):
        with self.assertRaisesRegex(Unreachable, "cannot be reached") as caught:
            Archive("http://127.0.0.1:%d" % free_port()).put({"sbd_id": "sbd-1"})
        self.assertIsInstance(caught.exception, ConnectionError)
        self.assertNotIn("may or may not", str(caught.exception))
        with mock.patch("socket.getaddrinfo", side_effect=socket.gaierror("no such host")):
            with self.assertRaisesRegex(Unreachable, "no such host") as caught:
                Archive("http://archive.invalid").post("sbds")
        self.assertNotIn("may or may not", str(caught.exception))

    def test_of_something_that_is_not_http_say_so(self):
        gateway = Gateway(self, self.server)
        with mock.patch.object(Gateway, "_serve", lambda _, near: near.sendall(b"\x15\x03\x1b[31m\n")):
            with self.assertRaises(Unreachable) as caught:
                Archive(gateway.url).get("sbd-1")
        self.assertIn("its answer is not HTTP", str(caught.exception))
        self.assertTrue(str(caught.exception).isprintable())

    def test_of_https_that_is_http_say_so(self):
        with self.assertRaisesRegex(Unreachable, "write its address with http://"):
            Archive(self.server.url.replace("http:", "https:")).get("sbd-1")


class LongAnswers(ClientCase):
    def test_are_not_asked_for_again(self):
        block, sent = self.archive.post("ebs", {"note": "x" * 2000}), []
        with mock.patch.object(_http, "MAX_ANSWER", 1000):
            with mock.patch.object(_http.Client, "request", autospec=True, side_effect=counted(sent)):
                with self.assertRaisesRegex(OdaError, "records()"):
                    self.archive.get(block["eb_id"])
        self.assertEqual(len(sent), 1)


class Drops(io.RawIOBase):
    """A connection with a clock, on which a piece of an answer comes each second."""

    def __init__(self, *pieces):
        self.pieces, self.now = list(pieces), 0.0

    def gettimeout(self):
        return 5.0

    def settimeout(self, seconds):
        pass

    def readable(self):
        return True

    def makefile(self, mode):
        return io.BufferedReader(self)

    def readinto(self, buffer):
        self.now += 1
        piece = self.pieces.pop(0)  # fails if more is read than there is
        buffer[: len(piece)] = piece
        return len(piece)


class SlowAnswers(ClientCase):
    def read(self, header, *pieces):
        drops = Drops(b"HTTP/1.1 200 OK\r\n%s\r\n\r\n" % header, *pieces)
        with mock.patch.object(_http, "time", mock.Mock(monotonic=lambda: drops.now)):
            response = _http._Response(drops)
            response.begin()
            return _http._whole(response, 5)

    def test_are_given_up_if_they_come_in_drops_and_read_otherwise(self):
        length, chunked = b"Content-Length: %d", b"Transfer-Encoding: chunked"
        self.assertEqual(self.read(length % 0), b"")
        self.assertEqual(self.read(length % 5, *[b"x"] * 5), b"x" * 5)
        self.assertEqual(self.read(length % 160000, *[b"x" * 8000] * 20), b"x" * 160000)
        self.assertEqual(self.read(chunked, *[b"1f40\r\n" + b"x" * 8000 + b"\r\n"] * 9, b"0\r\n\r\n"), b"x" * 72000)
        self.assertEqual(self.read(b"Connection: close", b"x", b"y", b"", b""), b"xy")
        for header, pieces in ((length % 90, [b"x"] * 90), (chunked, [b"1\r\nx\r\n"] * 90), (b"Connection: close", [b"x"] * 90)):
            with self.subTest(header), self.assertRaises(socket.timeout):
                self.read(header, *pieces)

    def test_are_given_up_if_their_head_comes_in_drops(self):
        for head in (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 90, b"HTTP/1.1 100 Continue\r\n\r\n" * 90):
            drops = Drops(*(head[i : i + 1] for i in range(len(head))))
            with self.subTest(head), mock.patch.object(_http, "time", mock.Mock(monotonic=lambda: drops.now)):
                with self.assertRaises(socket.timeout):
                    _http._Response(drops).begin()

    def test_may_be_as_slow_each_time_over_one_connection(self):
        proxy = Proxy(self.server.port, delay=0.4)
        self.addCleanup(proxy.close)
        client = _http.Client(proxy.url + "/api/v1", answer=0.7)
        self.addCleanup(client.close)
        for _ in range(3):
            self.assertEqual(client.request("GET", "/sbds/sbd-none").status, 404)


class CutAnswers(ClientCase):
    def test_are_not_taken_for_whole_ones(self):
        made = self.archive.post("sbds", {"name": "x" * 100})
        self.archive.put(dict(made, name="y" * 100))
        length, chunked = b"Content-Length: 500", b"Transfer-Encoding: chunked"
        for header, body in (
            (length, b"--- a\n"), (length, b""), (chunked, b""), (chunked, b"6\r\n--- a\n\r\n"), (chunked, b"6\r\n---"), (chunked, b"6\r\n--- a\n\r\nx"),
        ):  # fmt: skip
            cuts = []

            def cut(gateway, near):
                gateway._read(near, b"")
                cuts.append(1)
                near.sendall(b"HTTP/1.1 200 OK\r\n%s\r\n\r\n%s" % (header, body))

            gateway = Gateway(self, self.server)
            archive = Archive(gateway.url)
            with self.subTest(header=header, body=body):
                with mock.patch.object(Gateway, "_serve", cut), self.assertRaisesRegex(Unreachable, "cut off"):
                    archive.diff_text(made["sbd_id"])
                self.assertEqual(len(cuts), 4)  # it was asked for again
                self.assertIn("yyy", archive.diff_text(made["sbd_id"]))


class Damage(ClientCase):
    def test_of_a_document_hides_no_other_from_a_search(self):
        server = Server().start()
        self.addCleanup(server.remove)
        with Archive(server.url) as archive:
            for n in range(1, 6):
                archive.put({"sbd_id": "sbd-%d" % n, "name": "number %d" % n})
            server.stop()
            with contextlib.closing(sqlite3.connect(os.path.join(server.folder, "archive.db"))) as database, database:
                database.execute("UPDATE versions SET text = CAST(replace(replace(text, 'number 2', 'x'), 'number 4', 'x') AS BLOB)")
            server.start()
            found = archive.search("sbds", sort="id", fields="document")
            with self.assertLogs("oda_client", "WARNING") as logs, self.assertRaisesRegex(OdaError, "sbd-2 is damaged.* with 1 more"):
                self.assertEqual([next(found)["sbd_id"] for _ in range(3)], ["sbd-1", "sbd-3", "sbd-5"])
                next(found)
        self.assertEqual(len(logs.output), 2)


class LostAnswers(ClientCase):
    def test_do_not_store_a_posted_document_twice(self):
        proxy = Proxy(self.server.port, lose=2)
        self.addCleanup(proxy.close)
        made = Archive(proxy.url, user="lost").post("sbds", {})
        self.assertEqual(proxy.lost, 2)
        self.assertEqual(list(self.archive.query("sbds", user="lost")), [made["sbd_id"]])

    def test_of_a_put_are_not_taken_for_a_conflict(self):
        proxy = Proxy(self.server.port)
        self.addCleanup(proxy.close)
        archive = Archive(proxy.url)
        document = archive.put({"sbd_id": "sbd-lost"})  # so that there is a kept connection
        archive.get("sbd-lost")
        proxy.lose = 1
        with self.assertRaisesRegex(Unreachable, "may or may not be stored"):
            archive.put({**document, "name": "x"})
        self.assertEqual(archive.get("sbd-lost")["metadata"]["version"], 2)

    def test_that_may_hide_a_stored_document_say_so(self):
        gateway = Gateway(self, self.server)
        archive = Archive(gateway.url)
        put, post = (lambda: archive.put({"sbd_id": "sbd-1"})), (lambda: archive.post("sbds"))
        lost, late, login = None, (504, PAGE), (200, "{}")
        busy = (503, problem("overloaded"), ("Retry-After", "0"))
        for answers, call, says in (
            ([lost], put, "read it"),
            ([late], put, "read it"),
            ([login], put, "read it"),
            ([lost] * 4, post, "look for it"),
            ([late] * 4, post, "look for it"),
            ([lost, busy, busy, busy], post, "look for it"),
            ([login], post, "look for it"),
            ([busy], put, ""),
            ([busy] * 4, post, ""),
            ([(403, PAGE)], post, ""),
            ([late] * 4, lambda: archive.get("sbd-1"), ""),
        ):
            with self.subTest(answers=answers, says=says), mock.patch.object(_sending, "FIRST_PAUSE", 0.001):
                gateway.answer = lambda *_: answers.pop(0) or cut()  # noqa: B023
                with self.assertRaises(OdaError) as caught:
                    call()
                self.assertEqual(answers, [])
                text = str(caught.exception)
                self.assertEqual("may or may not be stored" in text, bool(says), text)
                self.assertIn(says, text)

    def test_that_ask_to_wait_are_waited_for_if_not_too_long(self):
        gateway = Gateway(self, self.server)
        answers = [(503, problem("overloaded"), ("Retry-After", "0")), (429, problem("rate-limited"), ("Retry-After", "0"))]
        gateway.answer = lambda *_: answers.pop() if answers else None
        self.assertEqual(list(Archive(gateway.url).query("sbds", user="nobody")), [])
        gateway.answer = (503, problem("overloaded"), ("Retry-After", "3600"))
        begun = time.monotonic()
        with self.assertRaises(OdaError) as caught:
            Archive(gateway.url).get("sbd-1")
        self.assertLess(time.monotonic() - begun, 10)
        self.assertEqual(caught.exception.status, 503)


class Tokens(Case):
    needs_server = False

    def test_are_given_or_read_from_the_environment_or_a_file_that_changes(self):
        server = Server()
        self.addCleanup(server.remove)
        tokens, own = os.path.join(server.folder, "tokens"), os.path.join(server.folder, "own")
        server._flags = ("--tokens", tokens)
        made = {}
        for name, role in (("ada", "editor"), ("bob", "reader")):
            command = [binary(), "token", "create", "--file", tokens, "--name", name, "--role", role]
            made[name] = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        server.start()
        with self.assertRaisesRegex(OdaError, "Authorization") as caught:
            Archive(server.url).get("sbd-1")
        self.assertEqual(caught.exception.status, 401)
        stored = Archive(server.url, made["ada"]).post("sbds", {})
        self.assertEqual(stored["metadata"]["created_by"], "ada")
        os.environ["ODA_TOKEN_FILE"] = own
        archive = Archive(server.url)
        with self.assertRaisesRegex(OdaError, "There is no token to send.*cannot be read"):
            archive.get(stored["sbd_id"])
        for name, allowed in (("bob", False), ("ada", True)):
            with open(own, "w") as file:
                file.write(made[name] + "\n")
            self.assertEqual(archive.get(stored["sbd_id"]), stored)
            if allowed:
                archive.put(stored)
            else:
                with self.assertRaisesRegex(OdaError, "role editor"):
                    archive.put(stored)
        with self.assertRaises(OdaError) as caught:
            Archive(server.url, "geheim geheim")
        self.assertNotIn("geheim", str(caught.exception))
        self.assertNotIn(made["ada"], repr(Archive(server.url, made["ada"])))


class Https(Case):
    needs_server = False

    def test_needs_a_certificate_that_is_trusted(self):
        server = Server()
        self.addCleanup(server.remove)
        key, cert = (os.path.join(server.folder, name) for name in ("key", "cert"))
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
             "-subj", "/CN=archive", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
            check=True, capture_output=True,
        )  # fmt: skip
        server._flags = ("--tls-cert", cert, "--tls-key", key)
        server.url = server.url.replace("http:", "https:")
        os.environ["SSL_CERT_FILE"] = cert
        server.start()
        with Archive(server.url) as archive:
            self.assertEqual(archive.get(archive.post("sbds", {"name": "x"})["sbd_id"])["name"], "x")
        del os.environ["SSL_CERT_FILE"]
        with self.assertRaisesRegex(Unreachable, "certificate is not trusted.*SSL_CERT_FILE"):
            Archive(server.url).get("sbd-1")


class Threads(ClientCase):
    def test_share_an_archive(self):
        made = [self.archive.post("sbds", {"n": n}) for n in range(8)]
        wrong = []

        def read(document):
            for _ in range(50):
                if self.archive.get(document["sbd_id"]) != document:
                    wrong.append(document)

        threads = [threading.Thread(target=read, args=(document,)) for document in made]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual(wrong, [])
        self.assertLessEqual(len(self.archive._sender._idle), _sending.MAX_IDLE)

    def test_and_forked_processes_too(self):
        made = self.archive.post("sbds", {})
        self.archive.get(made["sbd_id"])
        child = os.fork()
        if child == 0:
            try:
                same = all(self.archive.get(made["sbd_id"]) == made for _ in range(20))
            finally:
                os._exit(0 if same else 1)
        for _ in range(20):
            self.assertEqual(self.archive.get(made["sbd_id"]), made)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


class Numbers(Case):
    needs_server = False

    def test_keep_their_spelling_and_behave_like_numbers(self):
        text = b'{"a":0.35e9,"b":[1.10,{"c":1e400}],"z":[-0,0,-7],"d":1.5,"e":"\xc3\xa9","f":[],"g":{},"h":null}'
        value = _json.read(text)
        self.assertEqual(_json.write(value), text)
        self.assertEqual(value["a"] + 1, 350000001.0)
        self.assertIs(type(value["d"]), float)
        self.assertEqual((value["z"], type(value["z"][1])), ([0, 0, -7], int))
        value["a"] = 5
        self.assertEqual(_json.write(value), text.replace(b"0.35e9", b"5"))
        long = b'{"n":-%s}' % (b"7" * 5000)  # Python does not read so many digits
        self.assertEqual(_json.write(_json.read(long)), long)
        self.assertEqual(_json.write({1: value["b"], None: 2}), b'{"1":[1.10,{"c":1e400}],"null":2}')
        loop = {}
        loop["loop"] = loop
        for bad in (float("nan"), [1.5, float("inf")], {"x": object()}, loop):
            with self.assertRaises((ValueError, TypeError)):
                _json.write({"number": value["b"], "bad": bad})
