import dataclasses
import datetime
import enum
import json
import os
from typing import Dict, List, Optional
from unittest import mock

import oda_helper
from oda_helper import _http
from proxy import Proxy
from support import Case, free_port, needs


class Model:
    """Like the classes of the data model."""

    def __init__(self, document):
        self.document = document

    def model_dump_json(self):
        return json.dumps(self.document)


class Mapped:
    def to_dict(self):
        return {"telescope": "ska_low"}


@dataclasses.dataclass
class Metadata:
    version: int
    created_on: datetime.datetime
    created_by: str = ""
    last_modified_by: str = ""
    last_modified_on: Optional[datetime.datetime] = None


class Band(enum.Enum):
    ONE = "band 1"


@dataclasses.dataclass
class Scan:
    band: Band
    seconds: float


@dataclasses.dataclass
class Definition:
    name: str
    sbd_id: Optional[str] = None
    metadata: Optional[Metadata] = None
    scans: List[Scan] = dataclasses.field(default_factory=list)
    by_name: Dict[str, Scan] = dataclasses.field(default_factory=dict)
    made: int = dataclasses.field(default=0, init=False)


class AModelIsStored(Case):
    """A model comes back as a model of its class, which can be changed and stored again."""

    def check(self, model, change):
        stored = oda_helper.save(model)
        self.assertIs(type(stored), type(model))
        self.assertEqual(stored.metadata.version, 1)
        again = oda_helper.save(change(stored))
        self.assertIs(type(again), type(model))
        self.assertEqual((again.name, again.metadata.version, again.sbd_id), ("b", 2, stored.sbd_id))
        self.assertEqual(again.metadata.created_on.utcoffset(), datetime.timedelta(0))
        self.assertEqual(self.server.get("/sbds/" + again.sbd_id)["name"], "b")
        with self.assertRaises(oda_helper.Conflict):
            oda_helper.save(stored)
        return again

    def test_that_is_a_dataclass(self):
        model = Definition("a", scans=[Scan(Band.ONE, 1.5)], by_name={"x": Scan(Band.ONE, 2.5)})
        model.made = 7
        again = self.check(model, lambda stored: dataclasses.replace(stored, name="b"))
        self.assertEqual((again.scans, again.by_name), (model.scans, model.by_name))
        self.assertIs(type(again.metadata), Metadata)

    def test_that_is_of_pydantic(self):
        pydantic = needs("pydantic")
        for base in (pydantic.BaseModel, needs("pydantic.v1").BaseModel):
            with self.subTest(base.__module__):

                class Meta(base):
                    version: int
                    created_by: str
                    created_on: datetime.datetime
                    last_modified_by: str
                    last_modified_on: datetime.datetime

                class Model(base):
                    name: str
                    sbd_id: Optional[str] = None
                    metadata: Optional[Meta] = None

                copy = "model_copy" if hasattr(base, "model_copy") else "copy"
                self.check(Model(name="a"), lambda stored: getattr(stored, copy)(update={"name": "b"}))

    def test_that_has_to_dict_and_from_dict(self):
        class Own(Mapped):
            def __init__(self, document=None):
                self.document = document

            from_dict = classmethod(lambda cls, document: cls(document))

        stored = oda_helper.save(Own())
        self.assertIs(type(stored), Own)
        self.assertEqual(stored.document["telescope"], "ska_low")

    def test_that_has_to_dict_with_dates_and_models_in_it(self):
        day = datetime.date(2026, 3, 1)
        noon = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.timezone.utc)

        class Inner:
            def model_dump(self, mode):
                return {"mode": mode}

        class Own:
            def __init__(self, document=None):
                self.document = document or {"when": noon, "days": (day,), "scan": Scan(Band.ONE, 1.5), "inner": Inner(), "at": noon.time()}

            def to_dict(self):
                if "metadata" not in self.document:
                    return self.document
                metadata = dict(self.document["metadata"])
                for name in ("created_on", "last_modified_on"):
                    metadata[name] = datetime.datetime.fromisoformat(metadata[name].replace("Z", "+00:00"))
                return dict(self.document, metadata=metadata)

            from_dict = classmethod(lambda cls, document: cls(document))

        stored = oda_helper.save(Own())
        want = {"when": "2026-03-01T12:00:00+00:00", "days": ["2026-03-01"], "scan": {"band": "band 1", "seconds": 1.5},
                "inner": {"mode": "json"}, "at": "12:00:00"}  # fmt: skip
        self.assertEqual({name: stored.document[name] for name in want}, want)
        again = oda_helper.save(stored)
        self.assertEqual(again.document["metadata"]["version"], 2)
        self.assertEqual(oda_helper.save({"when": day})["when"], "2026-03-01")

    def test_although_its_class_does_not_accept_what_is_stored(self):
        class Strict(Mapped):
            @classmethod
            def from_dict(cls, document):
                raise TypeError("no metadata, please")

        with self.assertLogs("oda_helper", "WARNING") as logs:
            stored = oda_helper.save(Strict())
        self.assertEqual(stored, self.server.get("/sbds/" + stored["sbd_id"]))
        self.assertIn("The document is stored", logs.output[0])


