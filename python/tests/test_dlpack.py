# SPDX-License-Identifier: Apache-2.0
"""Tensors out: the buffer protocol and DLPack, without a copy, for NumPy, torch and JAX."""

import gc
import hashlib
import threading

import numpy as np
import pytest

import leat
from leat import _leat

OPS = {"uint8": "Resize((8, 12))", "float16": "Resize((8, 12)); ToDtype(f16)",
       "bfloat16": "Resize((8, 12)); ToDtype(bf16)", "float32": "Resize((8, 12)); ToDtype(f32)"}


def tensors(pack: str, ops: str = OPS["uint8"], **options):
    loader = leat.Loader(pack, 8, ops, order="sequential", as_="dlpack", **options)
    return next(iter(loader))


@pytest.mark.parametrize("dtype", OPS)
def test_buffer_protocol(pack, dtype):
    t = tensors(pack, OPS[dtype]).image
    assert isinstance(t, leat.Tensor) and t.shape == (8, 3, 8, 12) and t.dtype == dtype
    assert t.strides == (288, 96, 12, 1) and t.ndim == 4 and len(t) == 8 and t.data_ptr % 256 == 0
    a = np.asarray(t)
    assert a.dtype == (np.uint16 if dtype == "bfloat16" else np.dtype(dtype))
    assert a.ctypes.data == t.data_ptr and a.flags.writeable and a.nbytes == t.nbytes
    assert memoryview(t).c_contiguous


def test_the_array_keeps_the_memory(pack):
    with leat.Loader(pack, 8, OPS["uint8"], order="sequential", as_="numpy") as loader:
        image = next(iter(loader)).image
        expected = image.copy()
        for _ in loader:
            pass
    gc.collect()
    np.testing.assert_array_equal(image, expected)
    image[:] = 7  # ours to write


def test_numpy_from_dlpack(pack):
    t = tensors(pack).image
    a = np.from_dlpack(t)
    assert a.ctypes.data == t.data_ptr and a.shape == t.shape
    np.testing.assert_array_equal(a, np.asarray(t))
    labels = tensors(pack).label
    assert np.from_dlpack(labels).dtype == np.int64


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_numpy_looks_at_the_batch_itself(pack, dtype):
    """One address from the batch to both ways into NumPy, whatever the type."""
    t = tensors(pack, OPS[dtype]).image
    a, b = np.from_dlpack(t), np.asarray(t)
    assert a.ctypes.data == b.ctypes.data == t.data_ptr
    assert a.dtype == b.dtype == np.dtype(dtype) and a.shape == b.shape == t.shape
    b[0, 0, 0, 0] = 3
    assert a[0, 0, 0, 0] == 3 and np.from_dlpack(t)[0, 0, 0, 0] == 3


