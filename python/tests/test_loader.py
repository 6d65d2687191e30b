# SPDX-License-Identifier: Apache-2.0
"""leat.Loader: what it yields, in which order, for how long, and how it ends."""

import gc
import hashlib
import json
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import leat
from conftest import ORDERS, pixels

OPS = "RandomResizedCrop(16); RandomHorizontalFlip"
# how long the repeated tests are
KEPT = int(os.environ.get("LEAT_KEPT", "10000"))
CYCLES = int(os.environ.get("LEAT_CYCLES", "1000"))


def ids(loader: leat.Loader) -> list[int]:
    return [int(i) for batch in loader for i in batch.sample_id]


def numpy_loader(path: str, batch_size: int = 8, image=OPS, **options) -> leat.Loader:
    return leat.Loader(path, batch_size, image, as_="numpy", **options)


# ---- what it yields --------------------------------------------------------------------------


def test_batches(pack, images):
    with numpy_loader(pack, image="Resize((24, 32))", order="sequential") as loader:
        assert loader.field_names == ("image", "label", "score", "caption", "boxes", "vector", "sample_id")
        assert len(loader) == 13 and loader.samples == 101 and loader.batch_size == 8
        batches = list(loader)
    assert [len(b.label) for b in batches] == [8] * 12 + [5]
    b = batches[3]
    image, label, score, caption, boxes, vector, sample_id = b
    assert image is b.image is b["image"] and isinstance(b, leat.Batch) and isinstance(b, tuple)
    assert image.shape == (8, 3, 24, 32) and image.dtype == np.uint8
    assert sample_id.tolist() == list(range(24, 32)) and (label == sample_id % 10).all()
    assert (score == sample_id / 2).all() and (vector == sample_id[:, None]).all()
    assert caption.tolist() == [f"caption {i} é" for i in range(24, 32)] and caption[-1] == "caption 31 é"
    assert [x.shape for x in boxes] == [(i % 3, 4) for i in range(24, 32)]
    np.testing.assert_array_equal(boxes[2], np.arange(8, dtype=np.float32).reshape(2, 4))
    assert list(b.keys()) == list(b.asdict()) == list(loader.field_names)
    assert b.get("label") is label and b.get("none") is None and dict(b.items())["score"] is score
    assert dict(**b)["label"] is label
    with pytest.raises(KeyError):
        b["none"]


def test_pixels_are_pillows(pack, images):
    from PIL import Image

    with numpy_loader(pack, 101, "Resize((24, 32))", order="sequential") as loader:
        batch = next(iter(loader))
    for i in (0, 33, 100):
        expected = Image.fromarray(pixels(images[i])).resize((32, 24), Image.BILINEAR)
        np.testing.assert_array_equal(batch.image[i].transpose(1, 2, 0), np.asarray(expected))


def test_views_fields_and_dicts(pack):
    views = {"small": ("image", [leat.ops.RandomResizedCrop(8)]),
             "large": ("image", [leat.ops.RandomResizedCrop(16), leat.ops.ToDtype("float32")])}
    with numpy_loader(pack, image=views, fields=["label"], as_dict=True) as loader:
        batch = next(iter(loader))
    assert type(batch) is dict and list(batch) == ["small", "large", "label", "sample_id"]
    assert batch["small"].shape == (8, 3, 8, 8) and batch["large"].dtype == np.float32
    with numpy_loader(pack, fields=["label"]) as loader:
        assert loader.field_names == ("image", "label", "sample_id")
    with numpy_loader(pack, image=None) as loader:
        assert "image" not in loader.field_names and "label" in loader.field_names
        assert len(ids(loader)) == 101


def test_transform_runs_on_every_batch(plain):
    with numpy_loader(plain, transform=lambda b: b._replace(image=b.image / 255.0)) as loader:
        for b in loader:
            assert b.image.dtype == np.float64 and b.image.max() <= 1


