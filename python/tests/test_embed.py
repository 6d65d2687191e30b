# SPDX-License-Identifier: Apache-2.0
"""leat.embed: the same rows for any number of ranks and after kills; models; bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import leat
from conftest import jpeg


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """60 pictures, the last ten of them recoded copies of the first ten."""
    path = str(tmp_path_factory.mktemp("embed") / "photos.leat")
    with leat.Writer(path, {"image": "image", "label": int}, sync=False) as w:
        for i in range(60):
            draw = np.random.default_rng(i % 50)
            w.append({"image": jpeg(draw, 64, 48, 85 if i < 50 else 60), "label": i % 3}, key=f"k{i}")
    return path


def vectors(path, name="vector"):
    return np.stack([sample[name] for sample in leat.open(path)])


def test_tiny_finds_recoded_copies_without_torch(photos, tmp_path):
    out = str(tmp_path / "v.leat")
    code = f"import sys; sys.modules['torch'] = None; import leat; print(leat.embed({photos!r}, output={out!r}, quiet=True))"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = (f"import sys; sys.modules['torch'] = None; from leat._train.__main__ import main; "
            f"sys.exit(main('embed', '{{\"args\": [\"{photos}\"], \"output\": \"{out}2\", \"model\": \"nomodel\"}}'))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 4
    assert done.stderr == "leat embed: --model: 'nomodel' needs PyTorch; only 'tiny' runs without it: pip install torch\n"
    found = vectors(out)
    assert found.shape == (60, 224) and found.dtype == np.float32
    assert list(leat.open(out).keys) == list(leat.open(photos).keys)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    near = found @ found.T
    np.fill_diagonal(near, -1)
    assert (near[50:].argmax(1) == np.arange(10)).all()


def test_an_unreadable_image_ends_the_run_and_the_error_says_what_to_do(tmp_path):
    with leat.Writer(tmp_path / "p.leat", {"image": "image"}, sync=False) as w:
        for i in range(3):
            data = jpeg(np.random.default_rng(i), 300, 200)
            w.append({"image": data[:len(data) // 2] if i == 1 else data}, key=f"k{i}")
    with pytest.raises(leat.DataError, match="k1.*; leat check finds all such images and leat pack --select leaves them out; leat curate does both") as found:
        leat.embed(tmp_path / "p.leat", output=str(tmp_path / "v.leat"), quiet=True)
    assert found.value.key == "k1" and found.value.code == "LEAT_EDATA"
    leat.check(tmp_path / "p.leat", tmp_path / "c.leat")
    leat.select(tmp_path / "p.leat", tmp_path / "s.leat", columns=tmp_path / "c.leat", where="verdict == 0")
    leat.pack(tmp_path / "p.leat", tmp_path / "ok.leat", select=tmp_path / "s.leat")
    assert leat.embed(tmp_path / "ok.leat", output=str(tmp_path / "v.leat"), quiet=True)["samples"] == 2


def test_vectors_of_an_earlier_run_do_not_stay(photos, tmp_path):
    leat.embed(photos, output=str(tmp_path / "v.leat"), quiet=True, npy=True)
    leat.embed(photos, output=str(tmp_path / "v.leat"), quiet=True, force=True)
    assert not (tmp_path / "v.npy").exists()


def test_rows_do_not_depend_on_ranks_kills_or_dtype(photos, tmp_path, monkeypatch):
    from leat._train import embedding as module

    monkeypatch.setattr(module, "_PART", 2)
    plain = {"batch_size": 4, "quiet": True, "threads": 1}
    leat.embed(photos, output=str(tmp_path / "one.leat"), **plain, npy=True)
    one = vectors(tmp_path / "one.leat")
    assert np.array_equal(np.load(tmp_path / "one.npy", mmap_mode="r"), one)

    pids = []
    for rank in range(3):
        pid = os.fork()
        if pid == 0:
            os.environ.update(RANK=str(rank), WORLD_SIZE="3", MASTER_PORT="1234")
            try:
                leat.embed(photos, output=str(tmp_path / "three.leat"), **plain)
            except BaseException:
                os._exit(99)
            os._exit(0)
        pids.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0, 0]
    assert np.array_equal(one, vectors(tmp_path / "three.leat"))

    pid = os.fork()
    if pid == 0:
        real, count = module._Parts.write, []

        def killed(self, part, rows):
            count.append(part)
            if len(count) == 4:
                os.kill(os.getpid(), signal.SIGKILL)
            real(self, part, rows)

        module._Parts.write = killed
        leat.embed(photos, output=str(tmp_path / "killed.leat"), **plain)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
    with pytest.raises(leat.ExistsError, match="has an interrupted run"):
        leat.embed(photos, output=str(tmp_path / "killed.leat"), **plain)
    with pytest.raises(leat.ArgumentError, match="another model, pack or settings"):
        leat.embed(photos, output=str(tmp_path / "killed.leat"), **{**plain, "dtype": "float16"}, resume=True)
    assert leat.embed(photos, output=str(tmp_path / "killed.leat"), **plain, resume=True)["resumed"] == 24
    assert np.array_equal(one, vectors(tmp_path / "killed.leat"))
    assert not os.path.exists(tmp_path / "killed.leat.parts")
    leat.embed(photos, output=str(tmp_path / "half.leat"), **plain, dtype="float16")
    assert np.array_equal(one.astype(np.float16), vectors(tmp_path / "half.leat"))


@pytest.mark.parametrize("written, line", [(4, "interrupted: --resume continues from {}.parts\n"),
                                           (1, "interrupted: nothing was written\n")])
@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_command_with_a_line(photos, tmp_path, written, line, number, code):
    words = {"args": [os.fspath(photos)], "output": str(tmp_path / "v.leat"), "model": "tiny", "batch_size": 4, "threads": 1}
    program = f"""
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
from leat._train import __main__, embedding
real, count = embedding._Parts.write, []
def stopped(self, part, rows):
    count.append(part)
    if len(count) < {written}:
        real(self, part, rows)
    elif len(count) == {written}:
        os.kill(os.getpid(), {int(number)})
