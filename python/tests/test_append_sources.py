# SPDX-License-Identifier: Apache-2.0
"""leat.append of sources, and leat.pack(where=...)."""

from __future__ import annotations

import io
import os
import tarfile

import numpy as np
import pytest

import leat


def tar(path: str, images: list[bytes], numbers: range) -> None:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for i in numbers:
            for name, data in ((f"s{i:03d}.jpg", images[i]), (f"s{i:03d}.cls", str(i % 5).encode())):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))


@pytest.mark.parametrize("kind", ["keep", "raw"])
def test_append_and_compact_give_the_bytes_of_packing_at_once(tmp_path, images: list[bytes], kind: str) -> None:
    os.chdir(tmp_path)
    for name, numbers in (("a.tar", range(20)), ("b.tar", range(20, 30)), ("c.tar", range(30, 60))):
        tar(name, images, numbers)
    leat.pack(["a.tar", "b.tar", "c.tar"], "once.leat", images=kind, sync=False)
    leat.pack("a.tar", "p.leat", images=kind, sync=False)
    for name in ("b.tar", "c.tar"):
        leat.append(name, "p.leat", sync=False)  # stored as the pack says
    assert leat.open("p.leat").provenance["source"]["names"] == ["a.tar", "b.tar", "c.tar"]
    leat.compact("p.leat", sync=False)
    with open("p.leat", "rb") as one, open("once.leat", "rb") as other:
        assert one.read() == other.read()


def test_tiles_use_the_tables_of_the_pack(tmp_path, images: list[bytes]) -> None:
    os.chdir(tmp_path)
    for name, numbers in (("a.tar", range(20)), ("b.tar", range(20, 60)), ("c.tar", range(60, 100))):
        tar(name, images, numbers)
    leat.pack("a.tar", "p.leat", images="tiled", sync=False)
    leat.append("b.tar", "p.leat", sync=False)
    leat.pack("c.tar", "other.leat", images="tiled", sync=False)  # its own tables
    leat.append("other.leat", "p.leat", sync=False)
    leat.pack("a.tar", "kept.leat", images="keep", sync=False)
    with pytest.raises(leat.ExistsError, match="s000"):
        leat.append("kept.leat", "p.leat", sync=False)
    assert leat.append("kept.leat", "p.leat", if_exists="update", sync=False)["existing"] == 20
    for compacted in (False, True):
        ds = leat.open("p.leat")
        assert len(ds) == 100 and {s["image"].codec for s in ds} == {"tiled"}
        for i in range(100):
            key = next(k for k in ds.keys if k.startswith(f"s{i:03d}"))
            assert ds[key]["image"].file() == images[i]
        assert len(list(leat.Loader("p.leat", 10, "CenterCrop(16)", as_="numpy"))) == 10
        leat.compact("p.leat", sync=False)


def test_where(pack: str, tmp_path) -> None:
    def keys(where: str) -> list[str]:
        path = str(tmp_path / "w.leat")
        stats = leat.pack(pack, path, where=where, force=True, sync=False)
        kept = list(leat.open(path).keys)
        assert stats["samples"] == len(kept) and stats["samples"] + stats["filtered"] == 101
        return kept

    every = list(leat.open(pack).keys)
    labels, scores = np.arange(101) % 10, np.arange(101) / 2
    for where, chosen in [("label < 3", labels < 3), ("label in 2..4 or score >= 50", (labels // 1 >= 2) & (labels <= 4)
                                                      | (scores >= 50)),
                          ("label == 'class 7' and not score > 20", (labels == 7) & ~(scores > 20)),
                          ("key in ['dir/0003.jpg', 'dir/0100.jpg']", np.isin(np.arange(101), [3, 100]))]:
        assert keys(where) == [k for k, keep in zip(every, chosen) if keep]
    with pytest.raises(leat.ArgumentError, match="column 7: a comparison is expected"):
        leat.pack(pack, str(tmp_path / "x.leat"), where="label ? 3")
    with pytest.raises(leat.DataError, match="none of 101 samples meets the condition"):
        leat.pack(pack, str(tmp_path / "x.leat"), where="label > 99")
    assert not os.path.exists(tmp_path / "x.leat")
    assert leat.append(pack, str(tmp_path / "w.leat"), where="label == 1", sync=False)["samples"] == 10
