# SPDX-License-Identifier: Apache-2.0
"""What `leat curate` prints: the plan, and the table of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._errors import counted


def _table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Aligns columns of text, except the last one."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) if i in right else cell.ljust(width) for i, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def size(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def duration(hours: float | None) -> str:
    if hours is None:
        return "by the model"
    seconds = 3600 * hours
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min" if seconds < 7200 else f"{hours:.1f} h"


def plan(made: dict[str, Any]) -> str:
    rows = [("step", "time", "memory", "disk", "read", "traffic")]
    rows += [(row["step"], duration(row["hours"]), size(row["memory_bytes"]), size(row["disk_bytes"]), size(row["read_bytes"]),
              size(row["traffic_bytes"])) for row in made["steps"]]
    more = ", and what depends on the model" if made["incomplete"] else ""
    lines = [f"{counted(made['samples'], 'image')}, {size(made['bytes'])}", _table(rows, (1, 2, 3, 4, 5)),
             f"in all {duration(made['hours'])}{more}; at most {size(made['disk_bytes'])} of disk, with files "
             f"that are deleted again and a report of up to {size(made['report_bytes'])}; {size(made['traffic_bytes'])} of traffic",
             made["sanity"]]
    if made["machine"]:
        lines.append(f"suggested machine for this many images: {made['machine']}")
    if made["short"]:
        lines.append(f"does not fit: {made['short']}")
    return "\n".join(lines)


def result(made: dict[str, Any]) -> str:
    rows = [("step", "rows", "dropped", "seconds", "limit", "what would help")]
    for step in made["steps"]:
        dropped = ", ".join(f"{count} {name}" for name, count in step["dropped"].items())
        rows.append((step["step"], str(step["rows"]), dropped, "as before" if step["reused"] else f"{step['seconds']:.1f}",
                     step["limit"], step["advice"]))
    few = f"{counted(made['asked'], 'image')} {'was' if made['asked'] == 1 else 'were'} asked for: fewer were left to select from" if made["asked"] else ""
    lines = [_table(rows, (1, 3)), *([few] if few else []), *([made["note"]] if made["note"] else []),
             f"{made['selected']} of {counted(made['samples'], 'image')} selected, {made['unreadable']} unreadable; {made['seconds']:.1f} s",
             made["list"], *([made["dump"]] if made["dump"] else []), made["report"]]
    return "\n".join(lines)