embedding._Parts.write = stopped
embedding._PART = 2
sys.exit(__main__.main("embed", {json.dumps(words)!r}))
"""
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (child.returncode, child.stdout, child.stderr) == (code, "", line.format(tmp_path / "v.leat"))


@pytest.mark.parametrize("more", [{}, {"force": True}, {"resume": True}])
@pytest.mark.parametrize("note", [None, "{}", '{"steps": {}}', "damaged"])
def test_a_folder_of_the_user_is_kept(photos, tmp_path, more, note):
    parts = tmp_path / "v.leat.parts"
    parts.mkdir()
    (parts / "thesis.txt").write_text("mine")
    if note is not None:
        (parts / "run.json").write_text(note)
    there = sorted(parts.iterdir())
    with pytest.raises(leat.ArgumentError, match="v.leat.parts: is not from a run of leat embed.*move it away"):
        leat.embed(photos, output=str(tmp_path / "v.leat"), quiet=True, **more)
    assert sorted(parts.iterdir()) == there and (parts / "thesis.txt").read_text() == "mine"


def test_the_folder_of_a_run_killed_at_its_start_is_used(photos, tmp_path):
    (tmp_path / "v.leat.parts").mkdir()
    (tmp_path / "v.leat.parts" / "run.json.new").write_text("{")
    leat.embed(photos, output=str(tmp_path / "v.leat"), quiet=True, resume=True)
    assert not (tmp_path / "v.leat.parts").exists()


def test_logits_that_are_not_finite_have_no_label():
    from types import SimpleNamespace

    from leat._train.embedding import Vectors

    columns = Vectors(SimpleNamespace(logits=True, dtype="float32"), [])
    labels = [columns.sample(np.array(row, np.float32))["label"] for row in ((1, 3, 2), (np.nan, 3, 2), (1, np.inf, 2))]
    assert labels == [1, -1, -1]


@pytest.mark.torch
def test_models_of_all_kinds(photos, tmp_path):
    torch = pytest.importorskip("torch")
    import train_run  # noqa: F401  # the model "tiny_resnet"

    leat.train(photos, output=tmp_path / "run", model="tiny_resnet", epochs=1, batch_size=8, image_size=16, quiet=True,
               tensorboard=False, threads=1)
    plain = {"quiet": True, "threads": 1, "batch_size": 16}
    leat.embed(photos, output=str(tmp_path / "a.leat"), model=str(tmp_path / "run"), **plain)
    leat.embed(photos, output=str(tmp_path / "l.leat"), model=str(tmp_path / "run"), logits=True, **plain)
    made, scores = vectors(tmp_path / "a.leat"), vectors(tmp_path / "l.leat", "logits")
    assert made.shape == (60, 8) and scores.shape == (60, 3)
    assert np.array_equal(leat.open(tmp_path / "l.leat").column("label"), scores.argmax(1))
    net = torch.nn.Sequential(torch.nn.AvgPool2d(4), torch.nn.Flatten())
    torch.jit.trace(net, torch.zeros(2, 3, 16, 16)).save(str(tmp_path / "m.pt"))
    torch.export.save(torch.export.export(net.eval(), (torch.zeros(2, 3, 16, 16),), dynamic_shapes=({0: torch.export.Dim.AUTO},)),
                      str(tmp_path / "m.pt2"))
    for file in ("m.pt", "m.pt2"):
        leat.embed(photos, output=str(tmp_path / f"{file}.leat"), model=str(tmp_path / file), image_size=16, **plain)
    assert vectors(tmp_path / "m.pt.leat").shape == (60, 48)
    assert np.array_equal(vectors(tmp_path / "m.pt.leat"), vectors(tmp_path / "m.pt2.leat"))


def test_bad_input_is_one_line(photos, tmp_path):
    def fails(kind, message, pack=photos, **changed):
        with pytest.raises(kind, match=message) as caught:
            leat.embed(pack, **{"output": str(tmp_path / "o.leat"), "quiet": True, **changed})
        assert "\n" not in str(caught.value)

    os.symlink(photos, tmp_path / "link.leat")
    fails(leat.ArgumentError, "is the pack that is read", output=photos, force=True)
    fails(leat.ArgumentError, "is the pack that is read", output=str(tmp_path / "link.leat"), force=True)
    assert leat.open(photos).fields[0].type == "image"
    (tmp_path / "there.leat").write_bytes(b"")
    fails(leat.ExistsError, "already exists", output=str(tmp_path / "there.leat"))
    (tmp_path / "o.npy").write_bytes(b"notes")
    fails(leat.ArgumentError, "o.npy: is not a NumPy file", npy=True)
    fails(leat.ArgumentError, "o.npy: is not a NumPy file", npy=True, force=True)
    (tmp_path / "there.leat").write_bytes(b"no pack at all")
    fails(leat.ArgumentError, "there.leat: is not a pack", output=str(tmp_path / "there.leat"), force=True)
    assert (tmp_path / "o.npy").read_bytes() == b"notes" and not (tmp_path / "o.leat").exists()
    fails(leat.NotFoundError, "nowhere", pack=str(tmp_path / "nowhere.leat"))
    fails(leat.ArgumentError, "tiny has no classifier", logits=True)
    fails(leat.ArgumentError, "output: is missing", output=None)
    fails(leat.ArgumentError, "no option 'modle'; did you mean 'model'", modle="x")


@pytest.mark.torch
def test_bad_models_are_one_line(photos, tmp_path):
    pytest.importorskip("torch")

    def fails(kind, message, model):
        with pytest.raises(kind, match=message) as caught:
            leat.embed(photos, output=str(tmp_path / "o.leat"), quiet=True, model=model)
        assert "\n" not in str(caught.value)

    (tmp_path / "x.pt").write_bytes(b"?")
    (tmp_path / "x.pt2").write_bytes(b"?")
    fails(leat.ArgumentError, "no such file", "./nothing.pt")
    fails(leat.ArgumentError, "there is no 'resnet1000'", "resnet1000")
    fails(leat.DataError, "not a TorchScript file", str(tmp_path / "x.pt"))
    fails(leat.DataError, "not an exported program", str(tmp_path / "x.pt2"))
    fails(leat.NotFoundError, "there is no checkpoint", str(tmp_path))


def test_a_full_disk_is_named_and_resume_promised_only_with_parts(photos, tmp_path, monkeypatch):
    """A limit on the size of files, from one part on, instead of a full disk."""
    from leat._train import embedding as module

    out = str(tmp_path / "v.leat")
    code = f"""
