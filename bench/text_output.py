# SPDX-License-Identifier: Apache-2.0
"""What text_ray.py and text_scale.py share: lines of JSON, conditions that must hold, digests of output folders."""
import hashlib
import json
import os

# values of report.json that differ from run to run; `run` is missing after a run on Ray
NOISE = {"run", "sum", "seconds", "cpu_seconds", "budget_peak_bytes", "limit", "read_share", "work_share", "write_share", "memory_share"}
failed = []


def say(**values):
    print(json.dumps(values), flush=True)


def must(true, what):
    """Records a condition that does not hold, for the exit status."""
    if not true:
        failed.append(what)
        say(failed=what)


def digest(folder, report=False):
    """Digest of the files of an output folder; with `report` also of report.json without times."""
    total = hashlib.sha256()
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if not os.path.isfile(path):
            continue
        if name == "report.json":
            if report:
                with open(path, encoding="utf-8") as f:
                    total.update(json.dumps({k: v for k, v in json.load(f).items() if k not in NOISE}).encode())
            continue
        total.update(name.encode())
        with open(path, "rb") as f:
            while block := f.read(1 << 20):
                total.update(block)
    return total.hexdigest()[:16]
