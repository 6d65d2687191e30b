# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends calls that wait for a server that has stopped answering."""
import http.server
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import leat
from test_remote import send_range


class Stalling(http.server.BaseHTTPRequestHandler):
    """Answers ranges. Once a file with the name of the request and ".stall" is there, its answers never come."""

    protocol_version = "HTTP/1.1"
    folder: pathlib.Path
    asked: threading.Event
    over: threading.Event

    def do_GET(self) -> None:
        name = self.path.lstrip("/").split("?")[0]
        if (self.folder / (name + ".stall")).exists():
            self.asked.set()
            self.over.wait(60)
            self.close_connection = True
        elif "Range" in self.headers:
            send_range(self, (self.folder / name).read_bytes(), '"fixed"')
        else:
            data = (self.folder / name).read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else data)

    do_HEAD = do_GET

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    with leat.Writer(tmp_path / "p.leat", {"image": "image", "label": int}, page_bytes="1M", sync=False) as w:
        for i in range(400):
            w.append({"image": np.random.default_rng(i).integers(0, 255, (64, 64, 3), np.uint8), "label": i}, key=f"{i}" * 60)
    handler = type("Handler", (Stalling,), {"folder": tmp_path, "asked": threading.Event(), "over": threading.Event()})
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    served.daemon_threads = True
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{served.server_port}/p.leat", tmp_path, handler
    handler.over.set()
    served.shutdown()
    served.server_close()


def interrupt(server, before: str, call: str) -> None:
    """Runs `before`, lets the server stall, runs `call`, and presses Ctrl-C when its request has arrived."""
    url, folder, handler = server
    code = f"""
        import pathlib, signal, leat
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background may have it ignored
        url = {url!r}
        {before}
        pathlib.Path({str(folder / 'p.leat.stall')!r}).touch()
        try:
            {call}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    env = {**os.environ, "NO_PROXY": "127.0.0.1"}
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], env=env, stdout=subprocess.PIPE, text=True, cwd=folder)
    try:
        assert handler.asked.wait(60)
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        begin = time.monotonic()
        out, _ = child.communicate(timeout=45)
        assert out == "interrupted\n" and child.returncode == 0
        assert time.monotonic() - begin < 15  # about 0.2 s; the rest is for a busy machine
    finally:
        child.kill()


@pytest.mark.parametrize("before, call", [
    ("", "leat.open(url)"),
    ("", "leat.Loader(url, 8, as_='numpy')"),
    ("ds = leat.open(url)", "ds[200]['image'].decode()"),
    ("ds = leat.open(url)", "ds[200]"),
    ("ds = leat.open(url)", "list(ds.keys)"),
    ("loader = leat.Loader(url, 8, as_='numpy')", "next(iter(loader))"),
    ("", "leat.check(url, 'c.leat')"),
    ("", "leat.export(url, 'files')"),
    ("", "leat.merge([url, url], 'm.leat')"),
    ("", "leat.split(url, {'a': 0.5, 'b': 0.5}, 'parts')"),
    ("", "leat.select(url, 's.leat', count=3, strategies='random')"),
    ("", "leat.dedup_images(url, 'd.leat')"),
    ("", "leat.pack(url, 'again.leat')"),
    ("", "leat._leat.read_file(url)"),
])
def test_ctrl_c_while_a_server_stalls(server, before, call):
    if call in ("ds[200]", "list(ds.keys)"):  # what was fetched at the opening needs no request
        before, call = "", f"{before}; {call}"
    interrupt(server, before, call)
