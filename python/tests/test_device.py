# SPDX-License-Identifier: Apache-2.0
"""Batches on a CUDA device, here the stand-in driver of the unit tests, whose memory can be read."""
import ctypes
import shutil
import subprocess
import sys
import textwrap
import threading
import time
import types
from pathlib import Path

import numpy as np
import pytest

import leat

SOURCE = Path(__file__).resolve().parents[2] / "tests/unit/gpu/fake_cuda.c"


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None or not SOURCE.exists():
        pytest.skip("needs a C compiler and the source tree")
    library = tmp_path_factory.mktemp("driver") / "fake_cuda.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-lpthread"], check=True)
    return str(library)


@pytest.fixture
def cuda(driver, monkeypatch):
    monkeypatch.setenv("LEAT_CUDA_DRIVER", driver)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    monkeypatch.setenv("FAKE_CUDA", "")
    monkeypatch.setenv("LEAT_NVRTC", driver)
    monkeypatch.setenv("LEAT_CACHE_DIR", "/nowhere/at/all")
    return ctypes.CDLL(driver)


def read(tensor):
    """What a kernel would see."""
    data = ctypes.string_at(tensor.data_ptr, tensor.nbytes)
    return np.frombuffer(data, tensor.dtype).reshape(tensor.shape)


OPTIONS = {"batch_size": 8, "order": "random", "seed": 3, "threads": 2,
           "image": "RandomResizedCrop(16); RandomHorizontalFlip(); ToDtype(f16)"}


def test_the_same_batches(pack, cuda):
    with leat.Loader(pack, as_="numpy", **OPTIONS) as host, \
            leat.Loader(pack, as_="dlpack", device="cuda:1", **OPTIONS) as device:
        for a, b in zip(host, device, strict=True):
            assert b.image.device == "cuda:1" and b.sample_id.device == "cpu"
            np.testing.assert_array_equal(a.image, read(b.image))
            np.testing.assert_array_equal(a.label, read(b.label))
            np.testing.assert_array_equal(a.sample_id, np.asarray(b.sample_id))
        stats = device.stats()
        assert stats["page_locked"] and stats["copied_bytes"] > 0
        assert 0 < stats["device_used_bytes"] <= stats["device_limit_bytes"]
        del a, b
    assert cuda.fake_cuda_held() == 0


def test_the_tensors_say_where_they_are(pack, cuda):
    with leat.Loader(pack, as_="dlpack", device="cuda", **OPTIONS) as loader:
        image, label, *_ = next(iter(loader))
        assert image.__dlpack_device__() == (2, 0)
        view = image.permute(0, 2, 3, 1)
        assert view.device == "cuda:0" and view.as_readonly().device == "cuda:0"
        seen = image.__cuda_array_interface__
        assert seen["shape"] == (8, 3, 16, 16) and seen["typestr"] == "<f2" and seen["version"] == 3
        assert seen["data"] == (image.data_ptr, False) and seen["stream"] is None
        assert seen["strides"] == (3 * 16 * 16 * 2, 16 * 16 * 2, 32, 2)
        for stream in (None, -1, 1, 2, 0x1234):
            assert "dltensor" in repr(image.__dlpack__(stream=stream))
        with pytest.raises(ValueError, match="ambiguous"):
            image.__dlpack__(stream=0)
        with pytest.raises(BufferError, match="CUDA device 0"):
            image.__dlpack__(dl_device=(1, 0))
        with pytest.raises(BufferError, match="copied by its consumer"):
            image.__dlpack__(copy=True)
        with pytest.raises(BufferError, match="DLPack"):
            memoryview(image)
        for convert in (np.asarray, np.array, np.ascontiguousarray):
            with pytest.raises(TypeError, match="CUDA device 0.*DLPack"):
                convert(image)
        assert not hasattr(leat.Loader(pack, as_="dlpack", **OPTIONS), "__cuda_array_interface__")
        host, *_ = next(iter(leat.Loader(pack, as_="dlpack", **OPTIONS)))
        assert host.device == "cpu" and not hasattr(host, "__cuda_array_interface__")
        assert not hasattr(host, "__array__") and np.asarray(host).shape == host.shape