def test_an_unknown_field_of_a_batch_names_those_there_are(pack):
    with numpy_loader(pack) as loader:
        batch = next(iter(loader))
        fields = ", ".join(loader.field_names)
        with pytest.raises(AttributeError) as caught:
            batch.lable
        assert str(caught.value) == f"the batch has no field 'lable' (it has {fields})"
        assert caught.value.name == "lable" and caught.value.obj is batch  # from these, Python adds "Did you mean: 'label'?"
        with pytest.raises(KeyError, match="the batch has no field 'lable'"):
            batch["lable"]
        assert not hasattr(batch, "shape") and batch.get("lable") is None


def test_settings_can_be_read(plain):
    with numpy_loader(plain, threads=2) as loader:
        assert loader.threads == 2 and loader.path == str(plain) and loader.batch_size == 8 and loader.epoch == 0
        with pytest.raises(AttributeError, match="leat.Loader.threads is read-only"):
            loader.threads = 3
        next(iter(loader))
        assert 1 <= loader.threads <= 2
    with numpy_loader(plain) as loader:
        before = loader.threads
        next(iter(loader))
        assert loader.threads == before >= 1


def test_batches_can_be_pickled(pack):
    with numpy_loader(pack) as loader:
        for batch in loader:
            copy = pickle.loads(pickle.dumps(batch))
            assert type(copy) is type(batch) and copy.names == batch.names
            for mine, other in zip(batch, copy):
                if isinstance(mine, np.ndarray):
                    np.testing.assert_array_equal(mine, other)
                else:
                    assert str(mine.tolist()) == str(other.tolist())


def test_transform_that_returns_nothing_is_an_error(plain):
    """None must not look like the end of the epoch: training would run with no step."""
    with numpy_loader(plain, transform=lambda b: None) as loader, \
            pytest.raises(leat.ArgumentError, match="transform returned None: it must return the batch"):
        list(loader)
    seen = []
    with numpy_loader(plain, transform=lambda b: seen.append(b) or (b if len(seen) < 3 else None)) as loader:
        run = iter(loader)
        assert next(run) is not None and next(run) is not None
        with pytest.raises(leat.ArgumentError, match="transform"):
            next(run)
    for falsy in (0, (), {}):  # only None is refused
        with numpy_loader(plain, transform=lambda b, value=falsy: value) as loader:
            assert list(loader) == [falsy] * len(loader)
    with pytest.raises(leat.ArgumentError, match="transform: 3 cannot be called"):
        numpy_loader(plain, transform=3)


def test_a_transform_that_raises_loses_no_batch(plain):
    """The batch comes with the next call, and a state that is taken in between begins with it."""
    calls = []

    def sometimes(batch):
        calls.append(batch)
        if len(calls) in (3, 4, 8):
            raise KeyError("boom")
        return batch

    with numpy_loader(plain) as loader:
        want = [batch.sample_id.tolist() for batch in loader]
    got, states = [], []
    with numpy_loader(plain, transform=sometimes) as loader:
        run = iter(loader)
        while True:
            try:
                got.append(next(run).sample_id.tolist())
            except KeyError:
                states.append((len(got), loader.state_dict()))
            except StopIteration:
                break
    assert got == want and [done for done, _ in states] == [2, 2, 5]
    for done, state in states:
        with numpy_loader(plain) as loader:
            loader.load_state_dict(state)
            assert [batch.sample_id.tolist() for batch in loader] == want[done:]


@pytest.mark.torch
def test_torch_is_the_default(plain):
    import torch

    with leat.Loader(plain, 8, OPS) as loader:
        assert loader.as_ == "torch"
        b = next(iter(loader))
    assert isinstance(b.image, torch.Tensor) and b.label.dtype == torch.int64
    b.image.fill_(3)


# ---- order ---------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
def test_every_sample_once_per_epoch(plain, order):
    with numpy_loader(plain, order=order, seed=5) as loader:
        first, second = ids(loader), ids(loader)
    assert sorted(first) == sorted(second) == list(range(101))
    assert (first != second) == dict(leat._leat.orders())[order]


