# SPDX-License-Identifier: Apache-2.0
"""Several processes under torchrun: states move between worlds.

LEAT_FROM=1,2,4 LEAT_INTO=1,2,4 LEAT_STATES=20 make it as long as it should be once in a while.
"""

import json
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
FROM = [int(n) for n in os.environ.get("LEAT_FROM", "2").split(",")]
INTO = [int(n) for n in os.environ.get("LEAT_INTO", "1,4").split(",")]
STATES = os.environ.get("LEAT_STATES", "5")


def torchrun(world: int, *args: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world),
         os.path.join(HERE, "state_ranks.py"), *args],
        capture_output=True, text=True, timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr


def gather(name: str, world: int) -> list[list[list[int]]]:
    """Per state: the samples of each global batch that was left, over all ranks."""
    ranks = []
    for rank in range(world):
        with open(f"{name}.{rank}") as f:
            ranks.append(json.load(f))
    merged = []
    for rows in zip(*ranks):
        assert all(row["state"] == rows[0]["state"] for row in rows)
        assert len({len(row["rest"]) for row in rows}) == 1
        merged.append([sorted(sum(parts, [])) for parts in zip(*(row["rest"] for row in rows))])
    return merged


@pytest.mark.torch
@pytest.mark.parametrize("world", FROM)
def test_states_move_between_worlds(plain, tmp_path, world):
    dumped = str(tmp_path / "dumped")
    torchrun(world, "dump", plain, dumped, STATES)
    expected = gather(dumped, world)
    assert len(expected) == 2 * int(STATES)
    for other in INTO:
        loaded = str(tmp_path / f"loaded{other}")
        torchrun(other, "load", plain, loaded, dumped)
        assert gather(loaded, other) == expected
