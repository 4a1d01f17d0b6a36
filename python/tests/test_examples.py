"""Every example in docs/python.md runs, in its order, against an empty archive."""

import contextlib
import io
import os
import re

from support import TREE, Case, has

ADDRESS = "http://127.0.0.1:8080"
LIBRARIES = {"to_pandas": "pandas", "to_astropy": "astropy", ".plot.": "matplotlib"}


class TheExamples(Case):
    def test_run(self):
        with open(os.path.join(TREE, "docs", "python.md")) as file:
            blocks = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
        self.assertIn(ADDRESS, blocks[0])
        self.assertGreater(len(blocks), 8)
        names = {}
        with contextlib.redirect_stdout(io.StringIO()) as out:
            for block in blocks:
                if all(has(library) for word, library in LIBRARIES.items() if word in block):
                    exec(compile(block.replace(ADDRESS, self.server.url), "docs/python.md", "exec"), names)
        names["archive"].close()
        self.assertIn("third light", out.getvalue())
