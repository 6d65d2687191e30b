# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven by its DevTools protocol over a plain WebSocket: no package is needed."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request
from typing import Any

PROGRAM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)


class Browser:
    """One page. Errors and refused resources of the page are kept in `problems`."""

    def __init__(self, width: int = 1280, height: int = 800) -> None:
        self._folder = tempfile.mkdtemp(prefix="leat-browser-")
        self._process = subprocess.Popen(
            [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--remote-debugging-port=0",
             f"--user-data-dir={self._folder}", f"--window-size={width},{height}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self._number = 0
        self._buffer = b""
        self.problems: list[str] = []
        try:
            self._connect()
            self.call("Page.enable")
            self.call("Runtime.enable")
            self.call("Log.enable")
            self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        port_file = os.path.join(self._folder, "DevToolsActivePort")
        deadline = time.monotonic() + 120
        while not (os.path.exists(port_file) and os.path.getsize(port_file)):
            assert self._process.poll() is None and time.monotonic() < deadline, "the browser did not start"
            time.sleep(0.05)
        port = int(open(port_file).readline())
        pages = []
        while not pages and time.monotonic() < deadline:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=60) as answer:
                pages = [p for p in json.load(answer) if p["type"] == "page"]
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        path = pages[0]["webSocketDebuggerUrl"].split(str(port), 1)[1]
        self._socket.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                              "Sec-WebSocket-Key: bGVhdC1sZWF0LWxlYXQhIQ==\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        while b"\r\n\r\n" not in self._buffer:
            self._buffer += self._socket.recv(4096)
        head, self._buffer = self._buffer.split(b"\r\n\r\n", 1)
        assert b" 101 " in head.split(b"\r\n")[0], head

    def _take(self, count: int) -> bytes:
        while len(self._buffer) < count:
            part = self._socket.recv(1 << 20)
            assert part, "the browser closed the connection"
            self._buffer += part
        data, self._buffer = self._buffer[:count], self._buffer[count:]
        return data

    def _receive(self) -> dict[str, Any]:
        message, last = b"", False
        while not last:
            first, size = self._take(2)
            last, size = bool(first & 0x80), size & 0x7F
            if size == 126:
                size = struct.unpack(">H", self._take(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self._take(8))[0]
            data = self._take(size)
            if first & 0x0F in (0, 1, 2):
                message += data
            else:
                last = False  # ping, close
        return json.loads(message)

    def _event(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.problems.append(str(params["exceptionDetails"].get("exception", {}).get("description", params)))
        if message.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(params["entry"]["text"] + " " + params["entry"].get("url", ""))

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        body = json.dumps({"id": self._number, "method": method, "params": params}).encode()
        size = len(body)
        head = bytes([0x81]) + (bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack(">H", size) if size < 65536
                                else b"\xff" + struct.pack(">Q", size))
        self._socket.sendall(head + b"\0\0\0\0" + body)  # a mask of zeros
        while True:
            message = self._receive()
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]
            self._event(message)

    def drain(self) -> None:
        """Takes events that have come."""
        while self._buffer or select.select([self._socket], [], [], 0.05)[0]:
            self._event(self._receive())

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def value(self, script: str) -> Any:
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, script: str, seconds: float = 120) -> Any:
        """Until the script gives something that is true."""
        deadline = time.monotonic() + seconds
        while True:
            found = self.value(script)
            if found:
                return found
            assert time.monotonic() < deadline, (f"never true: {script}; problems: {self.problems}; "
                                                 f"body: {self.value('document.body.innerText')[:600]}")
            time.sleep(0.03)

    def key(self, key: str, code: int, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code,
                      **({"text": text} if text and kind == "keyDown" else {}))

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float, modifiers: int = 0) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1, modifiers=modifiers)

    def drag(self, x0: float, y0: float, x1: float, y1: float, modifiers: int = 0) -> None:
        self.mouse("mousePressed", x0, y0, button="left", clickCount=1, modifiers=modifiers)
        for step in range(1, 6):
            self.mouse("mouseMoved", x0 + (x1 - x0) * step / 5, y0 + (y1 - y0) * step / 5, button="left", buttons=1,
                       modifiers=modifiers)
        self.mouse("mouseReleased", x1, y1, button="left", clickCount=1, modifiers=modifiers)

    def screenshot(self, path: str) -> None:
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self) -> None:
        if hasattr(self, "_socket"):
            self._socket.close()
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
