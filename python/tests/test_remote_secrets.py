# SPDX-License-Identifier: Apache-2.0
"""User, password and query of a URL are in no file that Python writes, and in no message."""
import http.server
import io
import json
import pathlib
import tarfile
import threading

import numpy as np
import pytest

import leat
from test_remote import Ranges

WORDS = ("bob-user", "PASSWORD", "SIGNATURE")


@pytest.fixture
def images(tmp_path, monkeypatch):
    """The base of secret URLs, and the query of them; a pack and a tar shard are there."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    there = tmp_path / "server"
    there.mkdir()
    rng = np.random.default_rng(1)
    with leat.Writer(there / "p.leat", {"image": "image", "label": int}, classes={"label": ["a", "b"]}, sync=False) as w, \
            tarfile.open(there / "t.tar", "w") as tar:
        for i in range(24):
            pixels = rng.integers(0, 255, (48, 48, 3), np.uint8)
            w.append({"image": pixels, "label": i % 2}, key=f"{i:02}.png")
            data = leat._leat.png(pixels)
            (there / f"{i:02}.png").write_bytes(data)
            entry = tarfile.TarInfo(f"{i:02}.png")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    handler = type("Handler", (Ranges,), {"folder": there, "count": 0})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.chdir(out)
    yield f"http://bob-user:PASSWORD@127.0.0.1:{server.server_port}/", "?X-Sig=SIGNATURE&b=c/SIGNATURE"
    server.shutdown()
    server.server_close()
    for path in out.rglob("*"):
        assert not any(word in path.name for word in WORDS), path
        data = path.read_bytes() if path.is_file() else b""
        assert not any(word.encode() in data for word in WORDS), path


def test_embed(images):
    base, query = images
    leat.embed(base + "p.leat" + query, output="e.leat", model="tiny")
    with leat.open("e.leat") as opened:
        assert opened.provenance["source"]["embedded"] == "p.leat"


def test_dedup_images(images):
    base, query = images
    leat.dedup_images([base + "p.leat" + query, base + "p.leat" + query + "2"], "d.leat", csv="pairs.csv")
    port = base.rpartition(":")[2]
    with leat.open("d.leat") as opened:
        assert opened.classes("pack") == [f"http://…@127.0.0.1:{port}p.leat?…"] * 2
    assert "p.leat?…" in pathlib.Path("pairs.csv").read_text()


@pytest.mark.parametrize("name", ["p.leat", "t.tar"])
def test_curate(images, name):
    """The URL is not in the run, so a run that is called again takes it from its argument, and recognises it."""
    base, query = images
    url = base + name + query
    leat.curate(url, "run", share=0.5)
    run = json.loads(pathlib.Path("run/run.json").read_text())
    assert run["source"] == [url.replace("bob-user:PASSWORD@", "").replace(query, "?…")]
    assert url.replace("bob-user:PASSWORD@", "").partition("?")[0] in pathlib.Path("run/report.html").read_text()
    steps = lambda url: {step["step"]: step["reused"] for step in leat.curate(url, "run", share=0.5)["steps"]}  # noqa: E731
    assert all(steps(url).values())
    assert all(steps(url.replace("PASSWORD", "PASSWORD-new")).values())  # the same source
    assert not steps(url + "&id=2")["pack"]  # another query may be another source


def test_train_with_secret_packs(images):
    pytest.importorskip("torch")
    base, query = images
    url = base + "p.leat" + query
    options = {"model": "resnet18", "batch_size": 8, "accelerator": "cpu"}
    leat.train(url, val=url, output="run", epochs=1, **options, quiet=True)
    assert json.loads(pathlib.Path("run/config.json").read_text())["val"].endswith("p.leat?…")
    with pytest.raises(leat.ArgumentError, match="val: .* are not stored; give val again"):
        leat.train(url, output="run", resume=True, epochs=2, quiet=True)
    leat.train(url, val=url, output="run", resume=True, epochs=2, quiet=True)
    leat.tag(url, output="tags.leat", model="run", accelerator="cpu", quiet=True)


def test_messages_of_the_package(images):
    base, query = images
    error = leat.ArgumentError(f"{base}p.leat{query}: is of no use, give `config`")
    for text in (str(error), error.marked):
        assert "p.leat?…" in text and not any(word in text for word in WORDS)


def test_split(images):
    base, query = images
    parts = leat.split(base + "p.leat" + query, {"a": 0.5, "b": 0.5}, output="parts")
    assert {pathlib.Path(part["path"]).name for part in parts.values()} == {"p-a.leat", "p-b.leat"}
