#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a C table of calls to every public function, made from the headers.

For each function: `nothing` passes NULL and 0 everywhere; `places` also gives valid places for
results (T **) and the error; `handles` gives real objects where one is expected and NULL and 0, or
`ones` 1 for numbers, for the rest.

    nulls.py OUT.h HEADER...
"""
import os
import re
import sys

HANDLES = ["budget", "pool", "flow", "tuner", "pack", "loader", "sample", "packer"]


def functions(path):
    text = re.sub(r"/\*.*?\*/", "", open(path, encoding="utf-8").read(), flags=re.S)
    text = re.sub(r"^[ \t]*#.*?(?<!\\)$", "", text, flags=re.M)
    for m in re.finditer(r"LEAT_API\s+(.*?);", text, re.S):
        proto = " ".join(m.group(1).replace("LEAT_MUST_CHECK", "").split())
        head = re.match(r"(.*?)\b(leat_\w+)\((.*)\)$", proto)
        checked = "LEAT_MUST_CHECK" in m.group(1)
        yield head.group(1).strip(), head.group(2), split(head.group(3)), checked


def split(params):
    """At commas that are not inside a function pointer's parentheses."""
    parts, depth, part = [], 0, ""
    for c in params:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return [p for p in parts + [part.strip()] if p and p != "void"]


def argument(param, variant):
    pointer = "*" in param or "[" in param
    if not pointer:
        return "1" if variant == "ones" else "0"
    if re.search(r"\(\*", param):
        return "NULL"
    if "leat_error" in param and "const" not in param:
        return "NULL" if variant == "nothing" else "&error"
    handle = re.match(r"(?:const )?leat_(\w+) \*(\*?)\w+$", param)
    if handle and handle.group(1) in HANDLES and variant in ("handles", "ones"):
        return ("&" if handle.group(2) else "") + "real->" + handle.group(1)
    if re.match(r"leat_\w+ \*\*\w+$", param) and variant == "places":
        return "(void *)&place"
    return "NULL"


def call(ret, name, params, variant):
    args = ", ".join(argument(p, variant) for p in params)
    body = f"{name}({args})"
    if ret == "void":
        return f"    {body};\n    return 0;"
    if ret == "int":
        return f"    return {body};"
    return f"    (void){body};\n    return 0;"


def main(out, headers):
    table, code = [], []
    for header in headers:
        for ret, name, params, checked in functions(header):
            must = ret == "int" and checked and any("*" in p for p in params)
            for variant in ("nothing", "places", "handles", "ones"):
                code.append(f"static int {name}_{variant}(objects *real)\n{{\n    (void)real;\n"
                            f"{call(ret, name, params, variant)}\n}}\n")
                refuses = must and variant == "nothing"
                table.append(f'    {{"{name}", "{variant}", {name}_{variant}, {int(refuses)}}},')
    with open(out, "w", encoding="utf-8") as f:
        f.writelines(f"#include <leat/{os.path.basename(h)}>\n" for h in headers)
        f.write("".join(code) + "\nstatic const call calls[] = {\n" + "\n".join(table) + "\n};\n")


main(sys.argv[1], sys.argv[2:])
