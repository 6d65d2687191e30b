# SPDX-License-Identifier: Apache-2.0
"""``leat train``, ``leat embed``, ``leat tag`` and ``leat curate`` after C has read their command lines."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from typing import Any

from .. import _json, _train
from . import options
from .._errors import AdviceWarning, ArgumentError, BudgetError, Error, ExistsError, LimitError, UnsupportedError, counted

_CODES = ((ExistsError, 2), (ArgumentError, 2), (UnsupportedError, 2), (BudgetError, 3), (LimitError, 3))


def _code(error: Error) -> int:
    return next((code for kind, code in _CODES if isinstance(error, kind)), 4)


def _flagged(error: Exception, command: str) -> str:
    """Returns the message with options spelled as on the command line: ``model: …`` becomes ``--model: …``, and so do
    names in backquotes."""
    message = getattr(error, "marked", "") or str(error)
    name, colon, rest = message.partition(": ")
    known = command in ("train", "embed", "tag", "curate") and name in options.table(command)
    message = f"`{name}`{colon}{rest}" if colon and known else message
    return re.sub(r"`([a-z_]+)`", lambda found: "--" + found[1].replace("_", "-"), message)


def _verdict(result: dict[str, Any]) -> str:
    """Returns the doctor's line; "" when the run was too short for one (``--json`` has it)."""
    return "" if result["verdict"].startswith("INCOMPLETE") else f"\n{result['verdict']}"


def _show(result: dict[str, Any], command: str) -> None:
    if command == "curate":
        from .. import _curate_text

        print(_curate_text.result(result) if "selected" in result else _curate_text.plan(result))
        return
    if command == "dedup":
        without = result["without_vector"]
        blank = (f"{counted(without, 'row')} without a vector (zeros or not finite) {'was' if without == 1 else 'were'} not compared "
                 "and stay\n") if without else ""
        print(f"{counted(result['samples'], 'row')}: {result['kept']} to keep, {result['removed']} to remove, with a similarity of "
              f"{result['threshold']:.4f} or more\n{blank}{counted(result['clusters'], 'cluster')}, {counted(result['pairs'], 'pair')} compared, "
              f"{result['seconds']:.1f} s")
        return
    if command == "export":
        print(f"{result['output']}: {result['model']}, images of {result['image_size']} pixels, {result['width']} outputs")
        return
    if result.get("already_complete"):
        print(f"{result['output']}: already complete: a run with the same options and input wrote it")
        return
    if command == "embed":
        print(f"{counted(result['samples'], 'vector')} of {counted(result['dim'], 'number')} by {result['model']} in {result['seconds']:.1f} s, "
              f"{result['images_per_s']:.0f} images/s{_verdict(result)}")
        return
    if command == "tag":
        common = ", ".join(f"{name!r} {count}" for name, count in list(result["counts"].items())[:5])
        boxes = f" with {result['boxes']} boxes" if "boxes" in result else ""
        bad = f"\n{result['not_finite']} of them have no score: the model gave NaN or infinity" if result.get("not_finite") else ""
        print(f"{counted(result['samples'], 'image')}{boxes} by {result['model']} in {result['seconds']:.1f} s, "
              f"{result['images_per_s']:.0f} images/s; most frequent: {common}{bad}{_verdict(result)}")
        return
    shares = ", ".join(f"{k} {100 * result[k]:.2f} %" for k in ("top1", "top5", "knn", "probe") if k in result)
    print(f"{counted(result['epochs'], 'epoch')}, {counted(result['steps'], 'update')} in {result['seconds']:.1f} s, "
          f"{result['images_per_s']:.0f} images/s, waiting for data {100 * result['data_share']:.1f} %"
          f"{', ' if shares else ''}{shares}{_verdict(result)}")


