#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The harness itself: a wrong expectation must fail, otherwise every case is worthless."""
import contextlib
import io
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import run  # noqa: E402


def outcome(text, update=False):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "case.t")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        with contextlib.redirect_stdout(io.StringIO()):
            code = run.run_file(path, sys.executable, update)
        with open(path, encoding="utf-8") as f:
            return code, f.read()


class Harness(unittest.TestCase):
    def test_passes(self):
        for text in ("$ echo a; echo b >&2; exit 3\na\n! b\n= 3\n",
                     "$ echo one two\none * (glob)\n",
                     "$ seq 9\n1\n...\n5\n...\n9\n",
                     "$ seq 3\n...\n",
                     "$ printf 'a\\n\\nb'\na\n(empty)\nb (no newline)\n",
                     "$ echo a \\\n> b\na b\n",
                     "$ cd . && echo x > f\n\n# one folder for the file\n$ cat f\nx\n",
                     "$ true\n"):
            self.assertEqual(outcome(text)[0], 0, text)

    def test_fails(self):
        for text in ("$ echo a\nb\n", "$ echo a\n", "$ true\na\n", "$ echo a >&2\n", "$ true\n! a\n",
                     "$ exit 1\n", "$ true\n= 1\n", "$ seq 3\n1\n2\n", "$ seq 3\n...\n2\n",
                     "$ echo abc\na? (glob)\n", "$ echo 'a*'\nab\n", "$ printf a\na\n", "# empty\n"):
            self.assertEqual(outcome(text)[0], 1, text)

    def test_skips(self):
        self.assertEqual(outcome("# needs: no-such-program-1\n\n$ true\n")[0], run.SKIP)

    def test_updates(self):
        wrong = "# why\n\n$ echo a; exit 2\nb\nc\n\n$ echo 'x y'\nx * (glob)\n"
        code, text = outcome(wrong, update=True)
        self.assertEqual(code, 1)
        self.assertEqual(text, "# why\n\n$ echo a; exit 2\na\n= 2\n\n$ echo 'x y'\nx * (glob)\n")
        self.assertEqual(outcome(text)[0], 0)


if __name__ == "__main__":
    unittest.main()
