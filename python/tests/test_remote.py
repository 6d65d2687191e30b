# SPDX-License-Identifier: Apache-2.0
"""Packs over HTTP, from a small server of this file that answers byte ranges."""
import contextlib
import http.server
import io
import json
import os
import pathlib
import pickle
import re
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from PIL import Image

import leat
from conftest import ORDERS, jpeg


def send_range(handler: http.server.BaseHTTPRequestHandler, data: bytes, tag: str) -> None:
    first, last = handler.headers["Range"].removeprefix("bytes=").split("-")
    begin = int(first) if first else max(0, len(data) - int(last))
    end = min(int(last), len(data) - 1) if first else len(data) - 1
    handler.send_response(206)
    handler.send_header("ETag", tag)
    handler.send_header("Content-Range", f"bytes {begin}-{end}/{len(data)}")
    handler.send_header("Content-Length", str(end - begin + 1))
    handler.end_headers()
    handler.wfile.write(data[begin:end + 1])


class Ranges(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder: pathlib.Path
    count = 0
    delay = 0.0

    def do_GET(self) -> None:
        type(self).count += 1
        time.sleep(self.delay)
        send_range(self, (self.folder / self.path.lstrip("/").split("?")[0]).read_bytes(), '"fixed"')

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def served(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with leat.Writer(tmp_path / "p.leat", {"x": ("float32", (64,)), "label": int}, page_bytes="64K",
                     sync=False) as w:
        for i in range(5000):
            w.append({"x": np.full(64, i, np.float32), "label": i}, key=str(i))
    handler = type("Handler", (Ranges,), {"folder": tmp_path, "count": 0})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield tmp_path / "p.leat", f"http://127.0.0.1:{server.server_port}/p.leat", handler
    server.shutdown()
    server.server_close()


def labels(path, **options):
    """What the loader measured, and the labels it gave. Closed: the next one finds no pages in memory."""
    loader = leat.Loader(path, 100, image=None, as_="numpy", **options)
    got = np.concatenate([batch.label for batch in loader])
    stats = loader.stats()
    loader.close()
    return stats, got


@pytest.mark.parametrize("order", ORDERS)
def test_equals_local(served, order):
    local, url, handler = served
    _, here = labels(local, order=order, seed=3)
    stats, there = labels(url, order=order, seed=3)
    np.testing.assert_array_equal(here, there)
    assert stats["remote_requests"] > 0 and stats["remote_bytes"] > 0


def command(*words: object) -> dict:
    done = subprocess.run([sys.executable, "-m", "leat", *map(str, words), "--json"], capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("order", ORDERS)
def test_a_plan_reads_as_the_loader_does(served, tmp_path, order):
    """Pages or single samples, by the budget: the planned one reads whole pages; a small one is planned as it is."""
    rng = np.random.default_rng(5)
    with leat.Writer(tmp_path / "images.leat", {"image": "image", "label": int}, page_bytes="64K", sync=False) as w:
        for i in range(2000):
            w.append({"image": jpeg(rng, 320, 240), "label": i}, key=str(i))
    pages = leat.open(tmp_path / "images.leat").info["pages"]
    url = served[1].replace("p.leat", "images.leat")
    options = ("--order", order, "--batch", 16, "--threads", 2)
    for memory in (None, "12M"):
        budget = () if memory is None else ("--memory", memory)
        plan = command("plan", "--dataset", url, "--gpus", 0, "--image", 64, "--no-measure", *options, *budget)
        if memory is None:
            budget = ("--memory", plan["config"]["memory"])
        run = command("load", url, "--size", 64, *options, *budget)
        planned, real = plan["traffic"]["epoch_requests"], run["remote_requests"]
        print(memory, pages, planned, real, plan["traffic"]["epoch_bytes"], run["remote_bytes"], plan["config"]["memory"])
        if memory is None or order == "sequential":
            assert real <= pages + 4 and planned <= pages + 4
        else:
            assert real > 2 * pages and 0.6 < planned / real < 1.6
        assert 0.6 < plan["traffic"]["epoch_bytes"] / run["remote_bytes"] < 1.6


def test_a_large_image_waits_for_pages_in_flight(served, tmp_path):
    """With the least memory that is named, pages requested ahead have to leave before a large image is decoded."""
    rng = np.random.default_rng(5)
    with leat.Writer(tmp_path / "images.leat", {"image": "image"}, page_bytes="1M", sync=False) as w:
        for i in range(400):
            large = i % 97 == 50
            out, noise = io.BytesIO(), rng.integers(0, 256, (300, 400, 3), np.uint8)
            (Image.new("RGB", (2600, 1800)) if large else Image.fromarray(noise)).save(out, "JPEG", progressive=large)
            w.append({"image": out.getvalue()}, key=str(i))
    served[2].delay = 0.03
    url = served[1].replace("p.leat", "images.leat")
    options = ("--order", "sequential", "--batch", 64, "--size", 64, "--threads", 2, "--json")
    refused = subprocess.run([sys.executable, "-m", "leat", "load", url, *map(str, options), "--memory", "1M"],
                             capture_output=True, text=True, timeout=300)
    least = float(re.search(r"at least ([0-9.]+) MiB", refused.stderr)[1])
    for more in (0.1, 1):
        run = command("load", url, *options, "--memory", f"{least + more:.2f}M")
        assert run["samples"] == 400


def test_disk_cache(served, tmp_path):
    local, url, handler = served
    cache = f"disk:{tmp_path / 'cache'}"
    _, here = labels(local, order="quasi_random")
    for _ in range(2):
        stats, there = labels(url, order="quasi_random", cache=cache, cache_bytes="64M")
        np.testing.assert_array_equal(here, there)
    assert stats["remote_bytes"] == 0
    assert stats["disk_cache_hits"] > 0
    assert any(name.endswith(".data") for name in os.listdir(tmp_path / "cache"))
    with pytest.raises(leat.ArgumentError, match="cache_bytes"):
        leat.Loader(url, 100, image=None, cache_bytes=5)
    with pytest.raises(leat.Error, match="is for remote packs"):
        leat.Loader(local, 100, image=None, cache=cache)


@pytest.mark.parametrize("cache", ["os", "process", "disk"])
def test_local_and_remote_packs_in_one_loader(served, tmp_path, cache):
    """The same pack from the disk and over HTTP, mixed: as both from the disk; the folder gets remote pages only."""
    local, url, _ = served
    folder = tmp_path / "mixed"
    options = {"order": "quasi_random", "seed": 3, "window_pages": 8, "streams": 2}
    if cache != "disk":
        options["cache"] = cache
    _, here = labels(leat.Mix([local, local], [3, 1], epoch_size=6000, batches="stratified"), **options)
    kept = {"cache": f"disk:{folder}", "cache_bytes": "64M"} if cache == "disk" else {}
    for _ in range(2):
        mix = leat.Mix([local, url], [3, 1], epoch_size=6000, batches="stratified")
        stats, there = labels(mix, **options, **kept)
        np.testing.assert_array_equal(here, there)
    assert (stats["disk_cache_hits"] > 0) == (cache == "disk")


def test_a_first_block_damaged_in_transit_is_read_again(served):
    """Damage in the magic looks like another kind of file."""
    path, url, handler = served

    def damaged(self) -> None:
        data = bytearray((self.folder / path.name).read_bytes())
        if self.headers["Range"].startswith("bytes=0-") and (count := type(self).count) < wrong:
            type(self).count = count + 1
            data[3] ^= 64
        send_range(self, bytes(data), '"fixed"')

    handler.do_GET = damaged
    for wrong in (1, 2):
        handler.count = 0
        if wrong == 1:
            assert len(leat.open(url)) == 5000
        else:
            with pytest.raises(leat.FormatError, match="not a leat pack"):
                leat.open(url)
        assert handler.count == wrong


def test_random_access(served):
    local, url, handler = served
    data = leat.open(url)
    assert len(data) == 5000
    assert data[4321]["label"] == 4321


def test_forked_children_read_on(served):
    """Datasets stay open in forked children, with reads of the parent in flight or not; loaders are refused at once."""
    _, url, handler = served
    code = textwrap.dedent(f"""
        import gc, os, signal, threading
        import leat
        data = leat.open({url!r})
        loader = leat.Loader({url!r}, 100, image=None, as_="numpy", order="random")
        next(iter(loader))
        stop = threading.Event()

        def read():
            while not stop.is_set():
                for i in range(0, 5000, 7):
                    data[i]
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        for round in range(10):
            child = os.fork()
            if child == 0:
                signal.alarm(60)  # ends a child that hangs
                try:
                    next(iter(loader))
                except leat.ForkError as error:
                    assert "fork" in str(error)
                else:
                    os._exit(3)
                right = all(data[i]["label"] == i for i in range(round, 5000, 97))
                with leat.Loader({url!r}, 100, image=None, as_="numpy", threads=1) as own:
                    right = right and sum(len(batch.label) for batch in own) == 5000
                del data, loader
                gc.collect()
                os._exit(0 if right else 4)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        reader.join()
        print("ok")
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout == "ok\n", done.stderr


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_of_a_data_loader(served, start):
    torch = pytest.importorskip("torch")
    _, url, _ = served
    data = leat.open(url)
    assert data[0]["label"] == 0  # its connection belongs to this process
    loader = torch.utils.data.DataLoader(Labels(data), batch_size=500, num_workers=2, multiprocessing_context=start, timeout=60)
    assert [int(x) for batch in loader for x in batch] == list(range(5000))


class Labels:
    def __init__(self, data) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, i: int) -> int:
        return self.data[i]["label"]


def test_a_signed_url_is_not_shown(served):
    local, url, handler = served
    with pytest.raises(leat.Error) as caught:
        leat.Loader(url.replace("p.leat", "none.leat") + "?sig=do-not-show", 100, image=None)
    assert "do-not-show" not in str(caught.value)


class Bucket(http.server.BaseHTTPRequestHandler):
    """Enough of S3 to write small packs; signatures are not checked here."""
    protocol_version = "HTTP/1.1"
    objects: dict[str, bytes]
    refuse = 0
    delay = 0.0

    def answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("ETag", '"e"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        data = self.objects.get(self.path)
        self.answer(404 if data is None else 200, data or b"")

    def do_GET(self) -> None:
        data = self.objects.get(self.path)
        if data is None:
            self.answer(404)
        else:
            send_range(self, data, '"e"')

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if self.delay and select.select([self.connection], [], [], self.delay)[0]:
            self.close_connection = True  # the client hung up
        elif self.refuse:
            self.answer(403, b"<Error><Code>AccessDenied</Code></Error>")
        elif self.headers["If-None-Match"] and self.path in self.objects:
            self.answer(412)
        else:
            self.objects[self.path] = data
            self.answer(200)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    handler = type("Handler", (Bucket,), {"objects": {}, "refuse": 0})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name, value in {"NO_PROXY": "127.0.0.1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "hidden-word",
                        "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
                        "LEAT_STAGE_DIR": str(tmp_path / "stage")}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "stage").mkdir()
    yield handler, tmp_path / "stage"
    server.shutdown()
    server.server_close()


def write(path, count=100, **options):
    with leat.Writer(path, {"x": int}, **options) as w:
        for i in range(w.resumed, count):
            w.append({"x": i})


def test_writer_to_a_bucket(bucket, tmp_path):
    handler, stage = bucket
    write(tmp_path / "local.leat")
    with pytest.raises(leat.Error, match="s3://b: the name of the pack is missing after the bucket"):
        write("s3://b")
    write("s3://b/dir/p.leat")
    assert handler.objects["/b/dir/p.leat"] == (tmp_path / "local.leat").read_bytes()
    assert not any(stage.iterdir())
    with pytest.raises(leat.Error, match="already exists"):
        write("s3://b/dir/p.leat")
    handler.objects["/b/photo.jpg"] = b"\xff\xd8 a photo"
    with pytest.raises(leat.Error, match="photo.jpg"):
        write("s3://b/photo.jpg", replace=True)
    assert handler.objects["/b/photo.jpg"] == b"\xff\xd8 a photo"
    write("s3://b/dir/p.leat", count=10, replace=True)
    assert handler.objects["/b/dir/p.leat"] != (tmp_path / "local.leat").read_bytes()


def test_writer_continues_after_a_failed_upload(bucket, tmp_path):
    handler, stage = bucket
    write(tmp_path / "local.leat")
    handler.refuse = 1
    with pytest.raises(leat.Error, match="403") as error:
        write("s3://b/p.leat")
    assert "hidden-word" not in str(error.value)
    handler.refuse = 0
    with leat.Writer("s3://b/p.leat", {"x": int}, resume=True) as w:
        assert w.resumed == 100
        with pytest.raises(leat.Error, match=r"only its upload is missing: close\(\) uploads it"):
            w.append({"x": 1})
    assert handler.objects["/b/p.leat"] == (tmp_path / "local.leat").read_bytes()
    assert not any(stage.iterdir())


def test_ctrl_c_ends_the_upload_of_a_writer(bucket, tmp_path):
    handler, stage = bucket
    write(tmp_path / "local.leat")
    handler.delay = 8
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored in a background job
    threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            write("s3://b/p.leat")
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - begun < 4
    handler.delay = 0
    with leat.Writer("s3://b/p.leat", {"x": int}, resume=True) as w:
        assert w.resumed == 100
    assert handler.objects["/b/p.leat"] == (tmp_path / "local.leat").read_bytes()


def test_writer_resumes_only_the_same_pack(bucket):
    """A pack that waits for its upload is sent for the same fields, classes, provenance and sizes only."""
    handler, stage = bucket
    made = {"fields": {"x": int}, "classes": {"x": ["a", "b"]}, "provenance": {"source": "one"}, "page_bytes": "1M"}
    handler.refuse = 1
    with pytest.raises(leat.Error, match="403"), leat.Writer("s3://b/p.leat", **made) as w:
        w.append({"x": 1})
    handler.refuse = 0
    for other in ({"fields": {"y": int}, "classes": {"y": ["a", "b"]}}, {"classes": {"x": ["a", "c"]}}, {"classes": None},
                  {"provenance": {"source": "two"}}, {"page_bytes": "2M"}, {"shard_bytes": "1M"}):
        with pytest.raises(leat.StateError, match="s3://b/p.leat: the unfinished upload has other fields, classes") as error:
            leat.Writer("s3://b/p.leat", **{**made, **other}, resume=True)
        assert "\n" not in str(error.value)
    assert not handler.objects
    with leat.Writer("s3://b/p.leat", **made, resume=True) as w:
        assert w.resumed == 1
    assert leat.open("s3://b/p.leat").classes("x") == ["a", "b"]
    assert not any(stage.iterdir())


def test_writer_refuses_a_staged_pack_of_unknown_origin(bucket):
    handler, stage = bucket
    handler.refuse = 1
    with pytest.raises(leat.Error, match="403"):
        write("s3://b/p.leat")
    handler.refuse = 0
    origin, = stage.glob("*/p.leat.origin")
    origin.unlink()
    with pytest.raises(leat.StateError, match="does not record its source; start again without resume"):
        write("s3://b/p.leat", resume=True)
    write("s3://b/p.leat", replace=True)
    assert "/b/p.leat" in handler.objects and not any(stage.iterdir())


def test_writer_killed_in_the_middle(bucket, tmp_path):
    handler, _ = bucket
    write(tmp_path / "local.leat")
    with pytest.raises(ZeroDivisionError):
        with leat.Writer("s3://b/p.leat", {"x": int}) as w:
            w.append({"x": 0})
            raise ZeroDivisionError
    write("s3://b/p.leat", resume=True)
    assert handler.objects["/b/p.leat"] == (tmp_path / "local.leat").read_bytes()


def test_two_writers_of_one_pack(bucket):
    handler, stage = bucket
    first = leat.Writer("s3://b/p.leat", {"x": int})
    first.append({"x": 1})
    for options in {}, {"replace": True}, {"resume": True}:
        with pytest.raises(leat.StateError, match="s3://b/p.leat: another run or writer is writing this pack"):
            leat.Writer("s3://b/p.leat", {"x": int}, **options)
    first.abort()
    write("s3://b/p.leat", 2, resume=True)
    assert len(leat.open("s3://b/p.leat")) == 2 and not any(stage.iterdir())


def test_writer_warns_of_shards_that_stay(bucket):
    """This bucket does not know DELETE."""
    handler, stage = bucket
    stay = pytest.warns(RuntimeWarning, match="shards of the pack that was replaced stay in the bucket: p-")
    for i, expected in enumerate((contextlib.nullcontext(), stay)):
        with expected, leat.Writer("s3://b/p.leat", {"x": ("uint8", (4096,))}, page_bytes="64K", shard_bytes="1M", replace=True) as w:
            for j in range(600):
                w.append({"x": np.full(4096, (i + j) % 256, np.uint8)})


def test_urls_are_shown_without_secrets(served, tmp_path):
    """A URL may hold a password and a signature: neither reprs nor reports show them."""
    _, url, _ = served
    secret = url.replace("http://", "http://me:PASSWORD@") + "?sig=SIGNATURE"
    dataset = leat.open(secret)
    with leat.Loader(secret, 100, image=None, as_="numpy") as loader:
        next(iter(loader))
        texts = [repr(loader), loader.path, str(loader.packs), loader.report(), repr(dataset), dataset.path, repr(leat.Mix([secret]))]
    for text in texts:
        assert "PASSWORD" not in text and "SIGNATURE" not in text
    assert loader.path == url + "?…"
    again = pickle.loads(pickle.dumps(leat.open(url + "?sig=SIGNATURE")))  # a spawned worker opens it again
    assert len(again) == 5000 and "SIGNATURE" not in repr(again)
    assert leat._check.public("s3://bucket/a@b?c") == "s3://bucket/a@b?…" and leat._check.public("a?b@c") == "a?b@c"


def test_a_web_server_cannot_be_written(served, tmp_path, monkeypatch):
    """The error comes before anything is packed."""
    monkeypatch.setenv("LEAT_STAGE_DIR", str(tmp_path / "stage"))
    os.makedirs(tmp_path / "stage")
    _, url, _ = served
    with pytest.raises(leat.Error, match="a web server cannot be written"):
        leat.Writer(url + "x", {"label": int}).append({"label": 1}, key="1")
    assert os.listdir(tmp_path / "stage") == []


def test_a_remote_pack_cannot_be_appended_to(served):
    _, url, _ = served
    with pytest.raises(leat.UnsupportedError, match="only packs on this machine can be changed"):
        leat.Writer(url, append=True)


def test_no_folder_is_named_after_a_bucket(tmp_path, monkeypatch):
    """Commands that write folders of this machine refuse a URL before they work."""
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    with leat.Writer("p.leat", {"x": int}) as w:
        w.append({"x": 1}, key="a")
    for call in (lambda: leat.curate("p.leat", "s3://b/run"), lambda: leat.split("p.leat", {"a": 0.5, "b": 0.5}, output="s3://b/parts"),
                 lambda: leat.train("p.leat", output="s3://b/run")):
        with pytest.raises(leat.UnsupportedError, match="s3://b/.*: must be a local path"):
            call()
    assert os.listdir() == ["p.leat"]
