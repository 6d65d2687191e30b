#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Everything in the tables is in the help, the man page and each completion script, for every subcommand; and shells
and man(1), if installed, accept them.

    LEAT=build/tools/leat python3 tests/cli/test_pages.py
"""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

LEAT = os.environ["LEAT"]


def leat(*args, env=None):
    done = subprocess.run([LEAT, *args], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "COLUMNS": "100", "LC_ALL": "C.UTF-8", **(env or {})})
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"{args}: exit {done.returncode}, {done.stderr}")
    return done.stdout


TABLES = json.loads(leat("help", "--json"))["commands"]


def squeeze(text):
    return re.sub(r"\s+", " ", text)


class Pages(unittest.TestCase):
    def test_tables(self):
        self.assertIn("help", [command["name"] for command in TABLES])
        for command in TABLES:
            names = [option["name"] for option in command["options"]]
            self.assertIn("help", names)
            self.assertEqual(len(names), len(set(names)), command["name"])

    def test_help(self):
        overview = squeeze(leat("help"))
        for command in TABLES:
            self.assertIn(f"{command['name']} {command['summary']}", overview)
            page = leat(command["name"], "--help")
            self.assertEqual(page, leat("help", command["name"]))
            self.assertLess(page.index("EXAMPLES"), page.index("USAGE"))
            self.check_words(command, squeeze(page))

    def check_words(self, command, page):
        for option in command["options"]:
            self.assertIn("--" + option["name"], page)
            self.assertIn(squeeze(option["help"]), page)
            for choice in option.get("choices", []):
                self.assertIn(choice, page)
            if option["default"]:
                self.assertIn(option["default"], page)
        for key in command["json_keys"]:
            self.assertIn(key, page)

    @unittest.skipUnless(shutil.which("man") and shutil.which("groff"), "there is no man")
    def test_man(self):
        for command in [None] + TABLES:
            args = ["help", "--man"] + ([command["name"]] if command else [])
            with tempfile.NamedTemporaryFile("w", suffix=".1") as f:
                f.write(leat(*args))
                f.flush()
                done = subprocess.run(["man", "--warnings", "-l", f.name], text=True,
                                      capture_output=True, timeout=60,
                                      env={**os.environ, "MANWIDTH": "1000", "LC_ALL": "C.UTF-8",
                                           "MANPAGER": "cat", "MAN_KEEP_FORMATTING": "",
                                           "GROFF_NO_SGR": "1"})
            self.assertEqual((done.returncode, done.stderr), (0, ""), args)
            page = squeeze(re.sub(r".\x08", "", done.stdout))
            self.assertIn("NAME leat", page)
            if command:
                self.check_words(command, page)


class Completions(unittest.TestCase):
    def script(self, shell):
        text = leat("completions", shell)
        for command in TABLES:
            self.assertIn(command["name"], text)
            for option in command["options"]:
                dashes = "-l " if shell == "fish" else "--"
                self.assertIn(dashes + option["name"], text)
        f = tempfile.NamedTemporaryFile("w", suffix="." + shell)
        self.addCleanup(f.close)
        f.write(text)
        f.flush()
        return f.name

    def accepted(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""), command)
        return done.stdout

    def test_bash(self):
        path = self.script("bash")
        self.accepted("bash", "-n", path)

        def offers(*words):
            line = " ".join(f"'{word}'" for word in words)
            return self.accepted("bash", "-c", f". {path}; COMP_WORDS=({line}); "
                                 f"COMP_CWORD={len(words) - 1}; _leat; "
                                 "printf '%s\\n' \"${COMPREPLY[@]}\"").split()
        self.assertEqual(set(offers("leat", "")), {c["name"] for c in TABLES})
        self.assertEqual(offers("leat", "hel"), ["help"])
        self.assertEqual(offers("leat", "help", "--m"), ["--man"])
        self.assertEqual(offers("leat", "completions", ""), ["bash", "zsh", "fish"])
        self.assertEqual(offers("leat", "help", "compl"), ["completions"])
        self.assertEqual(offers("leat", "help", "--color", "a"), ["auto", "always"])
        self.assertEqual(offers("leat", "help", "--color", "=", "n"), ["never"])
        for command in TABLES:
            off = {"--no-measure"} if command["name"] == "plan" else set()  # on unless it is turned off
            self.assertEqual(set(offers("leat", command["name"], "--")),
                             off | {"--" + option["name"] for option in command["options"]})
        self.assertEqual(offers("leat", "help", "op"), ["ops"])
        self.assertEqual(offers("leat", "help", "RandomRes"), ["RandomResizedCrop"])

    @unittest.skipUnless(shutil.which("zsh"), "there is no zsh")
    def test_zsh(self):
        path = self.script("zsh")
        self.accepted("zsh", "-n", path)
        self.accepted("zsh", "-f", "-c", f"autoload -Uz compinit; compinit -D -u; . {path}; "
                      "[[ $_comps[leat] == _leat ]]")

    @unittest.skipUnless(shutil.which("fish"), "there is no fish")
    def test_fish(self):
        path = self.script("fish")
        self.accepted("fish", "--no-execute", path)

        def offers(line):
            out = self.accepted("fish", "--no-config", "-c",
                                f"source {path}; complete -C '{line}'")
            return [row.split("\t")[0] for row in out.splitlines()]
        self.assertEqual(offers("leat hel"), ["help"])
        self.assertEqual(offers("leat help --ma"), ["--man"])
        self.assertEqual(sorted(offers("leat completions ")), ["bash", "fish", "zsh"])


if __name__ == "__main__":
    unittest.main()
