# SPDX-License-Identifier: Apache-2.0
"""The package itself: import time, names, the command, types."""

import inspect
import os
import signal
import subprocess
import sys

import pytest

import leat


def run(*args: str, **kwargs) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, timeout=120, **kwargs)


def test_import_pulls_in_little():
    """What an import costs, in modules: time depends on what else the machine does."""
    code = ("import sys; before = set(sys.modules); import leat\n"
            "print(len(set(sys.modules) - before)); print([m for m in ('numpy', 'torch', 'jax') if m in sys.modules])")
    count, modules = run("-c", code).stdout.splitlines()
    assert modules == "[]"
    assert int(count) < 40


def test_every_public_name_is_there():
    for name in leat.__all__:
        assert getattr(leat, name) is not None
    assert set(leat.__all__) == set(dir(leat))
    with pytest.raises(AttributeError):
        leat.nothing


def test_package_is_typed_and_documented():
    folder = os.path.dirname(leat.__file__)
    for name in ("py.typed", "_leat.pyi", "ops.pyi"):
        assert os.path.exists(os.path.join(folder, name))
    for name in leat.__all__:
        value = getattr(leat, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), name


def test_stub_of_ops_names_every_op():
    import ast

    with open(os.path.join(os.path.dirname(leat.__file__), "ops.pyi")) as f:
        tree = ast.parse(f.read())
    stubs = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    assert set(leat.ops.names()) == set(stubs) - {"Op"}
    init = stubs["RandomResizedCrop"].body[1]
    assert [arg.arg for arg in init.args.args] == [
        "self", *inspect.signature(leat.ops.RandomResizedCrop).parameters]


def test_module_is_the_command():
    version = run("-m", "leat", "--version")
    assert version.returncode == 0 and leat.__version__ in version.stdout
    unknown = run("-m", "leat", "pakc")
    assert unknown.returncode == 2 and "pakc" in unknown.stderr


STOPPED = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "leat._errors":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background job
"""


def test_ctrl_c_while_the_command_starts_is_silent(tmp_path):
    """Ctrl-C while the package is imported. Programs that import it get a KeyboardInterrupt, as always."""
    (tmp_path / "sitecustomize.py").write_text(STOPPED)
    (tmp_path / "leat-script").mkdir()
    script = tmp_path / "leat-script" / "leat"
    script.write_text("import sys\nfrom leat.__main__ import main\nsys.exit(main())\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.path.dirname(os.path.dirname(leat.__file__))])}
    for command in (["-m", "leat", "version"], [str(script), "version"]):
        done = run(*command, env=env)
        assert done.returncode == -signal.SIGINT and done.stdout + done.stderr == "", done
    done = run("-c", "import leat", env=env)
    assert "KeyboardInterrupt" in done.stderr, done


def test_demo_starts_itself_again(tmp_path):
    demo = subprocess.Popen([sys.executable, "-m", "leat", "demo", "--images", "16", "--dir", "out"],
                            cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines = []
    for line in demo.stdout:  # the first step has run when the second is shown
        lines.append(line)
        if line.startswith("$ leat pack"):
            break
    demo.terminate()
    demo.communicate(timeout=60)
    assert lines[-1].startswith("$ leat pack"), "".join(lines)
    assert any("memory" in line.lower() for line in lines), "".join(lines)  # what `leat machine` shows


def test_command_loads_packs_without_images(tmp_path):
    path = tmp_path / "plain.leat"
    with leat.Writer(path, {"x": ("float32", (3,)), "label": int}, sync=False) as w:
        w.extend([[[i, i, i], i] for i in range(20)])
    done = run("-m", "leat", "load", os.fspath(path), "--batch", "8", "--json")
    assert done.returncode == 0 and '"samples":20' in done.stdout.replace(" ", ""), done.stderr
    asked = run("-m", "leat", "load", os.fspath(path), "--size", "32")
    assert asked.returncode == 2 and "there is no image field" in asked.stderr
    asked = run("-m", "leat", "doctor", os.fspath(path), "--seconds", "1")
    assert asked.returncode == 2 and "there is no image field" in asked.stderr and "leat.diagnose" in asked.stderr


def test_only_one_symbol_is_exported():
    import ctypes

    from leat import _leat

    library = ctypes.CDLL(_leat.__file__)
    assert library.PyInit__leat
    with pytest.raises(AttributeError):
        library.leat_loader_open


def test_command_without_a_standard_output(tmp_path):
    """A job may start with closed descriptors: the work is done, and a message says that the summary was lost."""
    from PIL import Image

    (tmp_path / "class").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "class" / "a.png")
    out = tmp_path / "made.leat"
    done = subprocess.run(["sh", "-c", '"$0" -m leat pack "$1" -o "$2" -q >&-', sys.executable, str(tmp_path / "class"), str(out)],
                          capture_output=True, text=True)
    assert done.returncode == 4 and done.stderr == "leat pack: cannot write the output: Bad file descriptor\n"
    assert len(leat.open(out)) == 1