def test_epochs(plain):
    with numpy_loader(plain, order="random", seed=5) as loader:
        epochs = [ids(loader) for _ in range(3)]
        assert loader.epoch == 3
        loader.set_epoch(1)
        assert loader.epoch == 1 and ids(loader) == epochs[1] and ids(loader) == epochs[2]
        assert loader.sample_ids(0).tolist() == epochs[0] and loader.sample_ids(2, 5, 9).tolist() == epochs[2][5:9]
        loader.sampler.set_epoch(0)
        assert ids(loader) == epochs[0]
        next(iter(loader))  # a break ends the epoch: the next iteration is another one
        assert ids(loader) == epochs[2]


def digest(loader: leat.Loader) -> str:
    h = hashlib.sha256()
    for b in loader:
        h.update(b.image.tobytes() + b.label.tobytes() + b.sample_id.tobytes())
    return h.hexdigest()


def test_bytes_depend_on_seed_and_epoch_only(plain):
    digests = set()
    for options in ({"threads": 1}, {"threads": 3}, {"memory": "64M", "prefetch": 1}, {"cache": "process"}):
        with numpy_loader(plain, order="random", seed=9, **options) as loader:
            digests.add(digest(loader))
    assert len(digests) == 1
    with numpy_loader(plain, order="random", seed=10) as loader:
        assert digest(loader) not in digests


def test_subsets(plain):
    with numpy_loader(plain, indices=[5, 3, 90], order="sequential") as loader:
        assert ids(loader) == [5, 3, 90]
    with numpy_loader(plain, keys=["00000007", b"00000002"], order="sequential") as loader:
        assert ids(loader) == [7, 2]
    with pytest.raises(leat.ArgumentError, match="keys: "):
        numpy_loader(plain, keys=["none"])
    with numpy_loader(plain, order="random", indices=np.arange(50, 70)) as loader:
        assert sorted(ids(loader)) == list(range(50, 70))


def test_weights_and_balance(plain):
    weights = np.zeros(101)
    weights[[4, 8]] = 1
    with numpy_loader(plain, order="random", weights=weights, draws=400) as loader:
        drawn = np.bincount(ids(loader), minlength=101)
    assert drawn.sum() == 400 and drawn[[4, 8]].sum() == 400 and drawn[4] > 150 and drawn[8] > 150
    with numpy_loader(plain, order="random", balance="label", draws=2000) as loader:
        labels = np.concatenate([b.label for b in loader])
    assert (np.abs(np.bincount(labels) - 200) < 60).all()


def test_drop_last(plain):
    with numpy_loader(plain, drop_last=True) as loader:
        assert len(loader) == 12 and [len(b.label) for b in loader] == [8] * 12


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("world", [2, 3, 4])
def test_ranks_share_an_epoch(plain, order, world):
    batches = []
    for rank in range(world):
        more = {"streams": 12} if order == "quasi_random" else {}
        with numpy_loader(plain, 7, order=order, rank=rank, world_size=world, **more) as loader:
            assert loader.rank_source == "arguments"
            batches.append([b.sample_id.tolist() for b in loader])
            assert len(batches[-1]) == len(loader)  # also on ranks that have nothing left
    assert len({len(b) for b in batches}) == 1
    assert sorted(i for rank in batches for b in rank for i in b) == list(range(101))


# ---- borrowed batches ----------------------------------------------------------------------


def test_kept_batches_stay_as_they_are(plain):
    kept, sums, budget = [], [], 128 << 20
    with numpy_loader(plain, 2, "RandomResizedCrop(32)", order="random", memory=budget) as loader:
        while len(kept) < KEPT:
            for b in loader:
                kept.append(b)
                sums.append(hashlib.md5(b.image.tobytes()).digest())
        assert loader.stats()["budget_peak_bytes"] <= budget
    assert [hashlib.md5(b.image.tobytes()).digest() for b in kept] == sums


def test_keeping_more_than_the_budget_is_an_error_that_passes(plain):
    kept = []
    with numpy_loader(plain, 16, "Resize((256, 256)); ToDtype(f32)", memory="128M") as loader:
        with pytest.raises(leat.BudgetError):
            for _ in range(50):
                kept += list(loader)
        kept.clear()
        assert sum(len(b.label) for b in loader) == 101


