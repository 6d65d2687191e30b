# SPDX-License-Identifier: Apache-2.0
"""Run by torchrun in test_distributed.py.

dump PACK FILE STEPS: stops at random steps, notes the state and what came after it.
load PACK FILE FROM:  loads each state of FROM and notes what comes.
"""

import json
import os
import random
import sys

import leat

GLOBAL_BATCH = 8


def rest(loader: leat.Loader, run=None) -> list[list[int]]:
    return [b.sample_id.tolist() for b in (loader if run is None else run)]


def main() -> None:
    mode, path, out, what = sys.argv[1:]
    world = int(os.environ["WORLD_SIZE"])
    rows = []
    for order in ("random", "quasi_random"):
        more = {"streams": 4, "window_pages": 4} if order == "quasi_random" else {}
        loader = leat.Loader(path, GLOBAL_BATCH // world, "Resize((8, 8))", order=order, seed=11, as_="numpy", **more)
        assert loader.rank_source == "torchrun" and loader.world_size == world
        if mode == "dump":
            draw = random.Random(world)  # the same on all ranks
            for _ in range(int(what)):
                loader.set_epoch(draw.randrange(50))
                run = iter(loader)
                for _ in range(draw.randrange(len(loader))):
                    next(run)
                rows.append({"order": order, "state": loader.state_dict(), "rest": rest(loader, run)})
        else:
            with open(f"{what}.0") as f:
                states = [row["state"] for row in json.load(f) if row["order"] == order]
            for state in states:
                loader.load_state_dict(state)
                rows.append({"order": order, "state": state, "rest": rest(loader)})
        loader.close()
    with open(f"{out}.{loader.rank}", "w") as f:
        json.dump(rows, f)


main()
