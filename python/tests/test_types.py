import os
import subprocess
import sys
import unittest

from support import HERE, SOURCE, TREE, needs

CACHE = os.path.join(TREE, "python", ".venv", "mypy")


class Types(unittest.TestCase):
    def test_are_complete_and_right(self):
        needs("mypy")
        command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", CACHE, "--python-version", "3.10"]
        done = subprocess.run([*command, SOURCE, os.path.join(HERE, "typed.py")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
