#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the readable tables of data/plan/*.txt into C: one struct type and one constant array
per table, and its source as a string.

    gen_tables.py OUT.h IN.txt...

A table is a line `source: …`, a line `table: name`, a header of `column:type` cells (s text,
u whole number, f real number) and rows, with cells separated by '|'. '#' starts a comment line.
"""
import json
import sys

TYPES = {"s": "const char *", "u": "uint64_t ", "f": "double "}


def fail(path, number, text):
    sys.exit(f"{path}:{number}: {text}")


def literal(kind, cell, path, number):
    if kind == "s":
        return json.dumps(cell, ensure_ascii=True)
    try:
        return f"UINT64_C({int(cell)})" if kind == "u" else repr(float(cell))
    except ValueError:
        fail(path, number, f"{cell!r} is not a number")


def tables(path):
    source, table = None, None
    with open(path, encoding="ascii") as f:
        for number, line in enumerate(f, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            if line.startswith("source:"):
                source = line[7:].strip()
            elif line.startswith("table:"):
                if source is None:
                    fail(path, number, "a table needs a source")
                table = {"name": line[6:].strip(), "source": source, "columns": None, "rows": []}
                source = None
                yield table
            elif table is None:
                fail(path, number, "a row outside a table")
            else:
                cells = [c.strip() for c in line.split("|")]
                if table["columns"] is None:
                    table["columns"] = [tuple(c.split(":")) for c in cells]
                    continue
                if len(cells) != len(table["columns"]):
                    fail(path, number, f"{len(cells)} cells, {len(table['columns'])} columns")
                table["rows"].append([literal(k, c, path, number)
                                      for (_, k), c in zip(table["columns"], cells)])


def main():
    out = ["/* Made by gen_tables.py from data/plan: edit those files. */",
           "#ifndef LEAT_PLAN_TABLES_H", "#define LEAT_PLAN_TABLES_H", "",
           "#include <stdint.h>", ""]
    for path in sys.argv[2:]:
        for t in list(tables(path)):
            name = f"plan_{t['name']}"
            out.append(f"typedef struct {name} {{")
            out += [f"    {TYPES[k]}{c};" for c, k in t["columns"]]
            out += [f"}} {name};",
                    f"#define {name.upper()}_SOURCE {json.dumps(t['source'])}",
                    f"__attribute__((unused)) static const {name} {name}_rows[] = {{"]
            out += ["    {" + ", ".join(r) + "}," for r in t["rows"]]
            out += ["};", ""]
    out.append("#endif")
    with open(sys.argv[1], "w", encoding="ascii") as f:
        f.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
