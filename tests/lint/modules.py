#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the direction of includes between the modules of src/.

The order of the modules is the order of the subdir() lines in src/meson.build. A module includes
only modules before it. Each module's README names them in a line "**May include:** base, probe."
(the first sentence counts); an include that the line does not name is an error.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def includes(module: str, modules: list[str]) -> dict[str, str]:
    """Other modules that this one includes, and where it does so first."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "src" / module).glob("**/*.[ch]")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"(\w+)/', line)
            if match and match[1] in modules and match[1] != module:
                found.setdefault(match[1], f"{path.relative_to(ROOT)}:{number}")
    return found


def allowed(readme: pathlib.Path, modules: list[str]) -> set[str] | None:
    match = re.search(r"\*\*May include:\*\*([^.]*)\.", readme.read_text())
    return None if match is None else set(re.findall(r"\w+", match[1])) & set(modules)


def check(module: str, modules: list[str]) -> list[str]:
    readme = ROOT / "src" / module / "README.md"
    if not readme.exists():
        return [f"src/{module}: has no README.md"]
    listed = allowed(readme, modules)
    if listed is None:
        return [f"src/{module}/README.md: has no line '**May include:** ….'"]
    errors = []
    found = includes(module, modules)
    for other, where in found.items():
        if modules.index(other) > modules.index(module):
            errors.append(f"{where}: {module} includes {other}, which is above it")
        elif other not in listed:
            errors.append(f"{where}: {module} includes {other}, which its README does not name")
    return errors


def main() -> int:
    modules = re.findall(r"^subdir\('(\w+)'\)", (ROOT / "src/meson.build").read_text(), re.M)
    errors = [error for module in modules for error in check(module, modules)]
    for error in errors:
        print(error, file=sys.stderr)
    print(f"modules: {len(modules)} in order, {len(errors)} errors")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
