#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""leat top on a terminal: it waits for a run, follows it while it grows, survives its rotation, ends with it, and
restores the terminal, however it is ended."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import tempfile
import termios
import time
import unittest

LEAT = os.environ["LEAT"]
LIMIT_S = 60
FACTS = {"steps": 200, "batch": 256, "data_ms": 50, "batch_ms": 50, "samples_per_s": 2560, "cpu_all": 2600,
         "cpu_one": 1300, "decode_ready": 0.95, "blocked": 0, "decode_share": 0.93, "threads": 2, "cpus": 2,
         "cpu_used": 1.9}


def header(run, part=0):
    return json.dumps({"run": run, "part": part, "version": 1}) + "\n"


def frame(samples, epoch=0):
    return json.dumps({"frame": {"at_s": samples / 100, "samples": samples, "samples_per_s": 1000, "epoch": epoch,
                                 "budget_used": 1 << 20, "budget_limit": 4 << 20}}) + "\n"


def verdict(state="running"):
    return json.dumps({"facts": FACTS, "state": state}) + "\n"


class Terminal:
    """leat top on its own pty, and its output."""

    def __init__(self, folder, *args, rows=40, columns=100):
        self.master, self.slave = pty.openpty()
        termios.tcsetwinsize(self.slave, (rows, columns))
        self.before = termios.tcgetattr(self.slave)
        self.text = ""
        self.process = subprocess.Popen([LEAT, "top", *args], stdin=self.slave, stdout=self.slave,
                                        stderr=self.slave, cwd=folder,
                                        env=dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8"))

    def read(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.master], [], [], 0.05)[0]:
                self.text += os.read(self.master, 65536).decode("utf-8", "replace")

    def wait_for(self, wanted):
        end = time.monotonic() + LIMIT_S
        while wanted not in self.text:
            if time.monotonic() > end:
                raise AssertionError(f"{wanted!r} never came: {self.text[-2000:]!r}")
            self.read(0.1)

    def ends(self):
        """The exit code; reads its last output and checks the terminal."""
        code = self.process.wait(LIMIT_S)
        self.read(0.2)
        after = termios.tcgetattr(self.slave)
        os.close(self.master)
        os.close(self.slave)
        assert after == self.before, "the terminal is not as it was"
        assert self.text.rstrip().endswith("\033[?25h"), "the cursor is still hidden"
        return code


def last_view(text):
    return re.sub(r"\033\[[?\d;]*\w", "", text.split("\033[J")[-2]).replace("\r", "")


class Top(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "run.jsonl")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, text, mode="a"):
        with open(self.path, mode) as f:
            f.write(text)

    def top(self, *args, **size):
        return Terminal(self.folder.name, "run.jsonl", *args, **size)

    def test_from_before_the_first_line_to_the_last(self):
        t = self.top()
        t.wait_for("waiting for run.jsonl")
        self.write(header("a") + frame(100) + verdict() + '{"frame":{"samp')
        t.wait_for("CPU-bound")
        t.wait_for("q quits")
        self.write('les":200,"epoch":7}}\n')
        t.wait_for("epoch 7")
        with open(self.path, "w") as f:  # its next part: known data is kept
            f.write(header("a", 1) + verdict() + frame(300, 8))
        t.wait_for("epoch 8")
        other = self.path + ".new"
        with open(other, "w") as f:  # another run, renamed over it
            f.write(header("b") + frame(1, 900) + verdict())
        os.rename(other, self.path)
        t.wait_for("epoch 900")
        self.write(verdict("ended"))
        self.assertEqual(t.ends(), 0)
        view = last_view(t.text)
        self.assertIn("run.jsonl  ended", view)
        self.assertNotIn("q quits", view)
        self.assertRegex(t.text, r"\033\[\d+A")  # drawn in place

    def test_keys_leave(self):
        self.write(header("a") + frame(100) + verdict())
        for key in ("q", "\x03"):
            with self.subTest(key=key):
                t = self.top()
                t.wait_for("q quits")
                os.write(t.master, b"x")  # not one of its keys: neither echoed nor an end
                t.read(0.5)
                self.assertIsNone(t.process.poll())
                os.write(t.master, key.encode())
                self.assertEqual(t.ends(), 0)
                self.assertNotIn("stopping", t.text)

    def test_signals_leave(self):
        self.write(header("a") + frame(100) + verdict())
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                t = self.top()
                t.wait_for("q quits")
                t.process.send_signal(number)
                self.assertEqual(t.ends(), 128 + number)

    def test_a_small_terminal_is_never_scrolled(self):
        self.write(header("a") + frame(100) + verdict())
        t = self.top(rows=6, columns=40)
        t.wait_for("\033[5A")
        os.write(t.master, b"q")
        self.assertEqual(t.ends(), 0)
        for view in t.text.split("\033[J")[:-1]:
            self.assertLess(view.count("\n"), 6)
            for line in re.sub(r"\033\[[?\d;]*\w", "", view).splitlines():
                self.assertLessEqual(len(line), 40)

    def test_a_run_that_was_killed_is_silent(self):
        self.write(header("a") + frame(100) + verdict())
        t = self.top()
        t.wait_for("no news for ")
        os.write(t.master, b"q")
        self.assertEqual(t.ends(), 0)

    def test_a_pipe_gets_lines(self):
        self.write(header("a") + frame(100, 1) + verdict())
        p = subprocess.Popen([LEAT, "top", "run.jsonl"], stdout=subprocess.PIPE, text=True, cwd=self.folder.name)
        first = p.stdout.readline()
        self.assertRegex(first, r"^\S+  epoch 1  1.00k samples/s  waiting 0 %  memory 1.00 MiB of 4.00 MiB  CPU-bound")
        self.write(frame(200, 2) + verdict("ended"))
        rest, _ = p.communicate(timeout=LIMIT_S)
        self.assertEqual(p.returncode, 0)
        self.assertIn("epoch 2", rest)
        self.assertNotIn("\033", first + rest)


if __name__ == "__main__":
    unittest.main()