def printed(command: str, show: Callable[[], None]) -> int:
    """Prints the result and returns the exit code, as the commands in C do: 141 when the reader of stdout is gone."""
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        show()
        sys.stdout.flush()
        return 0
    except OSError as error:
        if sys.stdout is not None:  # at exit, Python would write the rest and fail
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):
            return 141
        print(f"leat {command}: cannot write the output: {error.strerror}", file=sys.stderr)
        return 4


def _curate(args: list[str], values: dict[str, Any]) -> dict[str, Any]:
    from .._curate import curate

    values = {"quiet": False, **values}
    if "from" in values:
        values["from_"] = values.pop("from")
    return curate(args, **values)


def _dedup(args: list[str], values: dict[str, Any]) -> dict[str, Any]:
    from .._images import dedup_semantic

    values.pop("quiet", None)
    return dedup_semantic(args[1], values.pop("output"), **values)


def _run(command: str, args: list[str], values: dict[str, Any]) -> dict[str, Any]:
    if command == "dedup":
        return _dedup(args, values)
    if command == "curate":
        return _curate(args, values)
    if command == "export":
        return _train.export_model(args[0], values["output"], force=values.get("force", False))
    if command == "train":
        return _train.run_train(args[0], values)[0]
    return getattr(_train, command)(*args, **values)


class _Terminated(KeyboardInterrupt):
    """SIGTERM ends a command as Ctrl-C does. A second one ends the process at once."""


def _on_term(number: int, frame: object) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise _Terminated


def _stop_line(command: str, values: dict[str, Any]) -> str:
    """Returns what a stopped command says; "" for commands that say it themselves."""
    output = values.get("output", "")
    if command == "curate":
        begun = os.path.exists(os.path.join(output, "run.json"))
        return f"interrupted: the same command continues from {output}" if begun else "interrupted: nothing was written"
    if command in ("embed", "tag"):
        begun = os.path.isdir(output + ".parts")
        return f"interrupted: --resume continues from {output}.parts" if begun else "interrupted: nothing was written"
    return ""


def main(command: str, text: str) -> int:
    """Runs a command on values that C parsed; returns its exit code."""
    if threading.current_thread() is not threading.main_thread():
        return _main(command, text)
    old = signal.signal(signal.SIGTERM, _on_term)
    try:
        return _main(command, text)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if old is None else old)


def _main(command: str, text: str) -> int:
    if command not in ("embed", "curate"):
        import torch  # noqa: F401  # the caller says what to install when it is missing
    values = json.loads(text)
    args = values.pop("args")
    as_json, launched = values.pop("json", False), values.pop("launched", False)
    for name in ("color", "verbose", "anonymous", "ca_file"):  # handled by C
        values.pop(name, None)
    warnings.simplefilter("ignore", AdviceWarning)
    quiet = values.get("quiet", False)
    try:
        result = _run(command, args, values)
    except Error as error:
        print(f"leat {command}: {_flagged(error, command)}", file=sys.stderr)
        return _code(error)
    except KeyboardInterrupt as stop:
        line = _stop_line(command, values)
        if line and not quiet and not launched:
            print(line, file=sys.stderr)
        return 143 if isinstance(stop, _Terminated) else 130
    except ImportError as error:
        if error.name != "torch":
            traceback.print_exc()
        else:
            print(f"leat {command}: {_flagged(error, command)}", file=sys.stderr)
        return 4
    except Exception:  # unexpected: must not give exit code 1, which means "done, with findings"
        traceback.print_exc()
        return 4
    if not result:  # this is not the first rank
        return 0
    failed = 0
    if launched:
        pass  # the process that started the ranks prints the result
    elif as_json:
        failed = printed(command, lambda: print(_json.text(result)))
    else:
        failed = printed(command, lambda: _show(result, command))
    if failed:
        return failed
    stopped = result.get("stopped", 0)
    if command == "curate":
        return 3 if result.get("short") else 1 if result.get("unreadable") else 0
    if stopped and not quiet and not launched:
        print(_train.stop_line(result, "--resume"), file=sys.stderr)
    return 128 + stopped if stopped else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
