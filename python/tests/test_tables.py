"""Tables of pandas and astropy. They are skipped where these are not installed."""

import builtins
import sys
from datetime import timedelta
from unittest import mock

from oda_client import Archive, _sky, _tables
from support import Case, needs
from test_client import CALLS

TARGETS = [{"name": "M83", "ra": 204.25, "dec": -29.86}, {"name": "M51", "ra_str": "13:29:52.7", "dec_str": "47:11:43"}]


class TableCase(Case):
    def setUp(self):
        super().setUp()
        self.archive = Archive(self.server.url, user="ada")
        self.addCleanup(self.archive.close)

    def block(self):
        odd = {"request": "observe.point", "request_args": {"args": [1], "kwargs": {}}, "request_sent_at": "2026-03-01 23:04:06+02:00"}
        return self.archive.post("ebs", {"request_responses": CALLS + [odd]})["eb_id"]

    def projects(self, telescope):
        self.archive.post("prjs", {"telescope": telescope, "title": "one", "targets": TARGETS})
        self.archive.post("prjs", {"telescope": telescope, "obs_blocks": [{"sbd_ids": ["sbd-1", "sbd-2"]}]})
        return self.archive.search("prjs", telescope=telescope, sort="created")


class ADataFrame(TableCase):
    def setUp(self):
        super().setUp()
        self.pandas = needs("pandas")

    def test_of_records(self):
        frame = self.archive.records(self.block()).to_pandas()
        self.assertEqual(list(frame.sequence), [1, 2, 3])
        self.assertEqual(list(frame.failed), [False, True, False])
        self.assertEqual(list(frame[frame.failed].error), ["no <beam>"])
        self.assertEqual(frame.seconds[1], 3.5)
        self.assertTrue(self.pandas.isna(frame.seconds[0]))
        self.assertEqual(str(frame.request_sent_at.dt.tz), "UTC")
        self.assertEqual(frame.request_sent_at[2], self.pandas.Timestamp("2026-03-01T21:04:06Z"))
        self.assertTrue(self.pandas.isna(frame.response_received_at[0]))
        self.assertEqual(frame.request_args[2], {"args": [1], "kwargs": {}})
        self.assertEqual((frame.failed.dtype, frame.sequence.dtype), (bool, "int64"))

    def test_of_calls(self):
        block = self.block()
        frame = self.archive.calls(eb=block, sort="sent").to_pandas()
        self.assertEqual(list(frame.columns), list(_tables.CALLS))
        self.assertEqual(list(frame.failed), [each["failed"] for each in map(_tables.record_row, self.archive.records(block))])
        self.assertEqual(frame.took[1], self.pandas.Timedelta(seconds=3.5))
        self.assertEqual((frame.took.dtype.kind, str(frame["at"].dt.tz), frame.failed.dtype), ("m", "UTC", bool))
        self.assertTrue(self.pandas.isna(frame.took[0]))
        self.assertEqual(list(frame[frame.failed].error), ["no <beam>"])
        self.assertEqual(list(self.archive.calls(eb=block, longer_than=timedelta(seconds=3.4), limit=1))[0]["sequence"], 2)
        counts = self.archive.tally("request", eb=block).counts.to_pandas()
        self.assertEqual((counts.calls.sum(), counts.failures.sum(), counts.took.sum()), (3, 1, self.pandas.Timedelta(seconds=3.5)))
        empty = self.archive.calls(eb="unknown").to_pandas()
        self.assertEqual((len(empty), empty.took.dtype.kind), (0, "m"))
        self.assertEqual(list(empty[empty.failed].columns), list(empty.columns))  # pandas would take other kinds for names

    def test_of_what_was_found(self):
        frame = self.projects("frame").to_pandas()
        self.assertEqual(list(frame.columns), list(_tables.SUMMARIES))
        self.assertEqual((frame.targets[0], frame.target[0], frame.ra[0], frame.dec[0]), ("M83, M51", "M83", 204.25, -29.86))
        self.assertTrue(self.pandas.isna(frame.ra[1]))
        self.assertEqual((list(frame.version), list(frame.created_by)), ([1, 1], ["ada", "ada"]))
        self.assertEqual(frame.references[1], "sbd-1, sbd-2")
        self.assertTrue(frame.created_on[0] < frame.created_on[1])

    def test_of_a_cone_has_the_target_that_was_found(self):
        self.projects("near")
        found = self.archive.search("prjs", telescope="near", cone=(202.5, 47.2, 1))
        frame = found.to_pandas()
        self.assertEqual((list(frame.target), list(frame.targets)), (["M51"], ["M83, M51"]))
        self.assertAlmostEqual(frame.ra[0], 202.469583, 5)
        self.assertEqual(len(found.to_pandas()), 1)

    def test_of_targets_has_a_row_for_each(self):
        found = self.projects("each")
        frame = found.targets().to_pandas()
        self.assertEqual(list(frame.columns), list(_tables.TARGETS))
        self.assertEqual((list(frame.target), frame.ra[0], list(frame.version)), (["M83", "M51"], 204.25, [1, 1]))
        self.assertEqual([each["target"] for each in found.targets()], ["M83", "M51"])
        for cone, want in (((204.25, -29.86, 0), ["M83"]), ((204, 10, 90), ["M83", "M51"]), ("202.5,47.2,1", ["M51"])):
            within = self.archive.search("prjs", telescope="each", cone=cone).targets()
            self.assertEqual([each["target"] for each in within], want, cone)

    def test_of_nothing_has_the_same_columns(self):
        frame = self.archive.records(self.archive.post("ebs", {})["eb_id"]).to_pandas()
        self.assertEqual((len(frame), list(frame.columns)), (0, list(_tables.RECORDS)))
        self.assertEqual(str(frame.recorded_at.dt.tz), "UTC")

    def test_of_other_lists(self):
        self.projects("other")
        documents = self.archive.search("prjs", telescope="other", fields="document", sort="created").to_pandas()
        self.assertEqual((documents.title[0], list(documents.version)), ("one", [1, 1]))
        self.assertEqual(documents.targets[0], TARGETS)
        ids = list(documents.prj_id)
        self.assertEqual(list(self.archive.search("prjs", telescope="other", fields="id", sort="created").to_pandas().id), ids)
        self.assertEqual(list(self.archive.versions(ids[0]).to_pandas().version), [1])
        self.archive.say(ids[0], "Observed", reason="at last")
        statuses = self.archive.statuses(ids[0]).to_pandas()
        self.assertEqual((list(statuses.columns), list(statuses.reason)), (list(_tables.STATUSES), ["at last"]))
        self.assertEqual(str(statuses["at"].dt.tz), "UTC")
        frame = self.archive.search("prjs", telescope="other", sort="created").to_pandas()
        self.assertEqual((frame.status[0], frame["class"][0], frame.status_at[0]), ("Observed", "done", statuses["at"][0]))
        self.assertTrue(self.pandas.isna(frame.status_at[1]) and self.pandas.isna(frame.status[1]))
        said = self.archive.changes(id=ids[0]).to_pandas()
        self.assertEqual((list(said.change), said.current[1], str(said.current.dtype)), (["stored", "status"], True, "boolean"))
        changes = self.archive.changes(id=ids, kind="prjs", limit=2).to_pandas()
        self.assertEqual((list(changes.id), list(changes.first_sequence.isna())), (ids, [True, True]))