def test_kept_batches_stay(pack, cuda):
    loader = leat.Loader(pack, as_="dlpack", device="cuda", **OPTIONS)
    kept = [(batch.image, read(batch.image).copy()) for batch in loader]
    loader.close()
    for tensor, before in kept:
        np.testing.assert_array_equal(read(tensor), before)
    del kept, tensor
    assert cuda.fake_cuda_held() == 0


def test_device_memory_is_a_limit(pack, cuda):
    with pytest.raises(leat.BudgetError, match="device_memory"):
        leat.Loader(pack, as_="dlpack", device="cuda", device_memory="8K", **OPTIONS)
    with leat.Loader(pack, as_="dlpack", device="cuda", device_memory="256K", **OPTIONS) as loader:
        run, kept = iter(loader), []
        with pytest.raises(leat.BudgetError, match="device_memory"):
            while True:
                kept.append(next(run))
        assert 2 <= len(kept) <= 4
        kept.clear()
        assert next(run) is not None


def test_what_does_not_work_is_said(pack, cuda, monkeypatch):
    with pytest.raises(leat.ArgumentError, match="NumPy"):
        leat.Loader(pack, as_="numpy", device="cuda")
    with pytest.raises(leat.ArgumentError, match="'cuda:00' is not cpu, cuda or cuda:N"):
        leat.Loader(pack, as_="dlpack", device="cuda:00")
    with pytest.raises(leat.ArgumentError, match="'tpu' is not cpu, cuda or cuda:N"):
        leat.Loader(pack, as_="dlpack", device="tpu")
    with pytest.raises(leat.ArgumentError, match="there are 2"):
        leat.Loader(pack, as_="dlpack", device="cuda:9")
    with pytest.raises(leat.ArgumentError, match="needs a device"):
        leat.Loader(pack, as_="dlpack", device_memory="1G")
    monkeypatch.setenv("LEAT_CUDA_DRIVER", "/nowhere/libcuda.so.1")
    with pytest.raises(leat.UnsupportedError, match=r"device 'cuda': no CUDA driver here \(.*\); leave device out to use the CPU$"):
        leat.Loader(pack, as_="dlpack", device="cuda")


@pytest.fixture(scope="module")
def tiled(tmp_path_factory, plain):
    path = str(tmp_path_factory.mktemp("tiled") / "tiled.leat")
    leat.pack(plain, path, images="tiled", sync=False)
    return path


@pytest.mark.parametrize("decode", ["auto", "cpu", "gpu"])
def test_the_device_decodes_the_same_bytes(tiled, cuda, decode):
    with leat.Loader(tiled, as_="numpy", **OPTIONS) as host, \
            leat.Loader(tiled, as_="dlpack", device="cuda", decode=decode, **OPTIONS) as device:
        for a, b in zip(host, device, strict=True):
            np.testing.assert_array_equal(a.image, read(b.image))
            np.testing.assert_array_equal(a.label, read(b.label))
        stats = device.stats()
        assert stats["device_images"] == (101 if decode == "gpu" else 0 if decode == "cpu"
                                          else stats["device_images"])
        assert stats["device_share"] == (1 if decode == "gpu" else 0 if decode == "cpu"
                                         else stats["device_share"])
    with pytest.raises(leat.ArgumentError, match="GaussianBlur runs on the host"):
        leat.Loader(tiled, as_="dlpack", device="cuda", decode="gpu", image="Resize((8, 8)); GaussianBlur(3)")
    with pytest.raises(leat.ArgumentError, match="decode"):
        leat.Loader(tiled, decode="gpu")
    with pytest.raises(leat.ArgumentError, match="decode: 'tpu'"):
        leat.Loader(tiled, decode="tpu")


def test_a_device_that_decodes_nothing_is_told(plain, tiled, cuda):
    lanczos = {**OPTIONS, "image": "Resize((57, 61), interpolation=lanczos)"}
    for pack, options, told in ((plain, OPTIONS, "decode=gpu .*not tiled"), (tiled, lanczos, "need the CPUs")):
        with leat.Loader(pack, as_="dlpack", device="cuda", decode="gpu", **options) as loader:
            with pytest.warns(leat.AdviceWarning, match=told) as seen:
                for _ in range(2):
                    for _ in loader:
                        pass
            assert len(seen) == 1 and seen[0].filename == __file__
            assert loader.stats()["device_share"] == 0


