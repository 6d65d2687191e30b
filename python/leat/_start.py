# SPDX-License-Identifier: Apache-2.0
"""Imported first: Ctrl-C ends the command without a traceback, also while the package is being imported. Programs that
import leat keep their own handler."""

from __future__ import annotations

import os
import sys


def is_command(argv: list[str], orig_argv: list[str]) -> bool:
    """The script `leat`, or `python -m leat`, which imports the package before its main module."""
    if argv[:1] != ["-m"]:
        return bool(argv) and os.path.basename(argv[0]) == "leat"
    return "-m" in orig_argv and orig_argv[orig_argv.index("-m") + 1:][:1] == ["leat"]


if is_command(getattr(sys, "argv", []), sys.orig_argv):
    import _signal  # the built-in part of `signal`: importing it reads no file
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
