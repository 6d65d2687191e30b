# SPDX-License-Identifier: Apache-2.0
"""Drops files from the page cache, for benchmarks with cold reads."""
import os


def drop(path):
    """Drops the file from the page cache, after reading it once.

    A virtual machine returns unused memory to its host and gets it back page by page. The first run that uses such
    memory would measure that (here 0.6 GB/s through the page cache instead of 6). Reading and dropping the file
    first leaves as much free memory as the run will need.
    """
    fd = os.open(path, os.O_RDONLY)
    block = bytearray(4 << 20)
    while os.readv(fd, [block]) > 0:
        pass
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
