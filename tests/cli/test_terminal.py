#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that need a terminal or a signal: progress, colour, Ctrl-C once and twice, closed pipes.

    LEAT=build/tools/leat LEAT_FIXTURE=build/tests/cli/fixture python3 tests/cli/test_terminal.py
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

FIXTURE = os.environ["LEAT_FIXTURE"]
LEAT = os.environ["LEAT"]
PIXEL = (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0:~\x9bU"
         b"\0\0\0\nIDATx\x9cc`\0\0\0\2\0\1H\xaf\xa4q\0\0\0\0IEND\xaeB`\x82")
LIMIT_S = 20


def environment(**more):
    env = {name: value for name, value in os.environ.items()
           if name not in ("NO_COLOR", "TERM", "COLUMNS")}
    env.update(TERM="xterm", LC_ALL="C.UTF-8")
    env.update(more)
    return env


def ordinary_signals():
    """A parent may have ignored SIGINT (a background job of sh): leat would keep ignoring it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)


def start(args, program=FIXTURE, **options):
    options.setdefault("env", environment())
    return subprocess.Popen([program, *args], stdin=subprocess.DEVNULL, preexec_fn=ordinary_signals,
                            **options)


def piped(args, **options):
    return start(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def on_terminal(args, columns=80, both=False, env=None, program=FIXTURE):
    """Runs with stderr (and with `both` stdout) on a pseudo-terminal; returns its output and exit code."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    p = start(args, stdout=slave if both else subprocess.DEVNULL, stderr=slave,
              env=env or environment(), program=program)
    os.close(slave)
    shown = b""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        ready, _, _ = select.select([master], [], [], 0.2)
        if not ready:
            continue
        try:
            data = os.read(master, 65536)
        except OSError:  # the last holder of the other end has closed it
            break
        if not data:
            break
        shown += data
    os.close(master)
    return shown.decode("utf-8"), p.wait(LIMIT_S)


class Stopping(unittest.TestCase):
    def stop(self, args, signals):
        p = piped(args)
        self.assertEqual(p.stdout.readline(), b"started\n")
        begin = time.monotonic()
        for i, number in enumerate(signals):
            if i:
                time.sleep(0.3)
            p.send_signal(number)
        out, err = p.communicate(timeout=LIMIT_S)
        self.assertLess(time.monotonic() - begin, 5)
        return out, err, p.returncode

    def test_once_is_a_clean_stop(self):
        out, err, code = self.stop(["wait"], [signal.SIGINT])
        self.assertEqual((out, err, code), (b"tidied\n", b"", 130))

    def test_terminate_is_a_clean_stop(self):
        out, err, code = self.stop(["wait"], [signal.SIGTERM])
        self.assertEqual((out, err, code), (b"tidied\n", b"", 143))

    def test_twice_is_immediate(self):
        out, err, code = self.stop(["wait", "--deaf"], [signal.SIGINT, signal.SIGINT])
        self.assertEqual((out, err, code), (b"", b"", 130))

    def test_a_sleeping_command_is_woken(self):
        out, err, code = self.stop(["sleep"], [signal.SIGINT])
        self.assertEqual((out, err, code), (b"woken\n", b"", 130))

    def test_a_demo_passes_the_signal_on(self):
        """Only the demo gets it, as by kill. Its step ends, too, and leaves nothing unfinished."""
        for step, number in (("pack", signal.SIGTERM), ("doctor", signal.SIGINT)):
            with tempfile.TemporaryDirectory() as box:
                p = start(["demo", "--images", "64", "--dir", f"{box}/my demo"], program=LEAT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                while not p.stdout.readline().startswith(f"$ leat {step} ".encode()):
                    self.assertIsNone(p.poll())
                begin = time.monotonic()
                p.send_signal(number)
                self.assertEqual(p.wait(LIMIT_S), 128 + number, step)
                p.stdout.read()  # ends when no child has the pipe any more
                p.stdout.close()
                if step == "doctor":  # 0.1 s; without the signal more than 6 s. What a pack takes is up to the disk
                    self.assertLess(time.monotonic() - begin, 4)
                left = [name for name in os.listdir(f"{box}/my demo") if name.endswith((".partial", ".journal"))]
                self.assertEqual(left, [], step)

    def test_ignored_by_the_parent_stays_ignored(self):
        p = subprocess.Popen([FIXTURE, "wait", "--time", "1s"], stdout=subprocess.PIPE,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        self.assertEqual(p.stdout.readline(), b"started\n")
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.communicate(timeout=LIMIT_S)[0], b"finished\n")
        self.assertEqual(p.returncode, 0)

    def test_nobody_reads(self):
        p = piped(["lines", "--quiet"])
        self.assertEqual(p.stdout.readline(), b"line 0\n")
        p.stdout.close()
        self.assertEqual(p.stderr.read(), b"")
        p.stderr.close()
        self.assertEqual(p.wait(LIMIT_S), 141)

    def test_terminal_is_told_what_a_second_one_does(self):
        master, slave = pty.openpty()
        p = start(["wait"], stdout=subprocess.PIPE, stderr=slave)
        os.close(slave)
        self.assertEqual(p.stdout.readline(), b"started\n")
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.communicate(timeout=LIMIT_S)[0], b"tidied\n")
        shown = b""
        try:
            while chunk := os.read(master, 4096):
                shown += chunk
        except OSError:
            pass
        os.close(master)
        self.assertIn(b"press Ctrl-C again", shown)
        self.assertEqual(p.returncode, 130)


