# SPDX-License-Identifier: Apache-2.0
"""Every keyword of leat.Loader has an effect that can be seen, or is refused where it has none.

A new keyword needs a row here: the test of the table fails without."""

import ctypes
import inspect
import os

import numpy as np
import pytest

import leat
from conftest import damage

SIZE = "Resize((8, 8))"


def seen(path, **options):
    """All that a run delivers and says about itself."""
    options = {"batch_size": 16, "image": SIZE, "as_": "numpy", "threads": 1, **options}
    with leat.Loader(path, **options) as loader:
        out = []
        for batch in loader:
            named = batch if isinstance(batch, dict) else dict(zip(loader.field_names, batch))
            out.append([(name, type(value).__name__, np.asarray(value).tobytes()) for name, value in named.items()
                        if not isinstance(value, leat.Ragged)])
            kind = type(batch).__name__
        stats = loader.stats()
        return {"batches": out, "kind": kind, "len": len(loader), "samples": loader.samples,
                "threads": stats["threads"], "budget": stats["budget_limit_bytes"], "bad": stats["bad_samples"],
                "digest": stats.get("digest"), "cache": stats.get("cache_hits"), "drop_last": loader.drop_last}


def differ(path, *names, base=None, **options):
    before, after = seen(path, **(base or {})), seen(path, **{**(base or {}), **options})
    same = [name for name in names if before[name] == after[name]]
    assert not same, f"{options} changes nothing of {same}"


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint32, ctypes.c_uint64,
                  ctypes.c_uint64, ctypes.c_uint64)
def blacken(cookie, rows, fields, sample, epoch, random):
    ctypes.memset(rows[0], 0, 8 * 8 * 3)
    return 0


def writes(path, file, **options):
    seen(path, **options)
    assert os.path.getsize(file) > 0


def doctor(path, capfd):
    seen(path)
    assert capfd.readouterr().err == ""
    seen(path, doctor=True)
    assert len(capfd.readouterr().err) > 10


def refused(path, words, **options):
    with pytest.raises(leat.Error, match=words):
        leat.Loader(path, **{"image": SIZE, "as_": "numpy", **options})


def told(path):
    class Told(leat.callbacks.Callback):
        steps = []

        def log(self, scalars, step):
            self.steps.append(step)

    seen(path, callbacks=Told(every=1))
    assert Told.steps


def meters(path, name, value):
    """A number that the run works with and reports."""
    with leat.Loader(path, 16, SIZE, threads=1, **{name: value}) as loader:
        next(iter(loader))
        assert loader.stats()[name] == value


PAD = {"image": "", "collate": "pad"}