def test_numpy_bfloat16(pack):
    """NumPy's own DLPack has no bfloat16; as_="numpy" gives it through ml_dtypes, without a copy."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    from leat._convert import to_numpy

    t = tensors(pack, OPS["bfloat16"]).image
    a = to_numpy(t)
    assert a.dtype == ml_dtypes.bfloat16 and a.ctypes.data == t.data_ptr
    full = np.asarray(tensors(pack, OPS["float32"]).image)
    np.testing.assert_array_equal(a.astype(np.float32), full.astype(ml_dtypes.bfloat16).astype(np.float32))
    with pytest.raises((BufferError, TypeError, RuntimeError)):
        np.from_dlpack(t)


def test_capsules(pack):
    t = tensors(pack).image
    assert t.__dlpack_device__() == (1, 0)
    assert '"dltensor"' in repr(t.__dlpack__())
    assert '"dltensor_versioned"' in repr(t.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(t.__dlpack__(max_version=(0, 8)))
    for wrong in ({"stream": 1}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferError):
            t.__dlpack__(**wrong)
    copy = np.from_dlpack(t, copy=True)
    assert copy.ctypes.data != t.data_ptr and copy.ctypes.data % 256 == 0
    np.testing.assert_array_equal(copy, np.asarray(t))


def test_copy_of_a_permuted_tensor(pack):
    t = tensors(pack).image
    turned = t.permute(0, 2, 3, 1)
    np.testing.assert_array_equal(np.from_dlpack(turned), np.asarray(t).transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(np.from_dlpack(turned, copy=True), np.asarray(t).transpose(0, 2, 3, 1))
    with pytest.raises(BufferError):
        hashlib.md5(turned)  # asks for contiguous memory
    for wrong in ((0, 1, 2), (0, 1, 2, 2), (0, 1, 2, 9)):
        with pytest.raises(ValueError):
            t.permute(*wrong)


def test_read_only(pack):
    t = tensors(pack).image.as_readonly()
    assert t.readonly and not np.asarray(t).flags.writeable
    assert not np.from_dlpack(t).flags.writeable
    with pytest.raises(BufferError):
        t.__dlpack__()  # the old capsule cannot say it
    assert np.from_dlpack(t, copy=True).flags.writeable


def test_capsules_that_nobody_takes_are_freed(pack):
    t = tensors(pack).image
    before = _leat.memory_used()
    for _ in range(1000):
        t.__dlpack__()
        t.__dlpack__(max_version=(1, 1))
    gc.collect()
    assert _leat.memory_used() <= before


def test_memory_is_given_back_with_the_last_capsule(pack):
    before = _leat.memory_used()
    with leat.Loader(pack, 8, OPS["uint8"], order="sequential", as_="dlpack") as loader:
        batches = list(loader)
    arrays = [np.from_dlpack(b.image) for b in batches]
    del batches, loader
    gc.collect()
    assert _leat.memory_used() - before >= sum(a.nbytes for a in arrays)
    del arrays
    gc.collect()
    assert _leat.memory_used() <= before


def test_dropping_in_other_threads(pack):
    with leat.Loader(pack, 4, OPS["uint8"], order="sequential", as_="dlpack") as loader:
        arrays = [np.from_dlpack(b.image) for b in loader]
        thread = threading.Thread(target=arrays.clear)
        thread.start()
        thread.join()


@pytest.mark.torch
@pytest.mark.parametrize("dtype", OPS)
def test_torch(pack, dtype):
    import torch

    t = tensors(pack, OPS[dtype])
    x = torch.from_dlpack(t.image)
    assert x.dtype == getattr(torch, dtype) and tuple(x.shape) == t.image.shape
    assert x.data_ptr() == t.image.data_ptr
    bits = x.view(torch.uint16) if dtype == "bfloat16" else x
    np.testing.assert_array_equal(bits.numpy(), np.asarray(t.image))
    x += 1
    assert torch.from_dlpack(t.sample_id).tolist() == list(range(8))


@pytest.mark.torch
def test_channels_last(pack):
    import torch

    options = dict(order="sequential", as_="torch")
    first = next(iter(leat.Loader(pack, 8, OPS["uint8"], **options))).image
    last = next(iter(leat.Loader(pack, 8, OPS["uint8"], channels_last=True, **options))).image
    assert first.shape == last.shape == (8, 3, 8, 12)
    assert last.is_contiguous(memory_format=torch.channels_last) and not last.is_contiguous()
    assert torch.equal(first, last) and last.data_ptr() % 256 == 0
    plain = next(iter(leat.Loader(pack, 8, OPS["uint8"], channels_last=True, order="sequential", as_="numpy")))
    assert plain.image.shape == (8, 8, 12, 3)


@pytest.mark.torch
def test_a_tensor_freed_by_another_framework_thread(pack):
    import torch

    with leat.Loader(pack, 8, OPS["float32"], order="sequential", as_="torch") as loader:
        for image, *_ in loader:
            x = image.clone().requires_grad_()
            (x * image).sum().backward()  # autograd's thread drops its hold on `image`
            assert torch.equal(x.grad, image)


@pytest.mark.torch
def test_empty_batches(pack):
    """101 samples in global batches of 20: the last one has a sample for rank 0 only."""
    import torch

    with leat.Loader(pack, 10, OPS["float16"], order="sequential", rank=1, world_size=2, as_="dlpack") as loader:
        last = list(loader)[-1]
    assert len(last.label) == 0 and last.image.shape == (0, 3, 8, 12)
    for make in (np.asarray, np.from_dlpack, torch.from_dlpack):
        x = make(last.image)
        assert tuple(x.shape) == (0, 3, 8, 12) and str(x.dtype).endswith("float16")
    assert len(last.caption[0]) == 0 if isinstance(last.caption, tuple) else len(last.caption) == 0


@pytest.mark.jax
@pytest.mark.parametrize("dtype", OPS)
def test_jax(pack, dtype):
    import jax

    t = tensors(pack, OPS[dtype]).image
    x = jax.dlpack.from_dlpack(t)
    assert str(x.dtype) == dtype and x.shape == t.shape
    assert x.unsafe_buffer_pointer() == t.data_ptr  # 256-byte aligned, so JAX need not copy
    np.testing.assert_array_equal(np.asarray(x).view(np.asarray(t).dtype), np.asarray(t))


@pytest.mark.jax
def test_jax_loader(pack):
    import jax.numpy as jnp

    with leat.Loader(pack, 10, OPS["bfloat16"], order="sequential", as_="jax") as loader:
        seen = []
        for batch in loader:
            assert batch.image.dtype == jnp.bfloat16 and batch.label.dtype == jnp.int32
            seen += batch.sample_id.tolist()
    assert seen == list(range(101))


@pytest.mark.jax
def test_jax_empty_batches(pack):
    with leat.Loader(pack, 10, OPS["float32"], order="sequential", rank=1, world_size=2, as_="jax") as loader:
        assert list(loader)[-1].image.shape == (0, 3, 8, 12)