class ADefinitionIsStored(Case):
    def test_under_a_new_identifier(self):
        for sbd in (
            {"telescope": "ska_low"},
            {"telescope": "ska_low", "sbd_id": None},
            '{"telescope": "ska_low"}',
            Model({"telescope": "ska_low"}),
            Mapped(),
        ):
            with self.subTest(sbd=sbd):
                stored = oda_helper.save(sbd)
                self.assertEqual(stored, self.server.get("/sbds/" + stored["sbd_id"]))
                self.assertEqual(stored["telescope"], "ska_low")
                self.assertEqual(stored["metadata"]["version"], 1)

    def test_again_with_the_metadata_that_was_read(self):
        first = oda_helper.save({"name": "a"})
        first["name"] = "b"
        second = oda_helper.save(first)
        self.assertEqual((second["name"], second["metadata"]["version"]), ("b", 2))
        with self.assertRaises(oda_helper.OdaError) as caught:
            oda_helper.save(first)
        self.assertEqual(caught.exception.status, 422)
        self.assertEqual(caught.exception.type, "urn:oda:problem:metadata-mismatch")
        self.assertIn("version", str(caught.exception))
        self.assertIsInstance(caught.exception, oda_helper.Conflict)
        self.assertIn("/metadata/version", [fault["pointer"] for fault in caught.exception.errors])

    def test_or_may_be_if_the_answer_is_lost(self):
        proxy = Proxy(self.server.port, lose=3)
        self.addCleanup(proxy.close)
        os.environ["ODA_URL"] = proxy.url
        for sbd, advice in (({"sbd_id": "sbd-save-lost"}, "read it"), ({}, "look for it")):
            with self.assertRaisesRegex(oda_helper.OdaUnreachable, "may or may not be stored: " + advice):
                oda_helper.save(sbd)
        self.assertEqual(self.server.get("/sbds/sbd-save-lost")["metadata"]["version"], 1)
        lost = [ConnectionResetError("it was cut off"), ConnectionRefusedError()]
        with mock.patch.object(_http.Client, "request", side_effect=lost):
            with self.assertRaisesRegex(oda_helper.OdaUnreachable, "cut off.* may or may not be stored"):
                oda_helper.save({})

    def test_or_an_exception_says_why_not(self):
        for sbd, kind in (("[]", ValueError), ({"sbd_id": 5}, ValueError), ({"sbd_id": "a/b"}, oda_helper.OdaError)):
            with self.subTest(sbd=sbd), self.assertRaises(kind):
                oda_helper.save(sbd)
        os.environ["ODA_URL"] = "http://127.0.0.1:%d" % free_port()
        with self.assertRaises(oda_helper.OdaUnreachable) as caught:
            oda_helper.save({})
        self.assertNotIn("may or may not", str(caught.exception))
        with self.assertRaises(ConnectionError):
            oda_helper.save({"sbd_id": "sbd-1"})
        os.environ["ODA_URL"] = "ftp://x"
        with self.assertRaisesRegex(oda_helper.OdaError, "ODA_URL"):
            oda_helper.save({})
