import json
import os

import oda_helper
from support import Case, free_port


class Model:
    """Like the classes of the data model."""

    def __init__(self, document):
        self.document = document

    def model_dump_json(self):
        return json.dumps(self.document)


class Mapped:
    def to_dict(self):
        return {"telescope": "ska_low"}


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

    def test_or_an_exception_says_why_not(self):
        for sbd, kind in (("[]", ValueError), ({"sbd_id": 5}, ValueError), ({"sbd_id": "a/b"}, oda_helper.OdaError)):
            with self.subTest(sbd=sbd), self.assertRaises(kind):
                oda_helper.save(sbd)
        os.environ["ODA_URL"] = "http://127.0.0.1:%d" % free_port()
        with self.assertRaises(oda_helper.OdaUnreachable):
            oda_helper.save({})
        with self.assertRaises(ConnectionError):
            oda_helper.save({"sbd_id": "sbd-1"})
        del os.environ["ODA_URL"]
        with self.assertRaisesRegex(oda_helper.OdaError, "ODA_URL"):
            oda_helper.save({})
