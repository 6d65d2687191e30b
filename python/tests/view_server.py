# SPDX-License-Identifier: Apache-2.0
"""`leat view` as a process, and requests to it: for its tests."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

import pytest


class View:
    def __init__(self, *args: Any) -> None:
        self.process = subprocess.Popen([sys.executable, "-m", "leat", "view", *map(str, args)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            words = self.process.communicate(timeout=60)[1]
            if "libmicrohttpd" in words:
                pytest.skip("libmicrohttpd is not installed")
            pytest.fail(words)

    def raw(self, path: str, body: Any = None, headers: dict[str, str] | None = None, base: str | None = None, **args: Any):
        """Status, type and bytes."""
        query = "?" + urllib.parse.urlencode({k: v if isinstance(v, (str, int)) else json.dumps(v) for k, v in args.items()})
        request = urllib.request.Request((base or self.url) + path + (query if args else ""), headers=headers or {},
                                         data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers["Content-Type"], error.read()

    def get(self, path: str, **args: Any) -> Any:
        status, _, data = self.raw(path, **args)
        assert status == 200, data
        return json.loads(data)

    def post(self, path: str, body: Any) -> Any:
        status, _, data = self.raw(path, body=body)
        assert status == 200, data
        return json.loads(data)

    def rows(self, q: Any, **args: Any) -> list[int]:
        return [r["row"] for r in self.get("rows", q=q, **args)["rows"]]

    def close(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=120)
        return self.process.returncode

    def __enter__(self) -> View:
        return self

    def __exit__(self, *args: Any) -> None:
        if self.process.poll() is None:
            self.close()
