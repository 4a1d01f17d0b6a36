import os
import subprocess
import sys
import tempfile
import unittest

from support import TREE


class Installing(unittest.TestCase):
    def test_with_pip_and_without_a_network(self):
        pip = [sys.executable, "-m", "pip"]
        if subprocess.run(pip + ["--version"], capture_output=True).returncode:
            raise unittest.SkipTest("there is no pip")
        with tempfile.TemporaryDirectory() as folder:
            command = pip + ["install", "--quiet", "--no-index", "--no-compile", "--disable-pip-version-check"]
            done = subprocess.run(
                command + ["--target", folder, os.path.join(TREE, "python")], capture_output=True, text=True
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            # Not from the checkout, and whole.
            code = "import oda_helper, oda_helper.__main__ as m; print(m.__file__, oda_helper.__version__)"
            env = dict(os.environ, PYTHONPATH=folder, PYTHONDONTWRITEBYTECODE="1")
            run = subprocess.run([sys.executable, "-c", code], env=env, cwd="/", capture_output=True, text=True)
            self.assertTrue(run.stdout.startswith(folder), run.stdout + run.stderr)
