#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library against the oracle: test_oracle.py PACK_TOOL DATA_DIR

Packs written by the library obey every rule of docs/format.md as leatpack.py implements it; both readers read the
same from them and from the golden files; and the oracle finds damage too.
"""
import io
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import leatpack  # noqa: E402


def tool(*args):
    return subprocess.run([TOOL, *map(str, args)], check=True, stdout=subprocess.PIPE, text=True).stdout


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def compare(path, expected=None):
    for pack in leatpack.Set(path).packs:
        pack.check_all()
    out = io.StringIO()
    leatpack.dump(path, out)
    ours, theirs = lines(out.getvalue()), lines(tool("dump", path))
    ours[0].pop("fields")
    assert ours == theirs, "the readers disagree about " + path
    if expected is not None:
        with open(expected) as f:
            assert lines(f.read()) == theirs, "golden file %s reads differently" % path
    return len(ours) - 1


def damage_is_found(path):
    with open(path, "rb") as f:
        good = f.read()
    rng = random.Random(5)
    bad_path = path + ".bad"
    for _ in range(200):
        at = rng.randrange(len(good))
        bad = bytearray(good)
        bad[at] ^= rng.randrange(1, 256)
        with open(bad_path, "wb") as f:
            f.write(bad)
        try:
            for pack in leatpack.Set(bad_path).packs:
                pack.check_all()
        except (leatpack.BadPack, ValueError, KeyError):
            continue
        raise AssertionError("the oracle did not see the flip at byte %d" % at)


def main():
    samples = 0
    for name in sorted(os.listdir(DATA)):
        if name.startswith("pack-") and name.endswith(".jsonl"):
            samples += compare(os.path.join(DATA, name[:-6] + ".leat"), os.path.join(DATA, name))
    assert samples > 0, "no golden files in " + DATA
    with tempfile.TemporaryDirectory() as d:
        for i, (n, scale, shard) in enumerate([(0, 10, 0), (1, 10, 0), (300, 900, 0), (400, 4000, 1 << 20)]):
            path = os.path.join(d, "p%d.leat" % i)
            tool("write", path, n, scale, shard)
            samples += compare(path)
            for generation in range(3):
                tool("append", path, n + 10 * generation, n + 10 * generation + 10, scale)
                samples += compare(path)
            with open(path, "rb") as f:
                assert f.read(10)[8] == 3, "a set that drops samples has its own major version"
        tool("write", os.path.join(d, "small.leat"), 20, 300, 0)
        damage_is_found(os.path.join(d, "small.leat"))
    print("%d samples compared" % samples)


if __name__ == "__main__":
    TOOL, DATA = sys.argv[1], sys.argv[2]
    main()