import resource, sys
import leat
from leat._train import embedding

write = embedding._Parts.write

def limited(self, part, rows):
    if part == int(sys.argv[1]):
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
    write(self, part, rows)

embedding._PART, embedding._Parts.write = 1, limited
leat.embed({photos!r}, output={out!r}, quiet=True, batch_size=20)
"""

    def fails(part):
        done = subprocess.run([sys.executable, "-c", code, str(part)], capture_output=True, text=True)
        assert done.returncode != 0
        return done.stderr.strip().splitlines()[-1]

    assert fails(0) == f"leat._errors.StorageError: {out}.parts/00000000.npy: File too large"
    assert not os.path.exists(out + ".parts")
    assert fails(1) == f"leat._errors.StorageError: {out}.parts/00000001.npy: File too large; resume continues"
    monkeypatch.setattr(module, "_PART", 1)
    assert leat.embed(photos, output=out, quiet=True, batch_size=20, resume=True)["resumed"] == 20


def test_a_full_disk_at_the_start_is_one_line(photos, tmp_path):
    """No file may grow, as on a disk that is full."""
    out = str(tmp_path / "v.leat")
    code = f"""
import resource, sys
from leat._train import embedding
from leat._train.__main__ import main

replace = embedding._replace

def limited(path, data):
    if path.endswith(sys.argv[1]):
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    replace(path, data)

