#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the form of commits: `module: imperative verb ...`, at most 72 characters, and a body with the reason.

Commits up to BASE were made before the rule. Without Git, or in a clone without BASE, there is nothing to check.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASE = "b88fb82c"
SUBJECT = re.compile(r"[a-z0-9_.-]+(, [a-z0-9_.-]+)*: [a-z]")


def problems(subject: str, body: str) -> list[str]:
    found = []
    if len(subject) > 72:
        found.append(f"the subject has {len(subject)} characters, at most 72 are allowed")
    if not SUBJECT.match(subject):
        found.append("the subject is not 'module: imperative verb ...'")
    if subject.endswith("."):
        found.append("the subject ends with a full stop")
    if not body.strip():
        found.append("there is no body that gives the reason")
    return found


def main() -> int:
    command = ["git", "log", "--no-merges", "--format=%h%x00%s%x00%b%x01", f"{BASE}..HEAD"]
    try:
        log = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        print("commits: the history is not here, not checked")
        return 0
    commits = [entry.strip("\n").split("\0") for entry in log.split("\1") if entry.strip()]
    errors = [f"{name} {subject}: {problem}" for name, subject, body in commits for problem in problems(subject, body)]
    for error in errors:
        print(error, file=sys.stderr)
    print(f"commits: {len(commits)} since {BASE}, {len(errors)} errors")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