# keyword: functions of (pack, damaged pack, folder, captured output); each asserts an effect or a refusal
CASES = {
    "path": lambda p, d, t, c: refused("nothing.leat", "cannot open"),
    "batch_size": lambda p, d, t, c: differ(p, "batches", "len", batch_size=5),
    "image": lambda p, d, t, c: differ(p, "batches", image="CenterCrop(8)"),
    "order": lambda p, d, t, c: differ(p, "batches", order="sequential"),
    "seed": lambda p, d, t, c: differ(p, "batches", seed=3),
    "drop_last": lambda p, d, t, c: differ(p, "batches", "len", drop_last=True),
    "orientation": lambda p, d, t, c: (differ(t.turned, "batches", orientation="ignore"),
                                       refused(p, "orientation has no effect", image=None, orientation="ignore")),
    "threads": lambda p, d, t, c: differ(p, "threads", threads=2),
    "memory": lambda p, d, t, c: differ(p, "budget", memory="200M"),
    "cache": lambda p, d, t, c: (refused(p, "cache: disk:DIR is for remote packs, and .* is local", cache=f"disk:{t}"), caches(p)),
    "on_error": lambda p, d, t, c: (differ(d, "batches", base={"on_error": "skip", "fields": ["label"]},
                                           on_error="replace"),
                                    fails(d, "0042")),
    "max_bad": lambda p, d, t, c: (damage(d, f"{t}/two", 50), differ(d, "bad", base={"on_error": "skip"}, indices=[0]),
                                   fails(f"{t}/two", "more than the 1 allowed", on_error="skip", max_bad=1),
                                   refused(p, "max_bad has no effect", max_bad=3)),
    "quarantine": lambda p, d, t, c: (writes(d, f"{t}/bad", on_error="skip", quarantine=f"{t}/bad"),
                                      refused(p, "quarantine has no effect", quarantine=f"{t}/bad")),
    "rank": lambda p, d, t, c: differ(p, "batches", base={"rank": 0, "world_size": 2}, rank=1),
    "world_size": lambda p, d, t, c: differ(p, "batches", base={"rank": 0, "world_size": 1}, world_size=2),
    "window_pages": lambda p, d, t, c: (refused(p, "window_pages has no effect", window_pages=4),
                                        differ(p, "batches", base={"order": "quasi_random"}, window_pages=1)),
    "streams": lambda p, d, t, c: (refused(p, "streams has no effect", streams=4),
                                   differ(t.rows, "batches", base={"order": "quasi_random", "window_pages": 48,
                                                                   "streams": 4, "image": None}, streams=2)),
    "prefetch": lambda p, d, t, c: meters(p, "prefetch", 2),
    "io_depth": lambda p, d, t, c: meters(p, "io_depth", 3),
    "indices": lambda p, d, t, c: differ(p, "batches", "samples", indices=[3, 1]),
    "keys": lambda p, d, t, c: differ(p, "batches", "samples", keys=leat.open(p).keys[:3]),
    "select": lambda p, d, t, c: (differ(p, "batches", "samples", select=chosen(p, f"{t}/chosen.leat")),
                                  refused(p, "either select or indices", select=f"{t}/chosen.leat", indices=[1])),
    "weights": lambda p, d, t, c: differ(p, "batches", weights=np.arange(101.0)),
    "balance": lambda p, d, t, c: differ(p, "batches", balance="label"),
    "draws": lambda p, d, t, c: (differ(p, "samples", base={"balance": "label"}, draws=7),
                                 refused(p, "draws needs", draws=7)),
    "fields": lambda p, d, t, c: differ(p, "batches", fields=["label"], image=None),
    "label": lambda p, d, t, c: (refused(p, "label has no effect", label="label"),
                                 refused(p, "is not an int field", image=f"{SIZE}; MixUp(0.2)", label="image")),
    "classes": lambda p, d, t, c: (refused(p, "classes has no effect", classes=3),
                                   differ(p, "batches", base={"image": f"{SIZE}; MixUp(0.2)", "classes": 200},
                                          classes=300)),
    "mix_labels": lambda p, d, t, c: (refused(p, "mix_labels has no effect", mix_labels="soft"),
                                      mixes(p)),
    "independent": lambda p, d, t, c: refused(p, "independent has no effect", independent=True),
    "as_": lambda p, d, t, c: differ(p, "batches", as_="dlpack"),
    "channels_last": lambda p, d, t, c: (differ(p, "batches", channels_last=True),
                                         refused(p, "channels_last has no effect", image=None, channels_last=True)),
    "as_dict": lambda p, d, t, c: differ(p, "kind", as_dict=True),
    "transform": lambda p, d, t, c: differ(p, "kind", transform=lambda batch: {"label": batch.label}),
    "sample_fn": lambda p, d, t, c: differ(p, "batches", sample_fn=blacken),
    "device": lambda p, d, t, c: (refused(p, "NumPy has no arrays", device="cuda:0"), refused(p, "'tpu' is not cpu", device="tpu")),
    "device_memory": lambda p, d, t, c: refused(p, "device_memory needs a device", device_memory="1G"),
    "cache_bytes": lambda p, d, t, c: refused(p, "cache_bytes: is for cache", cache_bytes="1G"),
    "decode": lambda p, d, t, c: refused(p, "decode gpu needs a device", decode="gpu"),
    "digest": lambda p, d, t, c: differ(p, "digest", digest=True),
    "doctor": lambda p, d, t, c: doctor(p, c),
    "run": lambda p, d, t, c: writes(p, f"{t}/run", run=f"{t}/run"),
    "callbacks": lambda p, d, t, c: told(p),
    "collate": lambda p, d, t, c: (refused(p, "collate", image=""),
                                   differ(p, "batches", base=PAD, collate="ragged"),
                                   refused(p, "collate has no effect", image=None, collate="list")),
    "pad_multiple": lambda p, d, t, c: (differ(p, "batches", base=PAD, pad_multiple=64),
                                        refused(p, "pad_multiple has no effect", pad_multiple=2)),
    "pad_value": lambda p, d, t, c: (differ(p, "batches", base=PAD, pad_value=9),
                                     refused(p, "pad_value has no effect", pad_value=1)),
    "pad_mask": lambda p, d, t, c: (differ(p, "batches", base=PAD, pad_mask=True),
                                    refused(p, "pad_mask has no effect", pad_mask=True)),
    "bucket": lambda p, d, t, c: differ(p, "batches", bucket="aspect"),
    "buckets": lambda p, d, t, c: (differ(p, "batches", base={"bucket": "size"}, buckets=2),
                                   refused(p, "buckets has no effect", buckets=3)),
    "follow": lambda p, d, t, c: (refused(p, "follow", follow=""), refused(p, "label", follow={"label": "follow"})),
    "roles": lambda p, d, t, c: refused(d, "score", score="follow"),
}


