"""Values of well-known types are recorded as the values that they are."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time as clock
import types
import unittest
from collections import ChainMap, OrderedDict, UserDict, defaultdict, deque, namedtuple
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from enum import Enum, IntEnum
from typing import Any
from unittest import mock

from oda_client import Block
from oda_helper import _secrets, _values
from oda_helper._describe import arguments, text
from support import SOURCE, needs


class Band(Enum):
    ONE = 1
    WIDE = ("a", 2)


class Level(IntEnum):
    LOW = 3


Login = namedtuple("Login", "user password")


@dataclass
class Receptor:
    name: str
    gain: float = 1.5
    band: Band = Band.ONE
    token: str = "geheim"
    hidden: str = field(default="geheim", repr=False)
    next: Any = None


def described(*values):
    found = arguments(values, {})["args"]
    json.dumps(found, allow_nan=False)
    return found


class PlainValues(unittest.TestCase):
    def check(self, cases):
        for value, want in cases:
            with self.subTest(value=repr(value)):
                self.assertEqual(described(value), [want])
                self.assertEqual(type(described(value)[0]), type(want))
                self.assertEqual(described([{"x": value}]), [[{"x": want}]])
                # A result is a text: the repr of the same value.
                self.assertEqual(text(value), repr(want))

    def test_of_the_standard_library(self):
        self.check([
            (datetime(2026, 3, 1, 21, 4, 5, tzinfo=timezone.utc), "2026-03-01T21:04:05+00:00"),
            (date(2026, 3, 1), "2026-03-01"),
            (time(21, 4), "21:04:00"),
            (timedelta(minutes=2), 120.0),
            (pathlib.PurePosixPath("/data/x"), "/data/x"),
            (Band.ONE, 1),
            (Level.LOW, 3),
        ])  # fmt: skip
        self.assertEqual(described(Band.WIDE), [["a", 2]])
        want = {"name": "m001", "gain": 1.5, "band": 1, "token": "***", "next": None}
        self.assertEqual(described(Receptor("m001")), [want])
        self.assertEqual(text(Receptor("m001")), repr(want))
        self.assertEqual(described(Login("ada", "geheim")), [{"user": "ada", "password": "***"}])
        self.assertIn("tm_year=1970", described(clock.gmtime(0))[0])

    def test_of_other_containers_are_what_they_contain(self):
        self.check([(kind({"a": 1}), {"a": 1}) for kind in (OrderedDict, Block, UserDict, ChainMap, types.MappingProxyType)])
        self.check([(defaultdict(list, a=[1]), {"a": [1]}), (deque([1, {"b": 2}]), [1, {"b": 2}]), ({"a": 1}.values(), [1])])
        many = OrderedDict.fromkeys(range(10**5))
        self.assertIn("more)", text(many)[-20:])
        many["self"] = many
        self.assertIn("more)", described(many)[0][-20:])
        loop = OrderedDict()
        loop["self"] = loop
        self.assertEqual(described(loop), ["{'self': {...}}"])

    def test_of_containers_that_misbehave_are_their_repr(self):
        class Far(Mapping):
            """Reads something slow, so it is not read."""

            def __getitem__(self, key):
                raise AssertionError("read")

            __iter__ = __len__ = __getitem__

        class Broken(UserDict):
            def __repr__(self):
                return "<broken>"

            def items(self):
                raise AssertionError("read")

        class Odd(Broken):
            def items(self):
                return ["abc"]

        class Derived(dict):
            """Has methods of its own, which are not called."""

            _fields = ("a",)
            __iter__ = __len__ = items = keys = __getitem__ = Far.__getitem__

        self.assertIn("Far object at", described(Far())[0])
        self.assertIn("Far object at", text([Far()]))
        self.assertEqual((described(Broken(), [Broken()]), text(Broken())), (["<broken>", "[<broken>]"], "<broken>"))
        self.assertEqual((described(Odd()), text(Odd())), (["<broken>"], "<broken>"))
        self.assertEqual(described(Derived(a=1)), [{"a": 1}])

    def test_of_numpy(self):
        numpy = needs("numpy")
        self.check([
            (numpy.float64(1.5), 1.5), (numpy.float32(0.5), 0.5), (numpy.int16(7), 7), (numpy.uint64(2**63), 2**63),
            (numpy.bool_(True), True), (numpy.longdouble(2.5), 2.5), (numpy.str_("m001"), "m001"),
            (numpy.datetime64("2026-03-01T21:04:05.000001"), "2026-03-01T21:04:05.000001"), (numpy.timedelta64(2, "m"), 120.0),
            (numpy.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]), (numpy.array(5.5), 5.5), (numpy.array([]), []),
            (numpy.array([True, False]), [True, False]), (numpy.array(["a", "b"]), ["a", "b"]),
            (numpy.array(["2026-03-01"], dtype="datetime64[D]"), ["2026-03-01"]),
            (numpy.ma.array([1.5, 2.5], mask=[False, True]), [1.5, None]),
            (numpy.array([Band.ONE, None], dtype=object), [1, None]),
        ])  # fmt: skip
        self.assertEqual(described(numpy.float64("nan"), numpy.array([numpy.inf])), ["nan", ["inf"]])
        self.assertEqual(described(numpy.complex128(1 + 2j)), ["(1+2j)"])

    def test_of_arrays_are_bounded(self):
        numpy = needs("numpy")
        cube = numpy.broadcast_to(numpy.float32(1.5), (10**4, 10**4, 10**4))  # 4 TB, if it were copied
        want = {"shape": [10**4] * 3, "dtype": "float32", "first": [1.5] * _values.FIRST_ELEMENTS}
        self.assertEqual(described(cube), [want])
        self.assertEqual(text(cube), repr(want))
        many = described(*[numpy.arange(1000)] * 100)
        self.assertLess(len(json.dumps(many)), 1 << 20)

    def test_of_quantities(self):
        units = needs("astropy.units")
        self.check([
            (1.5 * units.GHz, {"value": 1.5, "unit": "GHz"}),
            ([1, 2] * units.m / units.s, {"value": [1.0, 2.0], "unit": "m / s"}),
        ])  # fmt: skip
        angle = needs("astropy.coordinates").Angle("10d")
        self.assertEqual(described(angle), [{"value": 10.0, "unit": "deg"}])

    def test_that_contain_themselves_or_misbehave_do_no_harm(self):
        loop = Receptor("a")
        loop.next = loop
        self.assertIn("...", described(loop)[0])
        self.assertIn("...", text(loop))
        deep = Receptor("a")
        for _ in range(50):
            deep = Receptor("b", next=[deep, deep])
        self.assertLess(len(json.dumps(described(deep))), 1 << 20)
        broken = Receptor("a")
        del broken.name

        class Bad(datetime):
            def isoformat(self, *_):
                raise ValueError

        self.assertIn("Bad", described(Bad(2026, 3, 1))[0])
        self.assertIn("Receptor", described(broken)[0])

    def test_need_no_library(self):
        code = "import sys, oda_helper, oda_client; print([n for n in ('numpy', 'astropy', 'pandas', 'pydantic') if n in sys.modules])"
        run = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": SOURCE}, capture_output=True, text=True)
        self.assertEqual((run.stdout, run.stderr), ("[]\n", ""))


class Credentials(unittest.TestCase):
    def test_are_masked_by_name_and_by_form(self):
        basic = "Basic dXNlcjpnZWhlaW0tMTIz"  # user:geheim-123
        bearer = "Bearer geheim-1234567890"
        for value in (
            {"headers": {"Authorization": bearer, "Accept": "*/*"}},
            {"headers": {"Proxy-Authorization": basic, "X-Api-Key": "geheim", "Cookie": "geheim", "Set-Cookie": "geheim"}},
            {"api_key": "geheim", "apiKey": "geheim", "PRIVATE_KEY": "geheim", "credentials": ["geheim"], "auth": ("u", "geheim")},
            {b"Authorization": b"geheim"},
            [("Authorization", "geheim"), ("X-Auth-Token", b"geheim")],
            [["Authorization", "geheim"]],
            bearer, "bearer\tgeheim-1234567890", b"Bearer geheim-1234567890", basic, [basic], "x " + basic + " y",
            "GET / HTTP/1.1\r\nAuthorization: Token geheim\r\nHost: x", '{"Authorization": "geheim-1234567890123456"}',
            OrderedDict(password="geheim"), defaultdict(str, {"password": "geheim"}), {"h": Block(token="geheim")}, ChainMap({"token": "geheim"}),
            types.MappingProxyType({"password": "geheim"}), UserDict(password="geheim"), deque([{"password": "geheim"}]),
            Login("ada", "geheim"), [Login("ada", "geheim")], {"password": "geheim"}.items(), {1: {"password": "geheim"}}.values(),
            type("Rows", (list,), {})([{"password": "geheim"}]), {("password", "geheim")}, ("pwd", ["geheim"]), ["api_key", {"x": "geheim"}],
            "http://u:ge@geheim@host/x", "http://ada@example.org:geheim@host", "http://user:geheim@host/x", "postgres://u:geheim@h", {1: "https://user:geheim@host"},
            type("Request", (), {"__repr__": lambda self: "<Request Authorization='Bearer geheim-1'>"})(),
            argparse.Namespace(user="ada", password="geheim"), types.SimpleNamespace(token=b"geheim"), argparse.Namespace(secret="it's \\ geheim"),
            '{"api_key": "geheim", "x": 1}', json.dumps({"body": json.dumps({"passwd": "geheim"})}), b'{"token":"geheim"}', KeyError({"password": "geheim"}),
            "https://host/x?a=1&access_token=geheim&b=2", "--password=geheim", "host=db pwd=geheim user=ada", "PGPASSWORD='geheim' psql",
        ):  # fmt: skip
            with self.subTest(value=repr(value)):
                self.assertNotIn("geheim", json.dumps(described(value)))
                self.assertNotIn("dXNlcjpnZWhlaW0tMTIz", json.dumps(described(value)))
                self.assertNotIn("geheim", text(value))
                self.assertNotIn("dXNlcjpnZWhlaW0tMTIz", text(value))
                self.assertIn("***", text(value))

    def test_in_the_environment_are_masked(self):
        with mock.patch.dict(os.environ, {"ODA_TOKEN": "geheim", "EB_ID": "eb-1"}):
            for value in (os.environ, os.environ.items(), os.environ.keys()):
                with self.subTest(type(value)):
                    self.assertNotIn("geheim", json.dumps(described(value)) + text(value))
                    self.assertIn("EB_ID", text(value))

    def test_in_a_text_leave_the_rest_of_it(self):
        for value, want in (
            ('{"token": "geheim", "target": "M83"}', '{"token": "***", "target": "M83"}'),
            ("Namespace(secret='it\\'s', n=1)", "Namespace(secret='***', n=1)"),
            ("?token=geheim&n=1 pwd='geheim", "?token=***&n=1 pwd='***'"),
        ):
            with self.subTest(value=value):
                self.assertEqual(described(value), [want])

    def test_take_no_long_time_to_find(self):
        for piece in ("token='", "pwd=\\", "token=\"'", "api_key=", "token-", 'secret:"\n'):
            begun = clock.process_time()
            _secrets.masked(piece * (64000 // len(piece)))
            self.assertLess(clock.process_time() - begun, 1, piece)

    def test_are_not_seen_where_there_are_none(self):
        for value in (
            "http://ada@host:8080/a@b",
            "basic calibration", "Basic Tsys measurement", "the bearer of news", "Authorization: required", "http://host:8080/a@b",
            "see http://host/x", ["target", "M83"], {"author": "ada", "keyboard": 1}, "key='M83'", "author='ada'", "password: none needed",
            "login(token=tok, n=3)", "the secret of stars = dust", '{"target": "token", "n": 1}', "monkey=1", "x-auth-level=3",
        ):  # fmt: skip
            with self.subTest(value=value):
                self.assertEqual(described(value), [value])