class AnAstropyTable(TableCase):
    def setUp(self):
        super().setUp()
        needs("astropy")

    def test_of_records(self):
        table = self.archive.records(self.block()).to_astropy()
        self.assertEqual(list(table["failed"]), [False, True, False])
        self.assertEqual(table["request_sent_at"][2].isot, "2026-03-01T21:04:06.000000")
        self.assertEqual(table["request_sent_at"].scale, "utc")
        self.assertEqual(list(table["response_received_at"].mask), [True, False, True])
        self.assertEqual(table["request_args"][2], '{"args": [1], "kwargs": {}}')
        self.assertEqual(list(table["error"].mask), [True, False, True])
        self.assertEqual(table["seconds"][1], 3.5)
        self.assertIn("observe.scan", str(table))

    def test_of_what_was_found(self):
        table = self.projects("table").to_astropy()
        self.assertEqual(table.colnames, list(_tables.SUMMARIES))
        self.assertEqual((table["ra"][0], table["targets"][0]), (204.25, "M83, M51"))
        self.assertEqual((table["ra"].dtype, table["version"].dtype), (float, int))

    def test_has_units(self):
        from astropy.coordinates import SkyCoord

        found = self.projects("units")
        for table in (found.to_astropy(), found.targets().to_astropy(), self.archive.search("prjs", telescope="nobody").to_astropy()):
            self.assertEqual(len(SkyCoord(table["ra"], table["dec"])), len(table))
        at = SkyCoord(found.to_astropy()["ra"], found.to_astropy()["dec"])
        self.assertAlmostEqual(at[0].separation(SkyCoord(204.25, -29.86, unit="deg")).arcsec, 0, 6)
        self.assertEqual(str(self.archive.records(self.block()).to_astropy()["seconds"].unit), "s")

    def test_of_nothing_has_the_same_columns(self):
        table = self.archive.search("prjs", telescope="nobody").to_astropy()
        self.assertEqual((len(table), table.colnames), (0, list(_tables.SUMMARIES)))

    def test_is_found_around_a_quantity(self):
        units = __import__("astropy.units").units
        self.projects("cone")
        cone = (204.2 * units.deg, -29.9 * units.deg, 30 * units.arcmin)
        self.assertEqual(len(list(self.archive.search("prjs", telescope="cone", cone=cone))), 1)
        self.assertEqual(len(list(self.archive.search("prjs", telescope="cone", cone=(204.2, -29.9, 30 * units.arcmin)))), 1)
        with self.assertRaisesRegex(ValueError, "A cone is"):
            self.archive.search("prjs", cone=(204.2, -29.9, 30 * units.m))
        now = __import__("astropy.time").time.Time.now()
        self.assertEqual(list(self.archive.search("prjs", created_after=now + 1 * units.day)), [])


    def test_is_found_around_a_place_in_the_sky(self):
        from astropy import units
        from astropy.coordinates import SkyCoord

        self.projects("place")
        place = SkyCoord("13h37m00s", "-29d51m36s")
        for centre in (place, place.galactic):
            for radius in (0.1, 6 * units.arcmin):
                table = self.archive.search("prjs", telescope="place", cone=(centre, radius)).to_astropy()
                self.assertEqual(list(table["target"]), ["M83"])
        for wrong in ((SkyCoord([1, 2], [3, 4], unit="deg"), 1), (place,), (place, 1, 2), (place, "1 deg")):
            with self.assertRaisesRegex(ValueError, "A cone is"):
                self.archive.search("prjs", cone=wrong)


