# SPDX-License-Identifier: Apache-2.0
"""``python -m leat`` and the script ``leat`` run the C code of the command."""

from __future__ import annotations

import signal
import sys
import warnings


def main() -> int:
    # the command installs its own handlers; Python's would only record the signal or print a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from . import _leat

    def opener(paths: list[str], members: str | None) -> object:
        try:
            from . import _formats
        except (ImportError, MemoryError) as error:
            from ._errors import UnsupportedError
            lines = [line for line in str(error).splitlines() if line.strip()]
            why = lines[-1].strip() if lines else type(error).__name__
            kind = MemoryError if "map segment" in why else UnsupportedError
            raise kind(f"NumPy, which looks for formats of other tools, cannot be imported: {why}") from None
        return _formats.open_paths(paths, members)

    def writer(*args: object) -> object:
        from . import _formats_arrow
        return _formats_arrow.write(*args)  # type: ignore[arg-type]

    def said(message: object, *rest: object) -> None:
        print(f"leat: {message}", file=sys.stderr)

    warnings.showwarning = said  # type: ignore[assignment]
    _leat.set_reader(opener, writer)

    if sys.stdout is not None:  # None when stdout was closed: the command itself reports that
        sys.stdout.flush()
    return _leat.main(["leat", *sys.argv[1:]], [sys.executable, "-P", "-m", "leat"])


if __name__ == "__main__":
    sys.exit(main())
