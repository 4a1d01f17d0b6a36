"""Shared by the tests: a real archive, and scripts that run as processes."""

import atexit
import importlib
import importlib.util
import json
import logging
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
import urllib.request
from unittest import mock

import oda_helper
from oda_helper import _capture, _process

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(HERE), "src")
TREE = os.path.dirname(os.path.dirname(HERE))
NOBODY = "http://127.0.0.1:9"  # an address where nothing listens
PATIENCE = 20.0  # the machine may be busy

os.umask(0o022)  # sessions are folders that the tests make, and nobody else may write to them

# Without a handler, Python prints log messages to stderr.
logging.getLogger("oda_helper").addHandler(logging.NullHandler())

CLEARED = (
    "ODA_URL", "ODA_URI", "EB_ID", "ODA_USER", "JUPYTERHUB_USER", "ODA_TOKEN", "ODA_TOKEN_FILE", "ODA_SPOOL_LIMIT",
    "ODA_SPOOL_SYNC", "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
)  # fmt: skip

PREAMBLE = """
import os, sys, time, oda_helper

@oda_helper.capture_request_response
def scan(n):
    return n
"""

_built = []
_shared = []


def binary():
    """The path of oda: ODA_BIN, or built from the tree; skips the test where there is no Go."""
    given = os.environ.get("ODA_BIN")
    if given:
        return given
    if not _built:
        if not shutil.which("go"):
            raise unittest.SkipTest("needs the archive: set ODA_BIN, or install Go")
        folder = tempfile.mkdtemp(prefix="oda-bin-")
        atexit.register(shutil.rmtree, folder, True)
        path = os.path.join(folder, "oda")
        env = dict(os.environ, CGO_ENABLED="0")
        command = ["go", "build", "-buildvcs=false", "-o", path, "./cmd/oda"]
        done = subprocess.run(command, cwd=TREE, env=env, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError("the archive does not build: " + done.stderr)
        _built.append(path)
    return _built[0]


def has(package):
    """Whether a package is installed."""
    return importlib.util.find_spec(package.partition(".")[0]) is not None


def needs(module):
    """A module that the packages do not need themselves; skips the test if it is not installed."""
    if not has(module):
        raise unittest.SkipTest("needs %s: scripts/setup science, and python/.venv/bin/python" % module)
    return importlib.import_module(module)


def free_port():
    """A port that nobody listens on, and that the system gives to no connection."""
    while True:
        try:
            with socket.create_server(("127.0.0.1", random.randrange(15000, 32000))) as listener:
                return listener.getsockname()[1]
        except OSError:
            continue


class Server:
    """An archive in its own process, which can be stopped and restarted."""

    def __init__(self, *flags):
        self._binary, self._flags = binary(), flags
        self.folder = tempfile.mkdtemp(prefix="oda-server-")
        self.port = free_port()
        self.url = "http://127.0.0.1:%d" % self.port
        self._process = None

    def start(self):
        """Starts it and waits until it answers."""
        database = "sqlite:" + os.path.join(self.folder, "archive.db")
        command = [self._binary, "serve", "--listen", "127.0.0.1:%d" % self.port, "--db", database, *self._flags]
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until(lambda: self._ready() or self._process.poll() is not None, "the archive starts")
        if self._process.poll() is not None:
            raise AssertionError("the archive ended: " + self.log())
        return self

    def log(self):
        """What it has logged so far."""
        with open(os.path.join(self.folder, "log")) as log:
            return log.read()

    def _ready(self):
        try:
            return urllib.request.urlopen(self.url + "/readyz", timeout=5).status == 200
        except OSError:
            return False

    def stop(self):
        """Kills it, which the archive promises to survive."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def remove(self):
        """Stops it for good."""
        self.stop()
        shutil.rmtree(self.folder, True)

    def get(self, path):
        """The answer to a GET below /api/v1."""
        with urllib.request.urlopen(self.url + "/api/v1" + path, timeout=PATIENCE) as answer:
            return json.load(answer)

    def records(self, eb_id):
        """The records of a block, in order."""
        return self.get("/ebs/" + eb_id).get("request_responses", [])


def shared():
    """The archive of all tests that do not need their own."""
    if not _shared:
        server = Server()
        atexit.register(server.remove)
        _shared.append(server.start())
    return _shared[0]


def wait_until(done, what, seconds=PATIENCE):
    """Waits until a condition holds, or fails."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise AssertionError("gave up waiting for " + what)
        time.sleep(0.01)


class Case(unittest.TestCase):
    """A test with its own spool and environment.

    ``server`` is an archive that all tests share: none of them may stop it.
    """

    needs_server = True

    @classmethod
    def setUpClass(cls):
        if cls.needs_server:
            cls.server = shared()

    def setUp(self):
        self.spool = tempfile.mkdtemp(prefix="oda-spool-")
        self.addCleanup(shutil.rmtree, self.spool, True)
        # The spare spool is among the temporary files.
        temporary = tempfile.mkdtemp(prefix="oda-tmp-")
        self.addCleanup(shutil.rmtree, temporary, True)
        self.spare = os.path.join(temporary, "oda-spool-%d" % os.getuid())
        patched = mock.patch.object(tempfile, "tempdir", temporary)
        patched.start()
        self.addCleanup(patched.stop)
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        for name in CLEARED:
            os.environ.pop(name, None)
        os.environ.update(ODA_SPOOL=self.spool, ODA_EXIT_TIMEOUT="5", TMPDIR=temporary)
        os.environ["ODA_URL"] = self.server.url if self.needs_server else NOBODY
        self.fresh()
        self.addCleanup(self.fresh)
        # A thread of an earlier test may notice only now that its spool is gone.
        logger, mine = logging.getLogger("oda_helper"), (self.spool, temporary)

        def own(record):
            text = record.getMessage()
            return "No such file" not in text or any(path in text for path in mine)

        logger.addFilter(own)
        self.addCleanup(logger.removeFilter, own)

    def fresh(self):
        """Forgets everything, as a new process would."""
        if _process._recorder is not None:
            _process._recorder.close(0.1)
            _process._recorder._threads = None  # they end after their current work
            _process._recorder._stop()  # wakes those that wait
            _process._recorder._leftovers._guard = None  # and free the lock themselves
            _process._recorder.abandon()
        _process._recorder = None
        _capture._warned.clear()

    def sessions(self):
        """The folders in the spool."""
        return [os.path.join(self.spool, name) for name in sorted(os.listdir(self.spool))]

    def flushed(self):
        """Waits until everything is stored."""
        self.assertTrue(oda_helper.flush(PATIENCE), "not stored in time")

    def script(self, text, wait=True, **env):
        """Runs a script as a process, after PREAMBLE, and returns the process."""
        settings = dict(os.environ, PYTHONPATH=SOURCE, **env)
        process = subprocess.Popen(
            [sys.executable, "-c", PREAMBLE + textwrap.dedent(text)],
            env=settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.addCleanup(_end, process)
        if wait:
            process.out, process.err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, process.err)
        return process


def _end(process):
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()