def test_tiles_stay_on_the_device(tiled, cuda):
    with leat.Loader(tiled, as_="numpy", **OPTIONS) as host, \
            leat.Loader(tiled, as_="dlpack", device="cuda", cache="device", device_memory="4G", **OPTIONS) as device:
        for epoch in range(3):
            host.set_epoch(epoch)
            device.set_epoch(epoch)
            for a, b in zip(host, device, strict=True):
                np.testing.assert_array_equal(a.image, read(b.image))
            stats = device.stats()
            assert stats["device_cached_images"] == 101 or epoch == 0
        assert stats["read_bytes"] == 0
    with pytest.raises(leat.ArgumentError, match="cache device needs a device"):
        leat.Loader(tiled, cache="device")


def test_the_device_reads_cached_pages(tiled, cuda):
    cuda.fake_cuda_gathered.restype = ctypes.c_uint64
    with leat.Loader(tiled, as_="numpy", **OPTIONS) as host, \
            leat.Loader(tiled, as_="dlpack", device="cuda", decode="gpu", cache="process", memory="256M", **OPTIONS) as device:
        before, epoch = cuda.fake_cuda_gathered(), 0
        while epoch < 3 or (epoch < 500 and cuda.fake_cuda_gathered() == before):  # a thread locks the pages
            host.set_epoch(epoch)
            device.set_epoch(epoch)
            for a, b in zip(host, device, strict=True):
                np.testing.assert_array_equal(a.image, read(b.image))
            epoch += 1
        assert before < cuda.fake_cuda_gathered() < before + device.stats(all=True)["copied_bytes"]
        del a, b
    assert cuda.fake_cuda_held() == 0


def test_a_loader_with_a_device_is_changed(pack, cuda):
    crops = {n: f"RandomResizedCrop({n}); RandomHorizontalFlip(); ToDtype(f16)" for n in (16, 24, 48)}
    host = leat.Loader(pack, as_="numpy", **OPTIONS)
    device = leat.Loader(pack, as_="dlpack", device="cuda", decode="cpu", **OPTIONS)
    for size, crop in ((8, 16), (5, 48), (20, 24), (20, 16)):
        for loader in (host, device):
            loader.set(image=crops[crop], batch_size=size)
        for at, (a, b) in enumerate(zip(host, device, strict=True)):
            np.testing.assert_array_equal(a.image, read(b.image))
            np.testing.assert_array_equal(a.label, read(b.label))
            if at == 2:  # in the middle of an epoch
                for loader in (host, device):
                    loader.set(image=crops[48], when="batch")
    del a, b
    held = device.stats()["device_used_bytes"]
    with pytest.raises(leat.BudgetError, match="device_memory: .* batches need"):
        device.set(batch_size=1 << 19)
    assert device.batch_size == 20 and len(list(device)) == 6 and device.stats()["device_used_bytes"] >= held // 2
    host.close()
    device.close()
    assert cuda.fake_cuda_held() == 0


def test_a_device_that_decodes_is_not_changed(tiled, cuda):
    with leat.Loader(tiled, 8, "RandomResizedCrop(16)", as_="dlpack", device="cuda", decode="gpu") as loader:
        with pytest.raises(leat.UnsupportedError, match="whose images the device decodes or keeps cannot be changed"):
            loader.set(batch_size=4)
        assert len(list(loader)) == len(loader)


def test_a_device_that_decodes_gets_more_batches_ahead(tiled, cuda):
    ahead = {}
    for decode in ("cpu", "gpu"):
        with leat.Loader(tiled, 64, "RandomResizedCrop(224)", as_="dlpack", device="cuda", decode=decode) as loader:
            next(iter(loader))
            ahead[decode] = loader.stats()["prefetch"]
    assert ahead["gpu"] >= 8 and ahead["cpu"] < ahead["gpu"]


def test_little_device_memory_is_enough_or_an_error(tiled, cuda):
    """No limit lets the loader wait for memory that no caller can release."""
    ends = {}
    for limit in (1 << k for k in range(18, 26)):
        try:
            with leat.Loader(tiled, 24, "RandomResizedCrop(64)", as_="dlpack", device="cuda", decode="gpu",
                             device_memory=limit, prefetch=64) as loader:
                ends[limit] = sum(1 for _ in loader) == len(loader) and loader.stats()["device_peak_bytes"] <= limit
        except leat.BudgetError as e:
            ends[limit] = "device_memory" in str(e) or str(e)
    assert all(v is True for v in ends.values()), ends


