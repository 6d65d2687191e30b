#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Options of `leat plan`: a what-if row is what `leat plan` says with its name typed, for many sets of options."""
import json
import os
import random
import re
import subprocess

LEAT = os.environ["LEAT"]


def leat(*args, code=(0, 3)):
    done = subprocess.run([LEAT, "plan", *map(str, args)], capture_output=True, text=True)
    assert done.returncode in code, (args, done.returncode, done.stderr)
    return done


def plan(options):
    return json.loads(leat(*(word for pair in options.items() for word in pair if word is not None), "--json").stdout)


# ---- what-if rows ---------------------------------------------------------------------------------


def random_options(draw):
    pick = draw.choice
    o = {"--samples": pick([1000, 50000, 1281167]), "--cpus": pick([2, 8, 64]), "--ram": pick(["4G", "32G", "500G"]),
         "--gpus": pick([0, 1, 4]), "--epochs": pick([1, 10]), "--images": pick(["tiled", "keep", "raw"]), "--batch": pick([64, 256])}
    if o["--gpus"]:
        o |= {"--gpu": pick(["T4", "A100", "H200"]), "--model": pick(["resnet18", "resnet50", "vit_b"]),
              "--h2d-gbs": pick([0.05, 20])}
    for name, values in {"--storage": ["hdd", "nvme", "bucket"], "--cpu-us": [300, 3000], "--dtype": ["u8", "f16", "f32"],
                         pick(["--threads", "--workers"]): [1, 4, 16], "--limit": ["3G", "200G"]}.items():
        if draw.random() < 0.5:
            o[name] = pick(values)
    return o


def typed(options, name):
    """The options after a user typed the name of a row: later ones replace earlier ones."""
    changed = dict(options)
    without = re.search(r", no (--[a-z-]+)$", name)
    if without:
        changed.pop(without[1])
    words = re.sub(r", no .*| \(.*\)$", "", name).split()
    for option, value in zip(words[::2], words[1::2], strict=True):
        changed[option] = value
    return changed


def rows_are_what_their_names_plan():
    draw, names = random.Random(7), set()
    for _ in range(40):
        options = random_options(draw)
        for row in plan(options)["what_if"]:
            name = row["change"]
            if name.startswith("--"):
                names.add(re.sub(r" \d+", "", name.split(",")[0].split(" (")[0]))
                then = plan(typed(options, name))["speed"]
                rate = then["samples_per_s"]["mid"]
                assert abs(rate / row["samples_per_s"] - 1) < 0.01 and then["limit"] == row["limit"], (options, row, rate)
            else:
                assert re.fullmatch("leat (pack|load) --.*|whole dataset cached in memory", name), name
    wanted = {"--order quasi_random", "--threads", "--workers", "--cpus", "--cpus --threads", "--cpus --workers", "--dtype u8"}
    assert wanted <= names and any(name.startswith("--loader leat") for name in names), names


def main():
    for test in (rows_are_what_their_names_plan,):
        test()
        print("ok", test.__name__)


if __name__ == "__main__":
    main()
