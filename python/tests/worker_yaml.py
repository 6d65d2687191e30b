# SPDX-License-Identifier: Apache-2.0
"""Mutated configs of `leat curate`: each is either accepted or refused with an error of leat.

    PYTHONPATH=… python python/tests/worker_yaml.py SECONDS [SEED]      seconds of CPU time; prints what went wrong

A short run of it is a test in test_curate.py.
"""
import os
import random
import sys
import tempfile
import time
import traceback

import leat
from leat import _curate_config

SEEDS = ("""
pack: {images: tiled}
check:
  limits: {dark: 40, grey: null}
embed: {model: tiny}
dedup: {keep: quality, orientations: 8}
semantic: {threshold: 0.99}
select:
  count: 10
  where: issues == 0
  strategies:
    - strategy: diversity
    - {strategy: weights, column: blur, strength: 0.5}
dump: {to: folder}
threads: 2
""", """
train: {epochs: 3, method: simclr, model: resnet18, batch_size: 64, lr: 0.1}
embed: {batch_size: 4}
select:
  share: 0.5
  strategies: [{strategy: balance, column: label, distribution: target, target: {cat: 0.5, dog: 0.5}}, random]
memory: 1G
dump: {to: webdataset, output: out, shard_bytes: 1M}
""", "dedup: false\ncheck: &a {limits: {dark: 1}}\nsemantic: {keep_share: 0.5}\ntag: {model: m.pt}\n", "&a [*a]", "pack: &a {images: *a}")
WORDS = ("&a ", "*a", "null", "true", "-1", "1e309", ".nan", "99999999999999999999999", "0x7fffffffffffffff", "''", "[]", "{}", "? ", "!!set {a}",
         "!!binary aGk=", "!!python/name:os.system", "2001-01-01", "~", "\t", "\u2028", "\ud7ff", "<b>", "|\n  x", "- ", ": ", "<<: *a", "1:30", "0o17",
         "[[[[[[", "%YAML 1.1\n---\n", "...\n", "\x85", "'\\0'", '"\\u0000"', '"\\uD800"')


def mutant(draw: random.Random) -> str:
    text = draw.choice(SEEDS)
    for _ in range(draw.randint(1, 6)):
        at, end = sorted((draw.randint(0, len(text)), draw.randint(0, len(text))))
        end = min(end, at + draw.randint(0, 30))
        kind = draw.randrange(5)
        if kind == 0:
            text = text[:at] + draw.choice(WORDS) + text[end:]
        elif kind == 1:
            text = text[:at] + text[end:]
        elif kind == 2:
            text = text[:at] + text[at:end] * draw.randint(2, 4) + text[end:]
        elif kind == 3:
            text = text[:at] + chr(draw.choice((draw.randrange(128), draw.randrange(0xd800)))) + text[at + 1:]
        else:  # a value becomes another one
            lines = text.split("\n")
            row = draw.randrange(len(lines))
            lines[row] = lines[row].partition(":")[0] + ": " + draw.choice(WORDS)
            text = "\n".join(lines)
    return text


def try_one(path: str, text: str) -> None:
    """Raises what is not an error of leat."""
    with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(text)
    try:
        _curate_config.read(path, {}, {})
    except leat.Error as error:
        assert "\n" not in str(error) and len(str(error)) < 2000, str(error)[:200]


def main(seconds: float, seed: int) -> int:
    draw, tried, wrong = random.Random(seed), 0, {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "c.yaml")
        while time.process_time() < seconds:
            text = mutant(draw)
            tried += 1
            try:
                try_one(path, text)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                last = traceback.extract_tb(error.__traceback__)[-1]
                wrong.setdefault((type(error).__name__, last.filename, last.lineno), (text, traceback.format_exc()))
    for text, trace in wrong.values():
        print(repr(text), trace, sep="\n")
    print(f"{tried} configs, {len(wrong)} kinds of wrong errors")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1))
