"""A spool in places where others can write. The rules are those of client/recorder/private_test.go."""

import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer

import oda_helper
from oda_helper import _folder, _settings, _spool
from oda_helper import capture_request_response as capture
from oda_helper._visible import visible
from support import PATIENCE, SOURCE, Case, binary, free_port
from test_outage import numbers

ANOTHER = 65432  # a user who has nothing to do with the tests


@capture
def scan(n):
    return n


def give_away(path):
    """Makes another user the owner of a file."""
    if os.geteuid() != 0:
        raise unittest.SkipTest("only root can give a file to another user")
    os.chown(path, ANOTHER, ANOTHER, follow_symlinks=False)


def writable(path, mode):
    os.mkdir(path, 0o700)
    os.chmod(path, mode)


def foreign(path):
    os.mkdir(path, 0o755)
    give_away(path)


def make_file(path, mode=0o600):
    with open(path, "w") as file:
        file.write("theirs\n")
    os.chmod(path, mode)


def foreign_file(path):
    make_file(path, 0o644)
    give_away(path)


class ASpoolThatOthersCanWriteTo(Case):
    def test_is_refused_and_records_are_kept_elsewhere(self):
        elsewhere = os.path.join(self.spool, "elsewhere")
        os.mkdir(elsewhere)
        for what, make, says in (
            ("link", lambda path: os.symlink(elsewhere, path), "is a link"),
            ("file", make_file, "is not a folder"),
            ("pipe", os.mkfifo, "is not a folder"),
            ("group", lambda path: writable(path, 0o770), "chmod go-w"),
            ("all", lambda path: writable(path, 0o1777), "chmod go-w"),
            ("foreign", foreign, "does not belong to"),
        ):
            with self.subTest(what):
                spool = os.path.join(self.spool, what)
                make(spool)
                os.environ["ODA_SPOOL"] = spool
                self.fresh()
                with self.assertLogs("oda_helper", "WARNING") as logs:
                    eb_id = oda_helper.create_eb()
                    scan(1)
                    self.flushed()
                self.assertIn("Records are kept in " + self.spare, logs.output[0])
                self.assertIn(says, logs.output[0])
                self.assertEqual(numbers(self.server.records(eb_id)), [1])
                self.assertEqual(os.listdir(elsewhere), [])
                # Whoever wants it sent learns that it cannot be.
                self.fresh()
                with self.assertLogs("oda_helper", "ERROR") as logs:
                    self.assertFalse(oda_helper.drain(PATIENCE))
                self.assertIn(says, logs.output[0])

    def test_is_used_again_after_what_the_message_says(self):
        os.chmod(self.spool, 0o775)
        with self.assertRaises(_folder.Unsafe) as raised:
            _settings.make_spool(self.spool)
        subprocess.run(["sh", "-c", "chmod" + str(raised.exception).split("chmod")[1]], check=True)
        _settings.make_spool(self.spool)

    def test_among_the_temporary_files_does_not_stop_the_recording(self):
        os.environ["ODA_SPOOL"] = os.path.join(self.spool, "file", "spool")
        make_file(os.path.join(self.spool, "file"))
        os.symlink(self.spool, self.spare)  # somebody was here first
        foreigner = self.spare + "-1"
        os.symlink(self.spool, foreigner)
        env = {"ODA_URL": "http://127.0.0.1:%d" % free_port(), "EB_ID": "eb-1", "ODA_EXIT_TIMEOUT": "0"}
        for _ in range(2):
            said = self.script("scan(1)", **env).err
        (mine,) = _settings.spare_folders()
        self.assertIn("Records are kept in " + mine, said)
        self.assertEqual(os.stat(mine).st_mode & 0o777, 0o700)
        self.assertEqual(len(os.listdir(mine)), 2)
        self.assertEqual(os.listdir(self.spool), ["file"])
        # The archive's own program finds them, too.
        done = subprocess.run([binary(), "record", "status"], env=dict(os.environ, ODA_SPOOL=""), capture_output=True, text=True)
        self.assertEqual(done.stdout.count(mine), 2, done)