embedding._replace = limited
sys.exit(main("embed", '{{"args": ["{photos}"], "output": "{out}", "quiet": true}}'))
"""
    for name in ("run.json", "launch.json"):
        done = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (4, f"leat embed: {out}.parts/{name}: File too large\n")
        assert os.listdir(tmp_path) == []


def test_a_full_disk_while_the_numpy_file_is_written(photos, tmp_path):
    """The limit on the size of files ends a write; through a mapping, a full disk would end the process."""
    out = str(tmp_path / "v.leat")
    code = f"""
import resource, sys
import leat
from leat._train import embedding

write = embedding._write_npy

def limited(*args):
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
    write(*args)

embedding._write_npy = limited
leat.embed({photos!r}, output={out!r}, npy=True, quiet=True, batch_size=20)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip().splitlines()[-1] == f"leat._errors.StorageError: {tmp_path}/v.npy: File too large; resume continues"
    assert sorted(os.listdir(tmp_path)) == ["v.leat.parts"]
    assert leat.embed(photos, output=out, npy=True, quiet=True, batch_size=20, resume=True)["resumed"] == 60
    vectors = np.load(tmp_path / "v.npy")
    assert np.array_equal(vectors, np.stack([row["vector"] for row in leat.open(out)]))


def test_resume_of_a_complete_output(photos, tmp_path):
    plain = {"output": str(tmp_path / "v.leat"), "quiet": True, "npy": True}
    first = leat.embed(photos, **plain, resume=True)
    before = (tmp_path / "v.leat").stat().st_ino
    again = leat.embed(photos, **plain, resume=True)
    assert again["already_complete"] and not first["already_complete"]
    assert [again[name] for name in ("samples", "dim", "model", "resumed")] == [60, 224, first["model"], 60]
    assert (tmp_path / "v.leat").stat().st_ino == before and sorted(os.listdir(tmp_path)) == ["v.leat", "v.npy"]
    words = [sys.executable, "-P", "-m", "leat", "embed", photos, "-o", plain["output"], "--npy", "--resume"]
    for quiet in ([], ["-q"]):  # which hides progress only
        done = subprocess.run(words + quiet, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, f"{plain['output']}: already complete: a run with the same options and input wrote it\n")
    for other in ({"dtype": "float16"}, {"npy": False}, {"batch_size": 7}):
        with pytest.raises(leat.ExistsError, match="v.leat: already exists"):
            leat.embed(photos, **{**plain, **other}, resume=True)
    (tmp_path / "v.npy").unlink()
    with pytest.raises(leat.ExistsError, match="v.leat: already exists"):
        leat.embed(photos, **plain, resume=True)