@pytest.mark.parametrize("cache", ["os", "process"])
def test_memory_can_be_lowered_while_running(plain, cache):
    with numpy_loader(plain, 2, "Resize((512, 512)); ToDtype(f32)", memory="128M", prefetch=40,
                      cache=cache) as loader:
        assert loader.memory == 128 << 20
        seen, after = 0, 0
        for i, batch in enumerate(loader):
            seen += len(batch.label)
            del batch
            if i < 10:
                time.sleep(0.05)  # the loader runs ahead
            elif i == 10:
                assert loader.stats()["budget_used_bytes"] > 64 << 20
                loader.memory = "64M"
            elif loader.stats()["budget_used_bytes"] <= loader.memory == 64 << 20:
                break
            else:
                after += 1
        assert after <= 40  # what had been made ahead
        assert seen + sum(len(b.label) for b in loader) == seen + 101
        with pytest.raises(leat.BudgetError):
            for i, _ in enumerate(loader):
                loader.memory = 4096


# ---- life ----------------------------------------------------------------------------------


def status() -> tuple[int, int]:
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


def test_cycles_leak_nothing(plain):
    def cycle() -> None:
        loader = numpy_loader(plain, 4, "Resize((8, 8))")
        for i, _ in enumerate(loader):
            if i == 2:
                break

    for _ in range(20):
        cycle()
    before = status()
    for _ in range(CYCLES):
        cycle()
    assert status() == before


def test_break_stops_the_workers(plain):
    with numpy_loader(plain, 4, OPS) as loader:
        for _ in loader:
            break
        gc.collect()
        assert loader._active() is None
        assert sum(len(b.label) for b in loader) == 101


def test_one_iteration_at_a_time(plain):
    with numpy_loader(plain) as loader:
        first = iter(loader)
        next(first)
        second = iter(loader)
        assert len(second) == 13 and len(ids(second)) == 101
        with pytest.raises(leat.StateError):
            next(first)
    assert list(second) == []


def test_closed_loader(plain):
    loader = numpy_loader(plain)
    run = iter(loader)
    batch = next(run)
    state = loader.state_dict()
    loader.close()
    loader.close()
    assert loader.state_dict() == state and state["position"] == 8
    assert batch.label.tolist() == (batch.sample_id % 10).tolist()
    with pytest.raises(leat.StateError):
        next(run)
    with pytest.raises(leat.StateError):
        iter(loader)


