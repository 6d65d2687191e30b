#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Options of `leat plan`: each changes a plan of its kind or is refused there, and a what-if row is what `leat plan` says with
its name typed, for many sets of options."""
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


# ---- kinds of plans --------------------------------------------------------------------------------

IMAGES = {"--samples": 1000000, "--model": "resnet50", "--gpu": "A100", "--gpus": 1, "--cpus": 8, "--ram": "64G", "--storage": "hdd",
          "--epochs": 2}
GENERIC = {"--model": "generic", "--params": 10**8, "--activation-bytes": "50M", "--gmacs": 4}
SIZE = {"--width": 500, "--height": 700}
WITHOUT = {name: value for name, value in IMAGES.items() if name not in ("--gpu", "--gpus", "--model")}
# Options by the kind of plan: those that it uses, or all but those that it does not.
KINDS = {
    "--text": ({"--text": "500G", "--cpus": 8},
               "text documents memory ram limit storage io-mbs cpus nodes hashes bands bands-per-iteration", None),
    "--documents": ({"--documents": 10**8}, "documents dataset-bytes memory ram limit hashes bands bands-per-iteration", None),
    "--recommend text": ({"--recommend": "text", "--dataset-bytes": "90G"}, "recommend dataset-bytes samples", None),
    "--recommend video": ({"--recommend": "video", "--videos": 9}, "recommend videos", None),
    "--stage": ({"--stage": "caption", "--samples": 10**6, "--gpus": 1, "--gpu": "A100"}, "stage samples gpus gpu vram", None),
    "images": (IMAGES, None, ""),
    "--workers": ({**IMAGES, "--workers": 4}, None, "threads ops like cache memory yaml measure"),
    "--loader process": ({**IMAGES, "--loader": "process"}, None, "threads ops like cache memory yaml measure"),
    "--gpus 0": ({**WITHOUT, "--gpus": 0}, None,
                 "params activation-bytes gmacs precision optimizer compile unfused-attention lr gpu vram step-ms h2d-gbs"),
    "--solve": ({name: value for name, value in IMAGES.items() if name not in ("--ram", "--storage")} | {"--solve": "ram"}, None, "ram lr compare yaml"),
}
# A value of each option, and other options that it needs.
VALUES = {
    "samples": 2000, "sample-bytes": 50000, "width": (900, SIZE), "height": (900, SIZE), "images": "raw",
    "mix-raw": (0.9, {"--images": "mix"}), "video-hours": (10, {"--samples": None}),
    "fps": (10, {"--samples": None, "--video-hours": 10}), "storage": "ssd", "dataset-bytes": "950G", "model": "vit_b",
    "params": (10**9, GENERIC), "activation-bytes": ("200M", GENERIC), "gmacs": (40, GENERIC), "batch": 64, "image": 160,
    "crop": "none", "precision": "fp32", "optimizer": "adamw", "epochs": 9, "compile": None,
    "unfused-attention": (None, {"--model": "vit_b"}), "lr": 0.1, "cpus": 3, "ram": "1G", "limit": "1G", "gpus": 4, "gpu": "T4",
    "vram": "12G", "nodes": 2, "io-mbs": 10, "gbps": (1, {"--storage": "bucket"}), "cpu-us": 9000, "step-ms": 500, "h2d-gbs": 0.01,
    "threads": 2, "workers": 2, "prefetch": 9, "loader": "process", "preset": "aggressive", "dtype": "f16",
    "ops": "Resize((64, 64))", "order": "sequential", "cache": "process", "memory": "200M", "single-loader": None, "videos": 10**6,
    "stage": "TransNetV2", "text": "1T", "documents": 10**7, "hashes": 100, "bands": 10, "bands-per-iteration": 1,
    "recommend": "video", "solve": "batch", "compare": "run.json", "yaml": None, "like": "fast", "dataset": "p.leat", "calibrate": None,
    "measure": (None, {"--ops": "Resize((64, 64))"}),
}
ANSWERS = {"text", "documents", "recommend", "stage", "solve", "videos", "hashes", "bands", "bands-per-iteration", "dataset-bytes"}
PACKS = {"dataset", "calibrate", "compare", "yaml", "like", "measure"}  # python/tests/test_effect_more.py
# What a solution cannot depend on, or here does not.
SOLVED = {"storage", "io-mbs", "gbps", "cpu-us", "step-ms", "h2d-gbs", "cpus", "ram", "gpu", "vram", "precision", "optimizer", "model",
          "compile", "unfused-attention", "params", "activation-bytes", "gmacs", "order", "crop", "nodes", "cache", "ops", "epochs",
          "images", "mix-raw", "fps", "video-hours", "samples", "limit", "loader", "width", "height"}


def words(options):
    """A flag has the value None; a value of None takes an option away."""
    flags = {name for name, value in VALUES.items() if value is None or (isinstance(value, tuple) and value[0] is None)}
    return [str(word) for name, value in options.items() for word in ((name,) if name[2:] in flags else (name, value) if value is not None else ())]


def every_option_has_an_effect_or_is_refused():
    table = json.loads(subprocess.run([LEAT, "help", "--json"], capture_output=True, text=True, check=True).stdout)["commands"]
    names = {o["name"] for c in table if c["name"] == "plan" for o in c["options"]}
    names -= {"json", "quiet", "verbose", "color", "help", "anonymous", "ca-file"}
    assert names == set(VALUES), names ^ set(VALUES)
    wrong = [(kind, name, why) for kind, (base, uses, unused) in KINDS.items() for name in sorted(names)
             if (why := problem(kind, base, name, name in uses.split() if uses is not None else name not in unused.split()))]
    assert not wrong, wrong


def problem(kind, base, name, used):
    """What is wrong with an option in this kind of plan: "" when it has an effect, or is refused because it has none."""
    value, needed = VALUES[name] if isinstance(VALUES[name], tuple) else (VALUES[name], {})
    own = f"--{name}" in kind or (kind == "--workers" and name == "loader") or (kind == "--documents" and name == "text")
    if own or (f"--{name}" in base and not used):
        return ""
    tables = ("--no-measure",) if name == "ops" and used else ()
    done = leat(*words({**base, **(needed if used else {}), f"--{name}": value}), *tables, "--json", code=(0, 2, 3, 4))
    if not used:
        refused = done.returncode == 2 and re.search("has no effect|has an effect only|give one", done.stderr)
        return "" if refused else f"is not refused: {done.stderr}"
    if name in PACKS or ("--samples" in base and "--stage" not in base and name in ANSWERS) or ("--solve" in base and name in SOLVED):
        return ""
    if done.returncode not in (0, 3):
        return done.stderr
    return "changes nothing" if done.stdout == leat(*words({**base, **needed}), "--json", code=(0, 2, 3)).stdout else ""


def rates_that_cannot_change_a_solution_are_refused():
    base = {name: value for name, value in IMAGES.items() if name not in ("--storage", "--epochs")}
    rates = {"storage": "ssd", "io-mbs": 10, "h2d-gbs": 1, "cpu-us": 900, "step-ms": 50, "crop": "none"}
    for field in ("batch", "ram", "gpus", "cpus"):
        fixed = {name: value for name, value in base.items() if name != f"--{field}"} | {"--solve": field}
        for name, value in rates.items():
            used = field in ("gpus", "cpus") and name in ("cpu-us", "step-ms", "crop")
            for more in ({}, {"--epochs": 2, "--threads": 2}):
                done = leat(*words({**fixed, **more, f"--{name}": value}), code=(0, 3) if used else (2,))
                assert used or f"--{name} has no effect with --solve {field}" in done.stderr, done
            leat(*words({**fixed, "--epochs": 2, f"--{name}": value}))  # threads follow from rates


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
    for test in (every_option_has_an_effect_or_is_refused, rates_that_cannot_change_a_solution_are_refused, rows_are_what_their_names_plan):
        test()
        print("ok", test.__name__)


if __name__ == "__main__":
    main()
