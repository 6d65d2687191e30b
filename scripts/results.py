#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""results.py [--failed] LOG…: counts the results in logs of meson (.json) and pytest (.xml).

Of a test in several logs, the last result counts; one that failed first and passed then is unstable. The exit code is 1
if tests failed or a log is missing. --failed lists the names of tests that failed, as meson and pytest take them.
"""

import json
import os
import sys
import xml.etree.ElementTree as xml


def of_meson(path: str) -> dict[str, str]:
    """Returns results by the name that `meson test` takes: without suites."""
    found = {}
    with open(path, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            name = line["name"].partition(" / ")[2] or line["name"]
            found[name] = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}.get(line["result"], "failed")
    return found


def of_pytest(path: str) -> dict[str, str]:
    """Returns results by node id. A file that could not be collected is its own test."""
    found = {}
    for case in xml.parse(path).iter("testcase"):
        module = case.get("classname") or case.get("name")
        file = module.replace(".", "/") + ".py"
        name = f"{file}::{case.get('name')}" if case.get("classname") else file
        kinds = {child.tag for child in case}
        found[name] = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
    return found


def main(paths: list[str]) -> int:
    only_failed = "--failed" in paths
    last: dict[str, str] = {}
    unstable = []
    missing = [path for path in paths if path != "--failed" and not os.path.exists(path)]
    for path in (path for path in paths if path != "--failed" and path not in missing):
        results = of_meson(path) if path.endswith(".json") else of_pytest(path)
        unstable += [name for name, result in results.items() if result == "passed" and last.get(name) == "failed"]
        last.update(results)
    if only_failed:
        print("".join(f"{name}\n" for name, result in last.items() if result == "failed"), end="")
        return 0
    for path in missing:
        print(f"results: {path}: no such file: its tests did not run")
    for name in unstable:
        print(f"unstable: {name}: failed, and passed when it ran alone")
    count = {kind: sum(result == kind for result in last.values()) for kind in ("passed", "failed", "skipped")}
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped, {len(unstable)} unstable")
    return 1 if count["failed"] or missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
