# SPDX-License-Identifier: Apache-2.0
"""``python -m leat`` and the script ``leat``: the command, the same C code."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    from . import _leat

    def opener(paths: list[str]) -> object:
        from . import _formats
        return _formats.open_paths(paths)

    def writer(*args: object) -> object:
        from . import _formats_arrow
        return _formats_arrow.write(*args)  # type: ignore[arg-type]

    _leat.set_reader(opener, writer)

    # the command has handlers of its own; Python's would only note the signal
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    return _leat.main(["leat", *sys.argv[1:]], [sys.executable, "-P", "-m", "leat"])


if __name__ == "__main__":
    sys.exit(main())
