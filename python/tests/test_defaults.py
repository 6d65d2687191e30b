# SPDX-License-Identifier: Apache-2.0
"""One default everywhere: an option of the loader has the same default in C, in every command, in YAML files and in Python."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys

import pytest

import leat
from leat import _leat

# Keyword of leat.Loader: option of `leat load`. 0 and "" in Python are "not given" for options without a default.
SAME = {"batch_size": "batch", "seed": "seed", "orientation": "orientation", "threads": "threads", "memory": "memory",
        "cache": "cache", "cache_bytes": "cache-bytes", "on_error": "on-error", "max_bad": "max-bad", "quarantine": "quarantine",
        "prefetch": "prefetch", "io_depth": "io-depth", "keys": "keys", "select": "select", "balance": "balance", "label": "label",
        "classes": "classes", "mix_labels": "mix-labels", "collate": "collate", "pad_multiple": "pad-multiple", "pad_value": "pad-value",
        "pad_mask": "pad-mask", "bucket": "bucket", "follow": "follow", "decode": "decode", "device": "device",
        "device_memory": "device-memory"}
# Other commands have these options of `leat load` with another meaning; plan: the default depends on what is planned.
OTHER = {("show", "size"): "cells of a sheet", ("train", "crop"): "by the size of the images", ("embed", "dtype"): "of the vectors",
         ("train", "label"): "required there", ("tag", "classes"): "a list of names", ("demo", "classes"): "of the made pictures",
         ("train", "epochs"): "a whole training", ("verify", "threads"): "reading, not decoding", ("view", "memory"): "a server",
         ("selftest", "memory"): "a bounded test", ("filter", "on-error"): "lines of crawled text", ("dedup", "on-error"): "lines of crawled text",
         ("decontaminate", "on-error"): "lines of crawled text"}


def leat_command(*args):
    done = subprocess.run([sys.executable, "-m", "leat", *map(str, args)], capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tables():
    listed = json.loads(leat_command("help", "--json"))["commands"]
    return {command["name"]: {o["name"]: o["default"] for o in command["options"]} for command in listed}


def test_python_has_the_defaults_of_the_command(tables, plain):
    parameters = inspect.signature(leat.Loader).parameters
    assert leat.Loader(plain).order == tables["load"]["order"]  # None = not given: shuffle= may say it
    for keyword, option in SAME.items():
        mine, theirs = parameters[keyword].default, tables["load"][option]
        if theirs in (None, "", "false"):
            assert mine in (None, 0, "", False), keyword
        else:
            assert str(mine) == theirs or float(mine) == float(theirs), keyword


def test_commands_have_the_defaults_of_load(tables):
    for command, options in tables.items():
        for name, default in options.items():
            if name in tables["load"] and (command, name) not in OTHER and not (command == "plan" and default is None):
                assert default == tables["load"][name], f"leat {command} --{name}"
    for command, name in OTHER:
        assert tables[command][name] != tables["load"][name], f"leat {command} --{name} is the same now: remove it from OTHER"


def test_defaults_give_the_same_batches_everywhere(plain, tmp_path):
    """C with its options as initialised (`leat load`), a YAML file with nothing in it, the plan's YAML file, Python."""
    empty, planned = tmp_path / "empty.yaml", tmp_path / "plan.yaml"
    empty.write_text("{}\n")
    lines = leat_command("plan", "--dataset", plain, "--model", "resnet50", "--gpu", "A100", "--no-measure", "--yaml").splitlines()
    settings = dict(line.split(": ", 1) for line in lines if ": " in line and not line.startswith("#"))
    assert (settings["order"], settings["cache"]) == ("random", "os")
    planned.write_text("\n".join(f"{key}: {settings[key]}" for key in ("order", "cache")))
    digests = [json.loads(leat_command("load", plain, "--digest", "--json", *more).splitlines()[-1])["digest"]
               for more in ((), ("--config", empty), ("--config", planned), ("--order", "random", "--batch", 256, "--size", 224, "--flip", 0.5))]
    with leat.Loader(plain, digest=True) as loader:
        for _ in loader:
            pass
        digests.append(loader.stats()["digest"])
    assert len(set(digests)) == 1, digests
    assert _leat.defaults()["ops"] == "RandomResizedCrop(224); RandomHorizontalFlip(0.5)"