class Separations(Case):
    needs_server = False

    def test_are_those_on_the_sphere(self):
        for ra, dec, target_ra, target_dec, want in (
            (0, 0, 0, 0, 0), (10, 0, 350, 0, 20), (0, 90, 123, 89, 1), (0, -90, 50, 90, 180), (0, 0, 180, 0, 180), (0, 60, 180, 60, 60), (7, 1e-7, 7, 0, 1e-7),
        ):  # fmt: skip
            cone = _sky.Cone(ra, dec, want)
            target = {"ra": target_ra, "dec": target_dec}
            self.assertAlmostEqual(cone.separation(target), want, 12)
            self.assertTrue(cone.holds(target))
            self.assertFalse(_sky.Cone(ra, dec, want - 1e-6).holds(target))


class ATableWithoutItsLibrary(Case):
    needs_server = False

    def test_says_what_to_install(self):
        original = builtins.__import__

        def no(name, *rest, **more):
            if name.partition(".")[0] in ("pandas", "astropy"):
                raise ModuleNotFoundError("No module named %r" % name)
            return original(name, *rest, **more)

        hidden = {name: None for name in ("pandas", "astropy", "astropy.table")}
        with mock.patch.dict(sys.modules, hidden), mock.patch.object(builtins, "__import__", no):
            for make, says in ((_tables.to_pandas, "pip install pandas"), (_tables.to_astropy, "pip install astropy")):
                with self.assertRaisesRegex(ImportError, says):
                    make([], None)


class Times(Case):
    needs_server = False

    def test_in_documents_are_read_as_the_archive_reads_them(self):
        for text, want in (
            ("2026-03-01T21:04:06Z", "2026-03-01T21:04:06+00:00"),
            ("2026-03-01 21:04", "2026-03-01T21:04:00+00:00"),
            ("2026-03-01T21:04:06.123456789+05:30", "2026-03-01T15:34:06.123456+00:00"),
            ("2026-03-01T21:04:06.5-0200", "2026-03-01T23:04:06.500000+00:00"),
        ):
            self.assertEqual(_tables.moment(text).isoformat(), want)
        for text in ("", "soon", None, 5, "2026-13-01T00:00:00Z", "0001-01-01T00:00:00+14:00"):
            self.assertIsNone(_tables.moment(text), text)