def test_resume_after_a_kill_between_the_pack_and_the_numpy_file(photos, tmp_path):
    out = str(tmp_path / "v.leat")
    code = f"""
import os, signal
import leat
from leat._train import embedding

rename = os.rename

def killed(old, new):
    if new.endswith("v.npy"):
        os.kill(os.getpid(), signal.SIGKILL)
    rename(old, new)

os.rename = killed
leat.embed({photos!r}, output={out!r}, quiet=True, npy=True)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    assert sorted(os.listdir(tmp_path)) == ["v.leat", "v.leat.parts", "v.npy.new"]
    assert not leat.embed(photos, output=out, quiet=True, npy=True, resume=True)["already_complete"]
    assert sorted(os.listdir(tmp_path)) == ["v.leat", "v.npy"]
    assert np.array_equal(np.load(tmp_path / "v.npy"), vectors(out))


def test_resume_after_a_full_disk_while_the_pack_is_written(photos, tmp_path):
    """A limit on the size of files instead of a full disk."""
    out = str(tmp_path / "v.leat")
    code = f"""
import resource
import leat
from leat._train import embedding

class Limited(leat.Writer):
    def finish(self):
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, resource.RLIM_INFINITY))
        return super().finish()

embedding.Writer = Limited
leat.embed({photos!r}, output={out!r}, quiet=True, batch_size=20)
"""
    assert "v.leat.partial: cannot write" in subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr
    with pytest.raises(leat.ExistsError, match="an unfinished pack is there"):
        leat.Writer(out, {"vector": ("float32", (224,))})
    assert leat.embed(photos, output=out, quiet=True, batch_size=20, resume=True)["resumed"] == 60
    leat.embed(photos, output=str(tmp_path / "whole.leat"), quiet=True, batch_size=20)
    assert open(out, "rb").read() == open(tmp_path / "whole.leat", "rb").read()
    assert sorted(os.listdir(tmp_path)) == ["v.leat", "whole.leat"]


def test_a_closed_or_full_stdout_ends_as_that_of_other_commands(photos, tmp_path):
    words = [sys.executable, "-P", "-m", "leat", "embed", photos, "-q", "-f", "--json", "-o", str(tmp_path / "v.leat")]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (4, "leat embed: cannot write the output: No space left on device\n")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert done.returncode % 256 in (141, 256 - 13) and done.stderr == ""
    again = subprocess.run([word for word in words if word != "-f"], capture_output=True, text=True)
    assert again.returncode == 2 and "already exists (use --force to replace it)" in again.stderr


def test_what_an_embedding_cannot_replace(photos, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "mine.txt").write_text("mine")
    os.mkfifo(tmp_path / "pipe")
    words = [sys.executable, "-P", "-m", "leat", "embed", photos, "-o"]
    for name, why in (("folder", "is a folder, not a file"), ("pipe", "not a regular file"),
                      ("mine.txt", "is not a pack, and only a pack may be replaced; give another name")):
        for force in [], ["--force"]:
            done = subprocess.run([*words, tmp_path / name, *force], capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (2, f"leat embed: {tmp_path}/{name}: {why}\n")


def test_the_result_is_on_stdout(photos, tmp_path):
    done = subprocess.run([sys.executable, "-P", "-m", "leat", "embed", photos, "-o", tmp_path / "v.leat"],
                          capture_output=True, text=True)
    assert done.returncode == 0 and " vectors of 224 numbers by tiny 1 in " in done.stdout and " vectors of " not in done.stderr
