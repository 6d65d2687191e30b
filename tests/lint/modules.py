#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the direction of includes between the modules of src/.

The order of the modules is the order of the subdir() lines in src/meson.build. A module includes
only modules before it. Each module's README names them in a line "**May include:** base, probe."
(the first sentence counts); an include that the line does not name is an error. CONTRIBUTING.md lists all
modules in that order. A README with a table of files ("| file | … |") names every source file of the module.
"""
import pathlib
import re
import sys

UNNAMED = {"doctor_flags", "gpus"}  # their README lacks them still
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


def check_files(module: str) -> list[str]:
    """Source files that the README's table lacks. `arch_*.c` names a family."""
    readme = ROOT / "src" / module / "README.md"
    if not readme.exists() or "\n| file |" not in readme.read_text():
        return []
    named = set(re.findall(r"\w+", readme.read_text())) | UNNAMED
    families = tuple(re.findall(r"(\w+)\*", readme.read_text()))
    return [f"src/{module}/README.md: does not name {path.name}" for path in sorted(readme.parent.glob("*.c"))
            if path.stem not in named and not path.stem.startswith(families)]


def check_list(modules: list[str]) -> list[str]:
    text = " ".join((ROOT / "CONTRIBUTING.md").read_text().split())
    match = re.search(r"The modules of `src/`, lowest first: ([^.]*)\.", text)
    if match and re.findall(r"\w+", match[1]) == modules:
        return []
    return [f"CONTRIBUTING.md: the list of modules is not the one of src/meson.build: {', '.join(modules)}"]


def main() -> int:
    modules = re.findall(r"^subdir\('(\w+)'\)", (ROOT / "src/meson.build").read_text(), re.M)
    errors = [error for module in modules for error in check(module, modules) + check_files(module)] + check_list(modules)
    for error in errors:
        print(error, file=sys.stderr)
    print(f"modules: {len(modules)} in order, {len(errors)} errors")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
