# SPDX-License-Identifier: Apache-2.0
"""Errors: the class, the words and the place."""

import subprocess
import sys

import pytest

import leat
from conftest import damage


def test_classes_are_also_builtin_ones():
    for cls, builtin in ((leat.DataError, ValueError), (leat.NotFoundError, FileNotFoundError),
                         (leat.ExistsError, FileExistsError), (leat.StorageError, OSError),
                         (leat.BudgetError, MemoryError), (leat.ArgumentError, ValueError),
                         (leat.StateError, RuntimeError), (leat.UnsupportedError, NotImplementedError)):
        assert issubclass(cls, builtin) and issubclass(cls, leat.Error)


def test_missing_and_foreign_files(tmp_path):
    with pytest.raises(leat.NotFoundError) as e:
        leat.open(tmp_path / "none.leat")
    assert "none.leat" in str(e.value) and e.value.code == "LEAT_ENOENT" and e.value.sample_id is None
    other = tmp_path / "other.leat"
    other.write_bytes(b"x" * 10000)
    with pytest.raises(leat.FormatError):
        leat.open(other)


def test_damage_names_the_sample(damaged):
    with pytest.raises(leat.DataError) as e:
        leat.open(damaged)[42]
    assert e.value.sample_id == 42 and "42" in str(e.value)
    assert leat.open(damaged)[41]["label"] == 1


def test_damage_reaches_the_loop(damaged):
    with leat.Loader(damaged, 8, "Resize((16, 16))", order="sequential", as_="numpy") as loader:
        seen = 0
        with pytest.raises(leat.DataError) as e:
            for batch in loader:
                seen += len(batch.label)
    assert seen == 40
    assert (e.value.sample_id, e.value.key) == (42, "dir/0042.jpg")
    assert e.value.offset is None or e.value.offset >= 0
    assert "dir/0042.jpg" in str(e.value)


def test_policies_for_bad_samples(damaged, tmp_path):
    note = tmp_path / "bad.jsonl"
    with leat.Loader(damaged, 8, "Resize((16, 16))", order="sequential", as_="numpy", on_error="skip",
                     quarantine=note) as loader:
        ids = [i for b in loader for i in b.sample_id]
    assert ids == [i for i in range(101) if i != 42] and '"sample":42' in note.read_text().replace(" ", "")
    options = dict(order="sequential", as_="numpy", on_error="replace", fields=["image", "label"])
    runs = []
    for _ in range(2):
        with leat.Loader(damaged, 8, "Resize((16, 16))", **options) as loader:
            runs.append([int(i) for b in loader for i in b.sample_id])
            assert loader.stats()["bad_samples"] == 1
    assert runs[0] == runs[1] and len(runs[0]) == 101 and runs[0][42] != 42
    with leat.Loader(damaged, 8, "Resize((16, 16))", order="sequential", on_error="skip", max_bad=1) as loader:
        assert sum(len(b.label) for b in loader) == 100


def test_an_absent_array_names_the_file(tmp_path):
    packs = [str(tmp_path / name) for name in ("whole.leat", "part.leat")]
    for path in packs:
        with leat.Writer(path, {"x": ("float32", (3,)), "label": int}, sync=False) as w:
            for i in range(3):
                w.append({"x": None if path == packs[1] and i == 1 else [i, 2, 3], "label": i})
    assert leat.open(packs[1])[1]["x"] is None
    for given, number in ((packs[1], 1), (packs, 4)):
        with pytest.raises(leat.DataError, match=f"part.leat: sample {number} .00000001.: field 'x' is absent: .*on_error skip$"):
            list(leat.Loader(given, 2, order="sequential", as_="numpy"))
    for options, samples in (({"fields": ["label"]}, 3), ({"on_error": "skip"}, 2)):
        assert sum(len(b.label) for b in leat.Loader(packs[1], 2, as_="numpy", **options)) == samples


def test_the_message_is_the_commands(damaged):
    command = subprocess.run([sys.executable, "-m", "leat", "info", damaged + ".none"], capture_output=True,
                             text=True, timeout=60)
    with pytest.raises(leat.Error) as e:
        leat.open(damaged + ".none")
    if "unknown command" not in command.stderr:
        assert str(e.value) in command.stderr


@pytest.mark.parametrize("options, words", [
    ({"order": "shuffled"}, "order: 'shuffled' is not one of"),
    ({"cache": "disk"}, "cache"),
    ({"on_error": "ignore"}, "on_error"),
    ({"batch_size": 0}, "batch_size: 0"),
    ({"memory": "much"}, "'much' is not a size"),
    ({"rank": 2, "world_size": 2}, "rank: 2 is not below"),
    ({"rank": 1}, "give both rank and world_size"),
    ({"fields": ["nothing"]}, "nothing"),
    ({"indices": [500]}, "500"),
    ({"weights": [1.0], "balance": "label", "order": "random"}, "weights"),
    ({"image": "Blur(3)"}, "there is no op 'Blur'"),
    ({"as_": "tensorflow"}, "as_"),
])
def test_wrong_arguments_are_named(pack, options, words):
    with pytest.raises(ValueError) as e:
        leat.Loader(pack, **options)
    assert words in str(e.value)


def test_a_budget_too_small_says_what_is_needed(pack):
    with pytest.raises(leat.BudgetError) as e:
        loader = leat.Loader(pack, 64, "Resize((512, 512))", memory="1M")
        next(iter(loader))
    assert isinstance(e.value, MemoryError) and any(c.isdigit() for c in str(e.value))
