import asyncio
import contextlib
import functools
import inspect
import io
import os
import re
import tempfile
import threading
import traceback
from unittest import mock

import oda_helper
from oda_helper import capture_request_response as capture
from support import Case, free_port, wait_until


@capture
def scan(duration, unit="s", *rest, **options):
    """Scans."""
    return "%s%s" % (duration, unit)


@capture
def fail(message):
    raise ValueError(message)


@capture
def outer():
    return scan(1)


class Dish:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return "<Dish %s>" % self.name

    @capture
    def point(self, where, password=None):
        return (self.name, where)

    @classmethod
    @capture
    def make(cls, name):
        return cls(name)

    @capture
    @staticmethod
    def park():
        return "parked"


class ACallIsRecorded(Case):
    def setUp(self):
        super().setUp()
        self.eb_id = oda_helper.create_eb(telescope="ska_mid", sbi_ref="sbi-1")

    def recorded(self):
        self.flushed()
        return self.server.records(self.eb_id)

    def test_with_name_arguments_result_and_both_times(self):
        self.assertEqual(scan(5, "min", 1, fast=True), "5min")
        (record,) = self.recorded()
        sent, received = record.pop("request_sent_at"), record.pop("response_received_at")
        self.assertRegex(sent, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        self.assertLessEqual(sent, received)
        self.assertEqual(
            record,
            {
                "request": "test_capture.scan",
                "request_args": {"args": [5, "min", 1], "kwargs": {"fast": True}},
                "status": "OK",
                "response": {"result": "'5min'"},
            },
        )
        block = self.server.get("/ebs/" + self.eb_id)
        self.assertEqual((block["telescope"], block["sbi_ref"]), ("ska_mid", "sbi-1"))
        self.assertEqual(os.environ["EB_ID"], self.eb_id)

    def test_in_the_archive_in_which_it_began(self):
        @capture
        def moves():
            os.environ.update(ODA_URL="http://127.0.0.1:%d" % free_port(), EB_ID="eb-1")

        moves()
        (record,) = self.recorded()
        self.assertIn("moves", record["request"])

    def test_with_its_error(self):
        with self.assertRaises(ValueError):
            fail("no beam")
        (record,) = self.recorded()
        self.assertEqual(record["status"], "ERROR")
        self.assertEqual(record["error"]["detail"], "ValueError: no beam")
        self.assertRegex(record["error"]["stacktrace"], r'test_capture.py", line \d+, in fail')
        self.assertIn("raise ValueError(message)", record["error"]["stacktrace"])
        self.assertNotIn("oda_helper", record["error"]["stacktrace"])
        self.assertNotIn("response", record)
        self.assertIn("response_received_at", record)

    def test_of_coroutine_functions(self):
        @capture
        async def slew(to):
            await asyncio.sleep(0)
            if to < 0:
                raise RuntimeError("below the horizon")
            return to

        self.assertTrue(inspect.iscoroutinefunction(slew))

        async def run():
            return await asyncio.gather(slew(1), slew(-1), slew(2), return_exceptions=True)

        found = asyncio.run(run())
        self.assertEqual([found[0], str(found[1]), found[2]], [1, "below the horizon", 2])
        self.assertCountEqual([r["status"] for r in self.recorded()], ["OK", "ERROR", "OK"])

    def test_of_a_cancelled_coroutine(self):
        @capture
        async def track():
            await asyncio.sleep(60)

        async def run():
            task = asyncio.ensure_future(track())
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(run())
        (record,) = self.recorded()
        self.assertIn("CancelledError", record["error"]["detail"])

    def test_of_generator_functions_at_their_end(self):
        @capture
        def count(to, fail=False):
            got = yield 0
            for n in range(1, to):
                yield (n, got)
            if fail:
                raise RuntimeError("no beam")
            return "all %d" % to

        self.assertTrue(inspect.isgeneratorfunction(count))
        counting = count(2)
        self.assertEqual([next(counting), counting.send("sent")], [0, (1, "sent")])
        self.assertEqual(self.recorded(), [])  # it has not ended
        with self.assertRaises(StopIteration) as stopped:
            next(counting)
        self.assertEqual(stopped.exception.value, "all 2")
        with self.assertRaisesRegex(RuntimeError, "no beam"):
            list(count(1, fail=True))
        for _ in count(5):
            break  # the caller wants no more
        thrown = count(5)
        next(thrown)
        with self.assertRaises(KeyError):
            thrown.throw(KeyError("x"))
        found = self.recorded()
        self.assertEqual([r["status"] for r in found], ["OK", "ERROR", "OK", "ERROR"])
        self.assertEqual(found[0]["response"], {"result": "'all 2'"})
        self.assertEqual(found[1]["request_args"], {"args": [1], "kwargs": {"fail": True}})
        self.assertEqual(found[2]["response"], {"result": "<closed before its end>"})
        self.assertIn("KeyError", found[3]["error"]["detail"])

    def test_of_asynchronous_generator_functions_at_their_end(self):
        cleaned = []

        @capture
        async def count(to):
            try:
                for n in range(to):
                    try:
                        got = yield n
                    except KeyError:
                        got = yield "caught"
                    if got == "fail":
                        raise RuntimeError("no beam")
            finally:
                await asyncio.sleep(0)
                cleaned.append(to)

        self.assertTrue(inspect.isasyncgenfunction(count))

        async def run():
            self.assertEqual([n async for n in count(3)], [0, 1, 2])
            one = count(4)
            self.assertEqual(await one.__anext__(), 0)
            self.assertEqual(await one.athrow(KeyError("x")), "caught")
            await one.aclose()
            other = count(5)
            await other.__anext__()
            with self.assertRaises(RuntimeError):
                await other.asend("fail")

        asyncio.run(run())
        self.assertEqual(cleaned, [3, 4, 5])
        found = self.recorded()
        self.assertEqual([r["status"] for r in found], ["OK", "OK", "ERROR"])
        self.assertEqual([r["request_args"]["args"] for r in found], [[3], [4], [5]])

    def test_of_objects_that_can_be_called(self):
        class Slew:
            async def __call__(self, to):
                await asyncio.sleep(0)
                return to

        class Count:
            def __call__(self, to):
                yield from range(to)

        async def run():
            return await capture(Slew())(5)

        self.assertEqual(asyncio.run(run()), 5)
        self.assertEqual(asyncio.run(capture(functools.partial(Slew().__call__, 6))()), 6)
        self.assertEqual(list(capture(Count())(2)), [0, 1])
        self.assertEqual(capture(max)(1, 2), 2)
        found = self.recorded()
        self.assertEqual([r["response"]["result"] for r in found], ["5", "6", "None", "2"])
        self.assertTrue(found[0]["request"].endswith("Slew"), found[0])

    def test_with_parentheses(self):
        @capture()
        def slew(to):
            return to

        @oda_helper.capture_request_response()
        async def track():
            return 5

        self.assertEqual((slew(1), asyncio.run(track())), (1, 5))
        self.assertEqual([r["response"]["result"] for r in self.recorded()], ["1", "5"])

    def test_without_credentials(self):
        @capture
        def call(url, headers, api_key=None):
            if api_key == "geheim-2":
                raise ValueError("refused: Authorization: Bearer geheim-1234567890")
            return {"url": url, "token": "geheim"}

        call("http://u:geheim@host", {"Authorization": "Bearer geheim-1"}, "geheim")
        with self.assertRaises(ValueError):
            call("http://host", [("X-Api-Key", "geheim")], api_key="geheim-2")

        @capture
        def login(user, *passwords):
            return user

        login("ada", "geheim", "geheim")
        first, second, third = self.recorded()
        self.assertEqual(third["request_args"]["args"], ["ada", "***", "***"])
        self.assertEqual(first["request_args"]["args"], ["http://u:***@host", {"Authorization": "***"}, "***"])
        self.assertEqual(first["response"]["result"], "{'url': 'http://u:***@host', 'token': '***'}")
        self.assertEqual(second["error"]["detail"], "ValueError: refused: Authorization: ***")
        self.assertNotIn("geheim-1234567890", second["error"]["stacktrace"].replace('raise ValueError("refused: Authorization: Bearer geheim-1234567890")', ""))

    def test_of_methods(self):
        dish = Dish.make("a")
        self.assertEqual(dish.point("zenith", "geheim"), ("a", "zenith"))
        self.assertEqual(Dish.park(), "parked")
        made, pointed, parked = self.recorded()
        self.assertEqual(made["request"], "test_capture.Dish.make")
        self.assertEqual(pointed["request"], "test_capture.Dish.point")
        self.assertEqual(pointed["request_args"]["args"], ["<Dish a>", "zenith", "***"])
        self.assertEqual(pointed["response"], {"result": "('a', 'zenith')"})
        self.assertEqual(parked["request_args"], {"args": [], "kwargs": {}})

    def test_after_the_calls_that_it_makes(self):
        outer()
        self.assertEqual(
            [r["request"] for r in self.recorded()], ["test_capture.scan", "test_capture.outer"]
        )

    def test_with_the_arguments_as_they_were_before_the_call(self):
        @capture
        def consume(items):
            items.clear()
            return items

        consume([1, 2])
        self.assertEqual(self.recorded()[0]["request_args"]["args"], [[1, 2]])

    def test_when_values_are_not_json(self):
        @capture
        def odd(*args):
            return float("nan"), object

        loop = []
        loop.append(loop)
        odd(loop, float("inf"), {1: "x"}, b"\xff", "\udcff", 10**400, threading.Lock(), "x" * 10**6)
        (record,) = self.recorded()
        self.assertEqual(record["request_args"]["args"][:4], ["[[...]]", "inf", "{1: 'x'}", "b'\\xff'"])
        self.assertEqual(record["response"]["result"], "(nan, <class 'object'>)")

    def test_in_the_order_of_each_thread_and_once(self):
        def work(name):
            for i in range(200):
                scan(name, i)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        found = [tuple(r["request_args"]["args"]) for r in self.recorded()]
        self.assertEqual(len(found), 1600)
        for n in range(8):
            self.assertEqual([i for name, i in found if name == n], list(range(200)))

    def test_in_the_block_that_is_current_when_it_begins(self):
        @capture
        def next_block():
            return oda_helper.create_eb()

        second = next_block()
        scan(2)
        (first,) = self.recorded()
        self.assertTrue(first["request"].endswith("next_block"), first)
        self.assertEqual([r["request"] for r in self.server.records(second)], ["test_capture.scan"])

    def test_under_the_name_of_the_user(self):
        self.fresh()
        os.environ["ODA_USER"] = "ada ä"
        eb_id = oda_helper.create_eb()
        scan(1)
        self.flushed()
        metadata = self.server.get("/ebs/" + eb_id)["metadata"]
        self.assertEqual((metadata["created_by"], metadata["last_modified_by"]), ("ada ä", "ada ä"))

    def test_with_the_url_in_any_form(self):
        for variable in ("ODA_URL", "ODA_URI"):
            for end in ("", "/", "/api/v1", "/api/v1/"):
                with self.subTest(variable=variable, end=end):
                    self.fresh()
                    os.environ.pop("ODA_URL", None)
                    os.environ.pop("ODA_URI", None)
                    os.environ[variable] = self.server.url + end
                    self.eb_id = oda_helper.create_eb()
                    scan(1)
                    self.assertEqual(len(self.recorded()), 1)

    def test_and_the_session_is_gone_when_everything_is_stored(self):
        scan(1)
        self.assertEqual(len(self.sessions()), 1)
        self.assertTrue(oda_helper.close())
        self.assertEqual(self.sessions(), [])
        self.assertEqual(oda_helper.lag(), 0)
        scan(2)  # a new session begins
        self.assertEqual(len(self.recorded()), 2)


class WhatHasNotEndedWhenTheProcessEnds(Case):
    def test_is_recorded_once_and_quietly(self):
        eb_id = oda_helper.create_eb()
        process = self.script(
            """
            import asyncio

            @oda_helper.capture_request_response
            def numbers():
                yield 1

            @oda_helper.capture_request_response
            async def later():
                yield 1

            @oda_helper.capture_request_response
            async def sleep():
                await asyncio.sleep(60)

            generator = numbers()
            next(generator)
            asynchronous, coroutine = later(), sleep()
            try:
                asynchronous.__anext__().send(None)
            except StopIteration:
                pass
            loop = asyncio.new_event_loop()
            task = loop.create_task(coroutine)
            loop.run_until_complete(asyncio.sleep(0))
            if os.fork() == 0:
                sys.exit()  # what its parent began is not its own
            os.wait()
            """,
            EB_ID=eb_id,
        )
        self.assertNotIn("Traceback", process.err)
        found = self.server.records(eb_id)
        self.assertEqual([r["request"] for r in found], ["__main__.numbers", "__main__.later", "__main__.sleep"])
        self.assertEqual({r["response"]["result"] for r in found}, {"<not ended when the process ended>"})

    def test_is_recorded_once_although_it_ends_while_the_process_waits(self):
        gone = "http://127.0.0.1:%d" % free_port()
        self.script(
            """
            import asyncio, threading, time

            @oda_helper.capture_request_response
            async def sleep():
                await asyncio.sleep(0.4)

            threading.Thread(target=lambda: asyncio.run(sleep()), daemon=True).start()
            time.sleep(0.2)
            """,
            EB_ID="eb-1", ODA_URL=gone, ODA_EXIT_TIMEOUT="1",
        )  # fmt: skip
        (folder,) = self.sessions()
        with open(os.path.join(folder, "00000001.log"), "rb") as file:
            self.assertEqual(len(file.readlines()), 1)


class TheCallerNoticesNothing(Case):
    needs_server = False

    def test_what_is_wrapped_keeps_its_name_and_signature(self):
        self.assertEqual((scan.__name__, scan.__doc__), ("scan", "Scans."))
        self.assertEqual(list(inspect.signature(scan).parameters), ["duration", "unit", "rest", "options"])

    def test_the_result_is_the_same_object(self):
        os.environ.update(ODA_URL="http://127.0.0.1:9", EB_ID="eb-1")
        thing = object()
        self.assertIs(capture(lambda: thing)(), thing)

    def test_the_exception_is_the_same_with_its_traceback(self):
        os.environ.update(ODA_URL="http://127.0.0.1:9", EB_ID="eb-1")
        error = KeyError("x")
        error.__context__ = context = OSError()

        def raises():
            raise error

        try:
            capture(raises)()
        except KeyError as caught:
            self.assertIs(caught, error)
        self.assertIs(error.__context__, context)
        names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        self.assertEqual(names[-2:], ["recorded", "raises"])
        for base in (KeyboardInterrupt, SystemExit, GeneratorExit):
            with self.assertRaises(base):
                capture(functools.partial(next, (_ for _ in ()).throw(base())))()

    def test_without_a_block_or_an_address_a_warning_is_logged_once(self):
        for env, variable in [
            ({}, "EB_ID"),
            ({"ODA_URL": "nonsense://x", "EB_ID": "eb-1"}, "ODA_URL"),
            ({"ODA_URL": "http://127.0.0.1:9"}, "EB_ID"),
            ({"ODA_URL": "http://127.0.0.1:9", "EB_ID": "../x"}, "EB_ID"),
        ]:
            with self.subTest(env=env):
                for name in ("ODA_URL", "EB_ID"):
                    os.environ.pop(name, None)
                os.environ.update(env)
                self.fresh()
                with self.assertLogs("oda_helper", "WARNING") as logs:
                    self.assertEqual([scan(1), scan(2)], ["1s", "2s"])
                    with self.assertRaises(ValueError):
                        fail("x")
                self.assertEqual(len(logs.output), 1, logs.output)
                self.assertIn(variable, logs.output[0])
                advice = "Set ODA_URL to" if variable == "ODA_URL" else "oda_helper.create_eb()"
                self.assertIn(advice, logs.output[0])
                status = oda_helper.status()  # says it whenever asked
                self.assertEqual((status.recording, status.not_recorded), (False, 3))
                self.assertIn(advice, str(status))
                self.assertIn("3 calls of this process were not recorded", repr(status))
                self.assertEqual(self.sessions(), [])

    def test_nothing_is_raised_if_the_spool_cannot_be_made(self):
        os.environ.update(ODA_URL="http://127.0.0.1:9", EB_ID="eb-1", ODA_SPOOL="/dev/null/x")
        tempfile.tempdir = "/dev/null"
        self.addCleanup(setattr, tempfile, "tempdir", None)
        with self.assertLogs("oda_helper", "ERROR") as logs:
            self.assertEqual(scan(1), "1s")
        self.assertTrue(logs.output)

    def test_a_call_whose_recording_fails_is_counted(self):
        os.environ.update(ODA_URL="http://127.0.0.1:9", EB_ID="eb-1")
        for step in ("arguments", "text"):  # before the call, and after it
            self.fresh()
            with mock.patch("oda_helper._capture." + step, side_effect=RecursionError), self.assertLogs("oda_helper", "ERROR"):
                self.assertEqual(scan(1), "1s")
            self.assertEqual(oda_helper.status().not_recorded, 1)
            self.assertFalse(oda_helper.flush(0))

    def test_the_status_says_what_is_recorded_and_where(self):
        os.environ.update(ODA_URL="http://127.0.0.1:%d" % free_port(), EB_ID="eb-1", ODA_USER="ada")
        before = oda_helper.status()
        self.assertEqual(str(before), "Calls are recorded in eb-1 of %s/api/v1." % os.environ["ODA_URL"])
        self.assertEqual((before.user, before.spool, before.waiting, before.problems), ("ada", self.spool, 0, []))
        with self.assertLogs("oda_helper", "WARNING") as logs:
            scan(1)
            wait_until(lambda: logs.output, "the warning")
        status = oda_helper.status()
        self.assertEqual((status.recording, status.waiting), (True, 1))
        self.assertIn("is unavailable", str(status))
        self.assertIn("1 records wait in", str(status))
        os.environ["ODA_TOKEN_FILE"] = "/none"
        self.assertIn("There is no token to send", str(oda_helper.status()))

    def test_nothing_is_printed(self):
        os.environ.update(ODA_URL="http://127.0.0.1:9", EB_ID="eb-1")
        out = io.StringIO()
        with contextlib.redirect_stdout(out), self.assertLogs("oda_helper"):
            scan(1)
            oda_helper.close(0.2)
        self.assertEqual(out.getvalue(), "")

    def test_an_identifier_is_minted_if_there_is_no_archive(self):
        found = {oda_helper.create_eb() for _ in range(20)}
        self.assertEqual(len(found), 20)
        for eb_id in found:
            self.assertTrue(re.match(r"eb-[0-9a-hjkmnp-tv-z]{9,13}\Z", eb_id), eb_id)