def test_loaders_in_threads(plain):
    results = []

    def work(seed: int) -> None:
        with numpy_loader(plain, order="random", seed=seed) as loader:
            results.append(sorted(ids(loader)) == list(range(101)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [True] * 4


def test_a_second_thread_inside_is_told(plain):
    with numpy_loader(plain) as loader:
        errors = []

        def work() -> None:
            try:
                for _ in range(30):
                    for _ in loader._loader.stats().values():
                        pass
            except leat.StateError as e:
                errors.append(str(e))

        thread = threading.Thread(target=work)
        thread.start()
        n = sum(len(b.label) for b in loader)
        thread.join()
        assert n == 101 and all("another thread" in e for e in errors)


def test_pickling_is_refused(plain):
    import pickle

    with numpy_loader(plain) as loader, pytest.raises(TypeError, match="cannot be pickled or copied"):
        pickle.dumps(loader)
    ds = leat.open(plain)
    assert len(pickle.loads(pickle.dumps(ds))) == 101


def test_fork_is_refused_and_harmless(plain):
    """In a separate process: a fork would harm other tests' threads."""
    code = textwrap.dedent(f"""
        import gc, leat, os
        loader = leat.Loader({plain!r}, 8, "RandomResizedCrop(16)", as_="numpy")
        batch = next(iter(loader))
        child = os.fork()
        if child == 0:
            try:
                next(iter(loader))
            except leat.ForkError as e:
                print(e, flush=True)
            assert len(leat.open({plain!r})[0]["image"].decode()) > 0
            with leat.Loader({plain!r}, 8, "RandomResizedCrop(16)", as_="numpy", threads=1) as own:
                print(sum(len(b.label) for b in own), flush=True)
            del batch, loader
            gc.collect()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(sum(len(b.label) for b in loader))
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    message, child, parent = done.stdout.splitlines()
    assert "fork" in message and "spawn" in message and child == parent == "101"


def test_exit_with_a_running_loader(plain):
    code = f"import leat\nloader = leat.Loader({plain!r}, 4, as_='numpy')\nrun = iter(loader)\nnext(run)\nprint('ok')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")


def test_exit_while_a_daemon_thread_takes_batches(plain):
    code = textwrap.dedent(f"""
        import leat, sys, threading, time
        loader = leat.Loader({plain!r}, 4, as_="numpy")
        def run():
            while True:
                for batch in loader: pass
        threading.Thread(target=run, daemon=True).start()
        time.sleep(0.3)
        sys.exit(7)
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (7, "")


def test_interrupt_ends_a_blocked_next(plain):
    """One batch that takes a thread seconds to make: Ctrl-C does not wait for it."""
    code = textwrap.dedent(f"""
        import leat, os, signal, threading, time
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background job
        loader = leat.Loader({plain!r}, 512, "Resize((256, 256))" + "; GaussianBlur(31, 8)" * 4,
                             order="random", balance="label", draws=512, threads=1, as_="numpy")
        def send():
            global sent
            time.sleep(0.3)
            sent = time.monotonic()
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=send).start()
        try:
            next(iter(loader))
            print("not blocked")
        except KeyboardInterrupt:
            print(time.monotonic() - sent)
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.2


# ---- state ---------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
def test_state(plain, order):
    options = dict(order=order, seed=3)
    with numpy_loader(plain, **options) as loader:
        loader.set_epoch(4)
        whole = [b.sample_id.tolist() for b in loader]
        loader.set_epoch(4)
        run = iter(loader)
        states = [loader.state_dict()]
        for b in run:
            states.append(loader.state_dict())
        following = ids(loader)
    import json

    for done, state in enumerate(states):
        assert len(json.dumps(state)) < 1000
        with numpy_loader(plain, **options) as other:
            other.load_state_dict(json.loads(json.dumps({"loader": state, "digest": "0"} if done % 2 else state)))
            assert other.state_dict() == state or done == len(whole)
            rest = [b.sample_id.tolist() for b in other]
            assert rest == whole[done:] if done < len(whole) else sum(rest, []) == following


def test_state_of_another_dataset_or_order_is_refused(plain, pack):
    with numpy_loader(plain, order="random") as loader:
        next(iter(loader))
        state = loader.state_dict()
    for path, options in ((pack, {"order": "random"}), (plain, {"order": "sequential"}),
                          (plain, {"order": "random", "seed": 1}),
                          (plain, {"order": "random", "batch_size": 9})):
        with numpy_loader(path, **options) as loader, pytest.raises(leat.Error):
            loader.load_state_dict(state)
    with numpy_loader(plain) as loader:
        for wrong in ({}, {"position": "x"}, {**state, "leat_state": 99}):
            with pytest.raises(leat.Error):
                loader.load_state_dict(wrong)


def test_set_epoch_before_and_after_loading(plain):
    with numpy_loader(plain, order="random") as loader:
        loader.set_epoch(7)
        assert loader.state_dict()["epoch"] == 7 and loader.state_dict()["position"] == 0
        run = iter(loader)
        next(run)
        state = loader.state_dict()
        rest = [int(i) for b in run for i in b.sample_id]
    with numpy_loader(plain, order="random") as loader:
        loader.load_state_dict(state)
        loader.set_epoch(7)  # as Lightning does: continue inside it
        assert ids(loader) == rest
        loader.load_state_dict(state)
        loader.set_epoch(8)  # another epoch: from its start
        assert sorted(ids(loader)) == list(range(101))


def test_state_moves_between_worlds(plain):
    """Taken by 1, 2 and 4 ranks, loaded into 1, 2 and 4: the same samples remain."""
    def loaders(world: int) -> list[leat.Loader]:
        return [numpy_loader(plain, 8 // world, order="random", seed=2, rank=r, world_size=world)
                for r in range(world)]

    rng = np.random.default_rng(0)
    for world in (1, 2, 4):
        for step in rng.integers(0, 13, 5):
            ranks = loaders(world)
            runs = [iter(loader) for loader in ranks]
            seen = {int(i) for run in runs for _ in range(step) for i in next(run).sample_id}
            states = [loader.state_dict() for loader in ranks]
            assert all(s == states[0] for s in states)
            for other in (1, 2, 4):
                rest = []
                for loader in loaders(other):
                    loader.load_state_dict(states[-1])
                    rest += ids(loader)
                    loader.close()
                assert sorted(rest) == sorted(set(range(101)) - seen)
            for loader in ranks:
                loader.close()


@pytest.mark.filterwarnings("ignore::leat.AdviceWarning")
@pytest.mark.parametrize("step", [1, 6, 12])
def test_samples_left_out_stay_left_out_with_other_ranks(plain, step):
    """101 samples in global batches of 8 leave 5: too few for 8 ranks, enough for 1 and 2."""
    ranks = [numpy_loader(plain, batch_size=1, seed=3, rank=r, world_size=8) for r in range(8)]
    runs = [iter(loader) for loader in ranks]
    seen = {int(i) for run in runs for _ in range(step) for i in next(run).sample_id}
    state = ranks[0].state_dict()
    rest = {int(i) for run in runs for b in run for i in b.sample_id}
    assert state["left_out"] is True and len(seen | rest) == 96
    for world in (1, 2, 8):
        come, later = [], []
        for rank in range(world):
            with numpy_loader(plain, batch_size=8 // world, seed=3, rank=rank, world_size=world) as loader:
                loader.load_state_dict(json.loads(json.dumps(state)))
                if step < 12:
                    come += ids(loader)
                assert loader.epoch == 1
                later += ids(loader)
        assert sorted(come) == sorted(rest)
        assert len(later) == len(set(later)) == (96 if world == 8 else 101)


# ---- ranks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("environ, expected", [
    ({}, (0, 1, "single process")),
    ({"RANK": "1", "WORLD_SIZE": "4"}, (1, 4, "torchrun")),
    ({"RANK": "0"}, (0, 1, "single process")),
    ({"WORLD_SIZE": "1"}, (0, 1, "single process")),
    ({"RANK": "", "WORLD_SIZE": ""}, (0, 1, "single process")),
    ({"SLURM_NTASKS": "8"}, (0, 1, "single process")),  # a shell of salloc
    ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_STEP_NUM_TASKS": "1"}, (0, 1, "single process")),
    ({"WORLD_SIZE": "8", "SLURM_PROCID": "2", "SLURM_NTASKS": "8"}, (2, 8, "slurm")),
    ({"SLURM_PROCID": "2", "SLURM_NTASKS": "8"}, (2, 8, "slurm")),
    ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_NAME": "bash"}, (0, 1, "single process")),
    ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}, (3, 4, "mpi")),
    ({"PMI_RANK": "0", "PMI_SIZE": "2"}, (0, 2, "mpi")),
    ({"RANK": "0", "WORLD_SIZE": "2", "SLURM_PROCID": "5", "SLURM_NTASKS": "8"}, (0, 2, "torchrun")),
])
def test_rank_detection(environ, expected):
    from leat._rank import detect

    assert detect(None, None, environ) == expected
    assert detect(1, 3, environ) == (1, 3, "arguments")


@pytest.mark.parametrize("environ, expected", [
    ({"RANK": "5", "WORLD_SIZE": "4"}, "RANK=5 is not below WORLD_SIZE=4"),
    ({"RANK": "4", "WORLD_SIZE": "4"}, "RANK=4 is not below WORLD_SIZE=4"),
    ({"RANK": "0", "WORLD_SIZE": "0"}, "RANK=0 is not below WORLD_SIZE=0"),
    ({"RANK": "x", "WORLD_SIZE": "4"}, "RANK=x is not a whole number"),
    ({"RANK": "-1", "WORLD_SIZE": "4"}, "RANK=-1 is not a whole number"),
    ({"RANK": "1", "WORLD_SIZE": "4.0"}, "WORLD_SIZE=4.0 is not a whole number"),
    ({"WORLD_SIZE": "4"}, "WORLD_SIZE=4 is set, but RANK is not"),
    ({"RANK": "1"}, "RANK=1 is set, but WORLD_SIZE is not"),
    ({"SLURM_PROCID": "7", "SLURM_NTASKS": "3"}, "SLURM_PROCID=7 is not below SLURM_NTASKS=3"),
    ({"PMI_RANK": "2", "PMI_SIZE": "2"}, "PMI_RANK=2 is not below PMI_SIZE=2"),
    ({"OMPI_COMM_WORLD_SIZE": "2"}, "OMPI_COMM_WORLD_SIZE=2 is set, but OMPI_COMM_WORLD_RANK is not"),
    ({"RANK": "9", "WORLD_SIZE": "2", "SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, "RANK=9 is not below WORLD_SIZE=2"),
])
def test_broken_rank_environment_is_an_error(environ, expected):
    from leat._rank import detect

    with pytest.raises(leat.ArgumentError, match=f"rank: .*{expected}"):
        detect(None, None, environ)
    assert detect(1, 3, environ) == (1, 3, "arguments")


def test_the_local_rank_is_a_number():
    from leat import _rank
    assert [_rank.local(e) for e in ({}, {"LOCAL_RANK": "3"}, {"LOCAL_RANK": "", "SLURM_LOCALID": "2"})] == [0, 3, 2]
    for text in ("x", "-1", "1.0"):
        with pytest.raises(leat.ArgumentError, match=f"LOCAL_RANK={text} is not a rank"):
            _rank.local({"LOCAL_RANK": text})


def test_dataset_of_a_loader(plain):
    with numpy_loader(plain) as loader:
        assert len(loader.dataset) == 101 and loader.dataset[3]["label"] == 3
        stats = loader.stats()
        assert stats["budget_limit_bytes"] > 0


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float64"])
@pytest.mark.parametrize("dims", [1, 2, 3, 5])
def test_ragged_arrays_of_any_number_of_dimensions(tmp_path, dtype, dims):
    """Shapes and elements follow each other in a batch: with an odd number of dimensions, or of
    bytes, neither may shift the other."""
    rng = np.random.default_rng(dims)
    arrays = [rng.integers(0, 100, rng.integers(0, 4, dims)).astype(dtype) for _ in range(23)]
    path = tmp_path / "ragged.leat"
    with leat.Writer(path, {"a": (dtype, (None,) * dims), "n": int, "b": ("uint8", (None,))}, sync=False) as w:
        for i, array in enumerate(arrays):
            w.append({"a": array, "n": i, "b": np.arange(i % 5, dtype=np.uint8)})
    seen = []
    for batch in leat.Loader(path, 7, None, order="random", seed=3, as_="numpy"):
        assert len(batch.a) == len(batch.n)
        for row, value, short in zip(batch.n.tolist(), batch.a, batch.b):
            assert value.dtype == dtype and value.shape == arrays[row].shape
            np.testing.assert_array_equal(value, arrays[row])
            np.testing.assert_array_equal(short, np.arange(row % 5))
            assert value.ctypes.data % value.itemsize == 0
            seen.append(row)
    assert sorted(seen) == list(range(23))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_ragged_arrays_may_be_absent(tmp_path, dims):
    """Batches reuse memory: a sample without an array must not get the shape of an earlier one."""
    path = tmp_path / "absent.leat"
    with leat.Writer(path, {"a": ("float32", (None,) * dims), "n": int}, sync=False) as w:
        for i in range(90):
            w.append({"n": i} if i % 3 == 0 else {"n": i, "a": np.full((i % 5 + 1,) * dims, i, np.float32)})
    loader = leat.Loader(path, 8, None, seed=3, as_="numpy", threads=2)
    for epoch in range(3):
        loader.set_epoch(epoch)
        for batch in loader:
            for row, shape, value in zip(batch.n.tolist(), batch.a.shapes, batch.a):
                if row % 3 == 0:
                    assert value.size == 0 and not shape.any()
                else:
                    np.testing.assert_array_equal(value, np.full((row % 5 + 1,) * dims, row, np.float32))