def chosen(path, output):
    leat.select(path, output, "random", count=7, force=True, sync=False)
    return output


def mixes(path):
    soft = seen(path, image=f"{SIZE}; MixUp(0.2)", classes=10)
    assert soft["batches"] == seen(path, image=f"{SIZE}; MixUp(0.2)", classes=10, mix_labels="soft")["batches"]
    assert soft["batches"] != seen(path, image=f"{SIZE}; MixUp(0.2)", mix_labels="pairs")["batches"]


def caches(path):
    with leat.Loader(path, 16, SIZE, cache="process") as loader:
        assert len([1 for _ in loader]) == 7 and loader.stats()["cache_misses"] > 0
        assert len([1 for _ in loader]) == 7 and loader.stats()["cache_hits"] > 0
    with leat.Loader(path, 16, SIZE) as loader:
        assert len([1 for _ in loader]) == 7 and loader.stats()["cache_misses"] == 0


def fails(path, words, **options):
    with pytest.raises(leat.DataError, match=words), leat.Loader(path, 16, SIZE, as_="numpy", **options) as loader:
        for _ in loader:
            pass


@pytest.mark.parametrize("name, options", [
    ("tiles", {"tiles": "fast", "images": "keep"}), ("mix_raw", {"mix_raw": 0.2}),
    ("quality", {"quality": 50, "images": "raw"}), ("trust", {"trust": True, "images": "raw"}),
])
def test_options_of_pack_without_effect_are_refused(plain, tmp_path, name, options):
    with pytest.raises(leat.ArgumentError, match=f"^{name}: has no effect"):
        leat.pack(plain, tmp_path / "x.leat", **options)
    assert not list(tmp_path.iterdir())


class Folder(str):
    turned = rows = ""


def test_the_table_has_every_keyword():
    assert sorted(CASES) == sorted(inspect.signature(leat.Loader).parameters)


@pytest.mark.filterwarnings("ignore::leat.AdviceWarning")
@pytest.mark.parametrize("name", CASES)
def test_a_keyword_has_an_effect(name, plain, damaged, tmp_path, capfd):
    folder = Folder(tmp_path)
    if name == "orientation":
        image = pytest.importorskip("PIL.Image")
        exif = image.Exif()
        exif[0x112] = 6
        picture = image.fromarray(np.arange(40 * 60 * 3, dtype=np.uint8).reshape(40, 60, 3))
        picture.save(tmp_path / "a.jpg", exif=exif)
        with leat.Writer(tmp_path / "turned.leat", {"image": "image"}) as w:
            w.append({"image": tmp_path / "a.jpg"})
        folder.turned = str(tmp_path / "turned.leat")
    if name == "streams":
        folder.rows = str(tmp_path / "rows.leat")
        with leat.Writer(folder.rows, {"row": ("uint8", (8192,))}, page_bytes="64K") as w:
            w.extend([[np.full(8192, i % 256, np.uint8)] for i in range(500)])
    CASES[name](plain, damaged, folder, capfd)