def drawings(shown):
    """The states of the bar, in order."""
    return [part for part in shown.split("\r\x1b[K") if part]


class Rows(unittest.TestCase):
    def test_long_values_are_wrapped(self):
        with tempfile.TemporaryDirectory() as folder:
            for i in range(30):
                os.makedirs(f"{folder}/photos/class-{i:03}")
                with open(f"{folder}/photos/class-{i:03}/a.png", "wb") as f:
                    f.write(PIXEL)
            pack = f"{folder}/p.leat"
            subprocess.run([LEAT, "pack", f"{folder}/photos", "-o", pack, "-q"], check=True, stdout=subprocess.DEVNULL)
            shown, code = on_terminal(["info", pack], both=True, program=LEAT)
            lines = subprocess.run([LEAT, "info", pack], check=True, capture_output=True, text=True).stdout.splitlines()
        self.assertEqual(code, 0)
        plain = re.sub(r"\033\[[0-9;]*m", "", shown).replace("\r", "")
        self.assertLessEqual(max(len(line) for line in plain.splitlines()), 80)
        self.assertEqual(plain.split()[1:], " ".join(lines).split()[1:])  # the same words, the path aside
        self.assertTrue(any(len(line) > 100 for line in lines))  # one line for other programs


class Progress(unittest.TestCase):
    def test_drawn_on_a_terminal(self):
        begin = time.monotonic()
        shown, code = on_terminal(["wait", "--time", "1.5s"], columns=100)
        seconds = time.monotonic() - begin  # 1.5 or, on a busy machine, more
        self.assertEqual(code, 0)
        frames = drawings(shown)
        self.assertTrue(3 <= len(frames) <= 10 * seconds + 1, f"{len(frames)} in {seconds} s")
        self.assertTrue(shown.endswith("\r\x1b[K"), "the line must leave the screen")
        last = frames[-1]
        self.assertRegex(last, r"^waiting  █+.* +\d+%  \d+/150 steps  [\d.]+/s  ETA ")
        self.assertRegex(last, r"MB/s")
        self.assertRegex(last, r"\d+ skipped")
        self.assertTrue(all(len(frame) < 100 for frame in frames))

    def test_narrow_and_ascii(self):
        shown, code = on_terminal(["wait", "--time", "600ms"], columns=40,
                                  env=environment(LC_ALL="C"))
        self.assertEqual(code, 0)
        frames = drawings(shown)
        self.assertTrue(frames)
        for frame in frames:
            self.assertLess(len(frame), 40)
            self.assertTrue(frame.isascii(), frame)
            self.assertRegex(frame, r"%")

    def test_unknown_total(self):
        shown, _ = on_terminal(["wait", "--time", "600ms", "--unknown-total"])
        last = drawings(shown)[-1]
        self.assertRegex(last, r"^waiting  \d+ steps  ")
        self.assertNotRegex(last, r"%|ETA")

    def test_messages_keep_clear(self):
        shown, _ = on_terminal(["wait", "--time", "600ms", "--talk"])
        self.assertIn("\r\x1b[Khalf way\r\n", shown)

    def test_absent(self):
        for args in (["--quiet"], ["--json"]):
            shown, _ = on_terminal(["wait", "--time", "400ms", *args])
            self.assertEqual(shown, "", args)
        shown, _ = on_terminal(["wait", "--time", "400ms"], env=environment(TERM="dumb"))
        self.assertEqual(shown, "")
        p = piped(["wait", "--time", "400ms"])
        self.assertEqual(p.communicate(timeout=LIMIT_S), (b"started\nfinished\n", b""))


class Colour(unittest.TestCase):
    def shown(self, args, **env):
        return on_terminal(args, both=True, env=environment(**env))[0]

    def test_on_a_terminal(self):
        self.assertIn("\x1b[", self.shown(["help"]))
        self.assertIn("\x1b[31mleat fail:\x1b[0m ", self.shown(["fail", "EDATA"]))

    def test_off(self):
        for args, env in ((["help"], {"NO_COLOR": "1"}), (["help", "--color=never"], {}),
                          (["help"], {"TERM": "dumb"}),
                          (["fail", "EDATA"], {"NO_COLOR": "1"})):
            self.assertNotIn("\x1b[", self.shown(args, **env), (args, env))

    def test_empty_no_color_counts_as_unset(self):
        self.assertIn("\x1b[", self.shown(["help"], NO_COLOR=""))

    def test_always_beats_everything(self):
        p = piped(["help", "--color", "always"], env=environment(NO_COLOR="1"))
        self.assertIn(b"\x1b[", p.communicate(timeout=LIMIT_S)[0])

    def test_help_follows_the_width(self):
        text, _ = on_terminal(["help", "echo", "--color=never"], columns=60, both=True)
        self.assertLessEqual(max(len(line) for line in text.split("\r\n")), 60)


if __name__ == "__main__":
    unittest.main()