@pytest.mark.parametrize("cache", ["os", "process"])
@pytest.mark.parametrize("decode", ["gpu", "auto"])
def test_little_memory_is_enough_or_refused_when_opened(tiled, cuda, cache, decode):
    enough = 0
    for megabytes in range(2, 12):
        try:
            loader = leat.Loader(tiled, 16, "RandomResizedCrop(64)", as_="dlpack", device="cuda", decode=decode, cache=cache,
                                 order="random", memory=megabytes << 20, threads=2)
        except leat.BudgetError as e:
            assert "need at least" in str(e) and not enough
            continue
        with loader:
            for _ in range(3):
                assert sum(1 for _ in loader) == len(loader)
            assert loader.stats()["budget_peak_bytes"] <= megabytes << 20
        enough += 1
    assert enough > 2


def test_batches_can_be_taken_while_a_graph_is_captured(tiled, cuda, monkeypatch):
    with leat.Loader(tiled, 2, "RandomResizedCrop(64)", as_="dlpack", device="cuda", decode="gpu") as loader:
        run = iter(loader)
        next(run)
        monkeypatch.setenv("FAKE_CUDA", "capture")
        monkeypatch.setattr(leat._loader, "_consumer", lambda device: (True, 0))
        for _ in range(20):
            next(run)
        monkeypatch.setenv("FAKE_CUDA", "")
        monkeypatch.setattr(leat._loader, "_consumer", lambda device: (False, 0))
        assert sum(1 for _ in run) == len(loader) - 21
    assert cuda.fake_cuda_broken() == 0


def test_a_release_does_not_end_a_capture(tiled, cuda, monkeypatch):
    with leat.Loader(tiled, 2, "RandomResizedCrop(64)", as_="dlpack", device="cuda", decode="gpu") as loader:
        kept = [batch for batch, _ in zip(loader, range(8))]
        monkeypatch.setenv("FAKE_CUDA", "capture")
        kept.pop()
        threading.Thread(target=kept.clear).start()
        while kept:
            time.sleep(0.001)
    assert cuda.fake_cuda_broken() == 0


def test_a_capture_of_torch_is_seen(monkeypatch):
    torch = pytest.importorskip("torch")
    assert leat._loader._consumer("cuda") == (False, None)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: types.SimpleNamespace(cuda_stream=7))
    assert leat._loader._consumer("cuda:1") == (True, 7)
    assert leat._loader._consumer("cpu") == (False, None)


def test_steps_of_the_device_are_measured(tiled, cuda, monkeypatch):
    monkeypatch.setattr(leat._loader, "_consumer", lambda device: (False, 0))
    with leat.Loader(tiled, 2, "RandomResizedCrop(64)", as_="dlpack", device="cuda") as loader:
        assert sum(1 for _ in loader) == len(loader)
        assert loader.stats()["device_step_ms"] == 0  # no doctor watches
        assert loader.doctor()
        assert sum(1 for _ in loader) == len(loader)
        assert loader.stats()["device_step_ms"] == 1  # what the stand-in says


def test_without_page_locking_it_says_so_once(pack, cuda, monkeypatch):
    monkeypatch.setenv("FAKE_CUDA", "pin")
    with leat.Loader(pack, as_="dlpack", device="cuda", **OPTIONS) as loader, \
            pytest.warns(RuntimeWarning, match="page-locked") as seen:
        assert sum(1 for _ in loader) == len(loader)
    assert len(seen) == 1


def test_cached_pages_that_cannot_be_locked_are_told_once(tiled, cuda, monkeypatch):
    monkeypatch.setenv("FAKE_CUDA", "map")
    with leat.Loader(tiled, 4, "RandomResizedCrop(64)", as_="dlpack", device="cuda", decode="gpu", cache="process") as loader, \
            pytest.warns(RuntimeWarning, match="page-locked") as seen:
        for _ in range(3):
            assert sum(1 for _ in loader) == len(loader)
    assert len(seen) == 1


def test_no_driver_is_loaded_unless_asked_for(pack):
    code = f"""
        import leat
        for batch in leat.Loader({str(pack)!r}, batch_size=8, image="Resize((8, 8))", as_="numpy"): pass
        maps = open("/proc/self/maps").read()
        assert "libcuda" not in maps and "nvidia" not in maps, maps
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
