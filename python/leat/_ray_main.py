# SPDX-License-Identifier: Apache-2.0
"""``leat filter --on ray`` and ``leat dedup --on ray`` after C has read their command lines."""

from __future__ import annotations

import json
import sys
from typing import Any

from . import _json, _text
from ._errors import ArgumentError, BudgetError, Error, ExistsError, LimitError, UnsupportedError, counted
from ._train.__main__ import printed

_CODES = ((ExistsError, 2), (ArgumentError, 2), (UnsupportedError, 2), (BudgetError, 3), (LimitError, 3))
_COMMON = ("color", "verbose", "config", "json", "quiet")  # handled by C or by main


def _rules(text: str) -> dict[str, float | None]:
    """Returns --set as a dict."""
    rules: dict[str, float | None] = {}
    for rule in filter(None, text.split(",")):
        name, equals, value = rule.partition("=")
        if not equals:
            raise ArgumentError(f'"{rule}" is not a change of a rule (words.min=20)')
        try:
            rules[name] = None if value == "off" else float(value)
        except ValueError:
            raise ArgumentError(f'"{rule}": the threshold is not a number or "off"') from None
    return rules


def _run(command: str, values: dict[str, Any]) -> dict[str, Any]:
    args = values.pop("args")
    if "report" in values:
        values["report"] = values["report"].split(",")
    if "set" in values:
        values["rules"] = _rules(values.pop("set"))
    if command == "dedup":
        return _text.dedup_text(args[1:], values.pop("output", None), kind=args[0], **values)
    if values.pop("list", False):
        raise ArgumentError('list: does not work with on="ray"')
    return _text.filter_text(args, values.pop("output", None), **values)


def _show(command: str, done: dict[str, Any], output: str) -> None:
    dropped = f"{done['dropped']} dropped" if command == "filter" else f"{done['removed']} removed in {counted(done['clusters'], 'cluster')}"
    print(f"{counted(done['documents'], 'document')}: {done['kept']} kept, {dropped}")
    print(f"{done['text_bytes'] / 2**20:.1f} MiB of text, {done['seconds']:.1f} s, "
          f"{done['text_bytes'] / 1e6 / max(done['cpu_seconds'], 1e-9):.0f} MB per CPU-second of all nodes")
    if done["limit"] != "none":
        print(f"the tasks were limited by {done['limit']}")


def _flagged(message: str, values: dict[str, Any]) -> str:
    """Returns the message with an option spelled as on the command line."""
    message = message.replace('on="ray"', "--on ray")
    name, colon, rest = message.partition(": ")
    name = {"rules": "set"}.get(name, name)
    flag = name.replace("_", "-")
    return f"--{flag}{colon}{rest}" if colon and name in values else message


def main(command: str, text: str) -> int:
    """Runs a command on values that C parsed; returns its exit code."""
    values = json.loads(text)
    as_json, quiet, given = values.get("json", False), values.get("quiet", False), dict(values)
    for name in _COMMON:
        values.pop(name, None)
    output = values.get("output", "")
    try:
        done = _run(command, values)
    except _text.NoTextError as error:
        print(f"leat {command}: {error}", file=sys.stderr)
        done = error.report
    except Error as error:
        print(f"leat {command}: {_flagged(str(error), given)}", file=sys.stderr)
        return next((code for kind, code in _CODES if isinstance(error, kind)), 4)
    except KeyboardInterrupt:
        return 130
    if done["bad"] and done["documents"] and not quiet:
        print(f"leat {command}: warning: {counted(done['bad'], 'line')} could not be read: see {output}/bad.jsonl",
              file=sys.stderr)
    failed = printed(command, (lambda: print(_json.text(done))) if as_json else (lambda: _show(command, done, output)))
    if failed:
        return failed
    return 4 if done["documents"] == 0 and done["bad"] > 0 else 0