class ASession(Case):
    needs_server = False

    def session(self):
        """One whose only line has to be set aside."""
        folder = os.path.join(self.spool, "eb-1.0123456789abcdef")
        shutil.rmtree(folder, True)
        os.mkdir(folder, 0o700)
        block = _spool.Block("eb-1", "http://127.0.0.1:%d/api/v1" % free_port(), None, None)
        for name, text in (("block.json", block.encode()), ("00000001.log", b"no line of a spool\n"), ("lock", b"")):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(text)
        return folder

    def test_with_a_file_that_others_could_have_made_is_left_alone(self):
        precious = os.path.join(tempfile.mkdtemp(dir=os.environ["TMPDIR"]), "precious")
        make_file(precious)
        for what, make, says in (
            ("link", lambda path: os.symlink(precious, path), "is a link"),
            ("hard link", lambda path: os.link(precious, path), "hard link"),
            ("pipe", os.mkfifo, "is not a file"),
            ("folder", os.mkdir, "is not a file"),
            ("writable", lambda path: make_file(path, 0o620), "chmod go-w"),
            ("foreign", foreign_file, "does not belong to"),
        ):
            for name in ("damaged.log", "00000001.log", "block.json", "lock"):
                with self.subTest(what, name=name):
                    path = os.path.join(self.session(), name)
                    if os.path.exists(path):
                        os.unlink(path)
                    make(path)
                    self.fresh()
                    with self.assertLogs("oda_helper", "ERROR") as logs:
                        self.assertFalse(oda_helper.drain(PATIENCE))
                    self.assertIn(says, logs.output[0])
                    with open(precious) as file:
                        self.assertEqual(file.read(), "theirs\n")
                    self.assertTrue(os.path.lexists(path))

    def test_is_sent_after_what_the_message_says(self):
        folder = self.session()
        os.chmod(folder, 0o770)
        with self.assertLogs("oda_helper", "ERROR") as logs:
            self.assertFalse(oda_helper.drain(PATIENCE))
            self.assertIn("chmod go-w " + folder, logs.output[0])
            os.chmod(folder, 0o700)
            oda_helper.drain(PATIENCE)
        self.assertTrue(os.path.exists(os.path.join(folder, "damaged.log")))

    def test_has_links_replaced_and_not_followed(self):
        folder = self.session()
        precious = os.path.join(os.environ["TMPDIR"], "precious")
        make_file(precious)
        for name in ("shipped", "shipped.tmp"):
            os.symlink(precious, os.path.join(folder, name))
        with self.assertLogs("oda_helper", "ERROR"):
            oda_helper.drain(PATIENCE)
        with open(precious) as file:
            self.assertEqual(file.read(), "theirs\n")
        with open(os.path.join(folder, "shipped")) as file:
            self.assertEqual(file.read(), "1 19\n")

    def test_of_another_user_is_left_alone(self):
        folder = self.session()
        give_away(folder)
        with self.assertLogs("oda_helper", "ERROR") as logs:
            self.assertFalse(oda_helper.drain(PATIENCE))
        self.assertIn("does not belong to", logs.output[0])
        self.assertEqual(len(os.listdir(folder)), 3)

    def test_is_private_whatever_the_umask(self):
        spool = os.path.join(self.spool, "made", "here")
        url = "http://127.0.0.1:%d" % free_port()
        self.script("os.umask(0)\nscan(1)", ODA_SPOOL=spool, ODA_URL=url, EB_ID="eb-1", ODA_EXIT_TIMEOUT="0")
        seen = []
        for folder, _, names in os.walk(os.path.dirname(spool)):
            self.assertEqual(os.stat(folder).st_mode & 0o777, 0o700, folder)
            for name in names:
                seen.append(name)
                self.assertEqual(os.stat(os.path.join(folder, name)).st_mode & 0o777, 0o600, name)
        self.assertLessEqual({"lock", "block.json", "00000001.log"}, set(seen))

    def test_that_is_moved_away_is_written_and_read_where_it_is(self):
        session = _folder.Folder(self.spool).make("eb-1.0123456789abcdef")
        os.rename(self.spool, self.spool + "-moved")
        self.addCleanup(shutil.rmtree, self.spool + "-moved", True)
        os.symlink(os.environ["TMPDIR"], self.spool)  # somebody hopes that it is followed
        self.addCleanup(os.unlink, self.spool)
        session.replace("shipped", b"1 0\n")
        self.assertEqual((session.read("shipped"), session.names()), (b"1 0\n", ["shipped"]))
        self.assertEqual(os.listdir(os.environ["TMPDIR"]), [])


class WhatAServerSays(Case):
    needs_server = False

    def test_commands_no_terminal(self):
        self.assertEqual(visible("a \x1b[31m\u202e\n\x9b\ud800é"), "a \\x1b[31m\\u202e\\n\\x9b\\ud800é")
        heard = []

        class Hostile(BaseHTTPRequestHandler):
            def do_POST(self):
                heard.append(self.headers.get("Authorization"))
                self.rfile.read(int(self.headers["Content-Length"]))
                body = b'{"type":"urn:oda:problem:not-authenticated","detail":"No.\\u001b]0;owned\\u0007\\u202e"}'
                self.send_response(401)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        with HTTPServer(("127.0.0.1", 0), Hostile) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.addCleanup(server.shutdown)
            url = "http://127.0.0.1:%d" % server.server_port
            said = self.script("scan(1)\noda_helper.flush(2)\nprint(oda_helper.status())", ODA_URL=url, EB_ID="eb-1", ODA_EXIT_TIMEOUT="0")
            done = subprocess.run(
                [sys.executable, "-m", "oda_helper", "1"], capture_output=True, text=True, timeout=60,
                env=dict(os.environ, PYTHONPATH=SOURCE, ODA_TOKEN="secret", ODA_URL="http://127.0.0.1:1"),
            )  # fmt: skip
            server.shutdown()
        self.assertEqual(done.returncode, 1)
        for text in (said.err, said.out, done.stderr):
            self.assertIn("No.\\x1b]0;owned\\x07\\u202e", text)
            self.assertTrue(text.replace("\n", "").isprintable(), repr(text))
        self.assertEqual(set(heard), {None})
        self.assertIn("It gets none, since only the spool names it", done.stderr)

    def test_is_escaped_before_any_handler_gets_it(self):
        with self.assertLogs("oda_helper", "WARNING") as logs:
            logging.getLogger("oda_helper").warning("%s of %d %%", "\x1b[2J", 5)
            logging.getLogger("oda_helper").warning("%s of %d %%", "all", 5)
        self.assertEqual([each.getMessage() for each in logs.records], ["\\x1b[2J of 5 %", "all of 5 %"])
