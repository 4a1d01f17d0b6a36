import json
import socket
import unittest
from enum import Enum

from oda_helper import _describe
from oda_helper._describe import arguments, text
from oda_helper._failure import failure


class Colour(str, Enum):
    RED = "red"


class Bad:
    def __repr__(self):
        raise ValueError("no")


class Worse:
    def __repr__(self):
        return 5


class Endless:
    def __repr__(self):
        return repr(self)


class Lazy:
    """Fails the test if anything but its repr is used."""

    def __getattribute__(self, name):
        raise AssertionError("asked for " + name)

    def __iter__(self):
        raise AssertionError("iterated")

    def __bool__(self):
        raise AssertionError("asked for its truth")

    __len__ = __eq__ = __str__ = __bool__

    def __repr__(self):
        return "<lazy>"


class TextOfAValue(unittest.TestCase):
    def test_is_its_repr_if_that_is_short(self):
        values = [
            None, True, 5, -1.5, 1j, "it's", b"ab", bytearray(b"x"), [], [1, [2]], (), (1,), (1, 2),
            {}, {"a": {1: 2}}, set(), {1}, frozenset(), frozenset([1]),
            float("nan"), 10**100, ..., range(3), [None, {"x": (1, "é")}],
        ]  # fmt: skip
        for value in values:
            with self.subTest(value=value):
                self.assertEqual(text(value), repr(value))

    def test_is_bounded_for_large_values(self):
        huge = [
            "x" * 10**8, b"x" * 10**8, [0] * 10**7, {i: "y" * 100 for i in range(10**5)},
            1 << 10**8, [["z" * 10**6] * 100] * 100, type("Big", (), {"__repr__": lambda s: "b" * 10**7})(),
        ]  # fmt: skip
        for value in huge:
            with self.subTest(type=type(value)):
                self.assertLess(len(text(value)), _describe.MAX_TEXT + 1000)
                self.assertLess(len(text(value, 100)), 1100)

    def test_survives_values_that_misbehave(self):
        loop = [1]
        loop.append(loop)
        ring = {"a": loop}
        ring["b"] = ring
        deep = []
        for _ in range(5000):
            deep = [deep]
        cases = [
            (loop, "[1, [...]]"),
            (ring, "{'a': [1, [...]], 'b': {...}}"),
            (Bad(), "<Bad: its repr failed with ValueError>"),
            ([Worse()], "[<Worse: its repr failed with TypeError>]"),
            (Endless(), "<Endless: its repr failed with RecursionError>"),
            (Lazy(), "<lazy>"),
            ("\udc80", r"'\udc80'"),
        ]
        for value, want in cases:
            with self.subTest(want=want):
                self.assertEqual(text(value), want)
        self.assertIn("[...]", text(deep))


class Arguments(unittest.TestCase):
    def described(self, *args, **kwargs):
        found = arguments(args, kwargs)
        # Strict JSON, without lone surrogates, and nothing lost on the way.
        written = json.dumps(found, allow_nan=False, ensure_ascii=False).encode("utf-8")
        self.assertEqual(json.loads(written), found)
        return found

    def test_that_are_json_stay_json(self):
        value = {"a": [1, 2.5, None, True, "é", {"b": []}], "c": "x" * 50000}
        self.assertEqual(
            self.described(value, 7, k=(1, 2)), {"args": [value, 7], "kwargs": {"k": [1, 2]}}
        )

    def test_that_are_not_json_become_text(self):
        with socket.socket() as plug:
            cases = [
                (float("nan"), "nan"), (float("-inf"), "-inf"), (b"\x00", "b'\\x00'"), ({1: 2}, "{1: 2}"),
                ({1, }, "{1}"), (plug, repr(plug)), (Lazy(), "<lazy>"),
                (Bad(), "<Bad: its repr failed with ValueError>"), ("a\ud800", "a\\ud800"),
                (Colour.RED, "red"), (True, True), (1 << 300, repr(1 << 300)),
                ({"a": b"x", "\ud800": 1}, {"a": "b'x'", "\\ud800": 1}),
            ]  # fmt: skip
            for value, want in cases:
                with self.subTest(want=want):
                    self.assertEqual(self.described(value)["args"], [want])

    def test_that_contain_themselves_become_text_and_leave_the_others_alone(self):
        loop = {"a": 1}
        loop["self"] = loop
        found = self.described(loop, [1], k=loop)
        self.assertEqual(found["args"], ["{'a': 1, 'self': {...}}", [1]])
        self.assertEqual(found["kwargs"], {"k": "{'a': 1, 'self': {...}}"})

    def test_that_are_huge_are_bounded_together(self):
        found = self.described(*["x" * 10**6] * 100, k=[0] * 10**6, **{"n%d" % i: "y" for i in range(3000)})
        self.assertLess(len(json.dumps(found)), 1 << 20)
        self.assertLess(len(json.dumps(self.described(*range(10**5)))), 1 << 20)

    def test_with_a_secret_name_are_masked(self):
        found = arguments(("u", "geheim"), {"api_token": "geheim", "options": {"Password": "geheim"}}, frozenset([1]))
        self.assertNotIn("geheim", json.dumps(found))
        self.assertEqual(found["args"], ["u", "***"])
        # This also holds if the value is written as text.
        self.assertNotIn("geheim", json.dumps(arguments(({1: 2, "secret": "geheim"},), {})))


class Failures(unittest.TestCase):
    def caught(self, function):
        try:
            function()
        except BaseException as error:
            return error

    def test_have_type_text_and_a_bounded_trace(self):
        def deep(n):
            if n:
                deep(n - 1)
            raise KeyError("x" * 10**6)

        described = failure(self.caught(lambda: deep(500)))
        self.assertTrue(described["detail"].startswith("KeyError: 'xxx"))
        self.assertIn(", in deep", described["stacktrace"])
        self.assertLess(len(json.dumps(described)), 40000)

    def test_name_their_causes(self):
        def fails():
            try:
                1 / 0
            except ZeroDivisionError as cause:
                raise RuntimeError("outer") from cause

        trace = failure(self.caught(fails))["stacktrace"]
        self.assertLess(trace.index("ZeroDivisionError"), trace.index("RuntimeError: outer"))

    def test_survive_an_exception_that_misbehaves(self):
        class Mute(Exception):
            def __str__(self):
                raise ValueError

        error = Mute()
        error.__cause__ = error
        self.assertIn("its text failed with ValueError", failure(error)["detail"])
