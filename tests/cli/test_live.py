#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The live page in a real browser, and the live view in a terminal. Without Chromium the page is
only fetched. LEAT_SCREENSHOT=FILE.png keeps a picture of the page."""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
import urllib.error
import urllib.request
import zlib

LEAT = os.environ["LEAT"]
PACK = "live.leat"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
EPOCHS = "100000"


def png(seed, side=96):
    """A small picture made without any library: noise on a gradient."""
    def chunk(kind, data):
        body = kind + data
        return len(data).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    rows = b"".join(b"\0" + bytes((x * y * seed + 37 * x + c * 50) & 255 for x in range(side) for c in range(3))
                    for y in range(side))
    head = side.to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) +
            chunk(b"IEND", b""))


def make_pack(folder):
    os.mkdir(f"{folder}/a")
    for i in range(60):
        with open(f"{folder}/a/{i}.png", "wb") as f:
            f.write(png(i))
    done = subprocess.run([LEAT, "pack", "a", "-o", PACK, "--quiet"], cwd=folder, capture_output=True, text=True)
    if "libspng" in done.stderr:
        sys.exit(77)
    assert done.returncode == 0, done.stderr


def serve(folder):
    """A loader that runs until it is stopped, and the address of its page."""
    command = [LEAT, "load", PACK, "--epochs", EPOCHS, "--batch", "4", "--size", "64", "--step-ms", "5",
               "--threads", "2", "--memory", "64M", "--serve", "0"]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=folder)
    line = run.stderr.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+/", line)
    if not found:
        run.kill()
        sys.exit(77 if "libmicrohttpd" in line else f"no page: {line!r}")
    return run, found[0]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode(), answer.headers


def check_fetched(url):
    page, headers = get(url)
    assert "leat doctor, live" in page and "default-src 'none'" in headers["Content-Security-Policy"]
    time.sleep(1.5)
    frames = json.loads(get(url + "frames.json")[0])
    assert len(frames) >= 3 and frames[-1]["samples"] > 0, frames
    verdict = json.loads(get(url + "doctor.json")[0])
    assert verdict["verdict"] and verdict["facts"]["steps"] > 0, verdict
    metrics, headers = get(url + "metrics")
    assert metrics.endswith("# EOF\n") and metrics.count("# EOF") == 1
    assert re.search(r"^leat_data_seconds_count\{.*\} [1-9]", metrics, re.M), metrics[:800]
    assert headers["Content-Type"].startswith("application/openmetrics-text")
    request = urllib.request.Request(url, headers={"Host": "elsewhere.example"})
    try:
        urllib.request.urlopen(request, timeout=10)
        raise AssertionError("another host name was answered")
    except urllib.error.HTTPError as e:
        assert e.code == 403


def check_browser(url, folder):
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1240,1500",
             f"--user-data-dir={folder}/profile", "--virtual-time-budget=4000"]
    dom = subprocess.run([BROWSER, *flags, "--dump-dom", url], capture_output=True, text=True, timeout=120)
    assert 'data-looks="' in dom.stdout, dom.stdout[:2000] + dom.stderr[-2000:]
    assert 'id="verdict"' in dom.stdout and dom.stdout.count("<polyline") >= 10, dom.stdout[:3000]
    assert '<span id="state" class="">live</span>' in dom.stdout or ">live</span>" in dom.stdout
    picture = os.environ.get("LEAT_SCREENSHOT", f"{folder}/page.png")
    subprocess.run([BROWSER, *flags, f"--screenshot={picture}", url], capture_output=True, timeout=120, check=True)
    size = os.path.getsize(picture)
    assert size > 20000, f"an empty picture: {size} bytes"
    print(f"browser: verdict and {dom.stdout.count('<polyline')} curves drawn, picture of {size} bytes")


def check_terminal(folder):
    """--live draws in place: the cursor moves up, the stages and the verdict are on the screen."""
    command = [LEAT, "load", PACK, "--epochs", "400", "--batch", "4", "--size", "64", "--step-ms", "2",
               "--threads", "2", "--memory", "64M", "--live"]
    master, slave = pty.openpty()
    env = dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8")
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=slave, stdin=slave, cwd=folder, env=env)
    os.close(slave)
    text, end = b"", time.time() + 60
    while time.time() < end:
        ready, _, _ = select.select([master], [], [], 0.2)
        if ready:
            try:
                text += os.read(master, 65536)
            except OSError:
                break
        if text.count(b"\033[J") >= 3:
            break
    run.terminate()
    run.wait(timeout=30)
    shown = text.decode()
    for wanted in ("decode", "collate", "memory", "waiting", "\033[", "-bound"):
        assert wanted in shown, f"{wanted!r} not in {shown[-2000:]!r}"
    last = [view for view in shown.split("\033[J") if "decode" in view][-1]
    print(re.sub(r"\033\[\w*", "", last).strip())


def screen_of(text, rows=40):
    """What a terminal shows, scrolled lines first: moves up, erases, carriage returns and line feeds."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\033\[\d*[A-Za-z]|\033\[\?\d+[hl]|[\r\n]|[^\r\n\033]+", text):
        move = re.fullmatch(r"\033\[(\d*)([A-Za-z])", part)
        if part == "\r":
            column = 0
        elif part == "\n":
            row, column = row + 1, 0
        elif move and move[2] == "A":
            row = max(row - int(move[1] or 1), len(lines) - rows, 0)
        elif move and move[2] == "J":
            lines[row] = lines[row][:column]
            del lines[row + 1:]
        elif move and move[2] == "K":
            lines[row] = lines[row][:column]
        elif not part.startswith("\033"):
            lines[row] = lines[row][:column] + part + lines[row][column + len(part):]
            column += len(part)
        lines += [""] * (row + 1 - len(lines))
    return lines


def check_results_stay(folder):
    """The lines of epochs go above the view: none is overwritten, and no piece of a view stays among them."""
    command = [LEAT, "load", PACK, "--epochs", "3", "--batch", "4", "--size", "64", "--step-ms", "60",
               "--threads", "2", "--memory", "64M", "--live"]
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
    env = dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8")
    run = subprocess.Popen(command, stdout=slave, stderr=slave, stdin=slave, cwd=folder, env=env)
    os.close(slave)
    text = b""
    while True:
        try:
            text += os.read(master, 65536)
        except OSError:
            break
    assert run.wait(timeout=60) == 0
    assert text.count(b"\033[J") >= 4, "too few drawings to show anything"
    lines = screen_of(text.decode())
    assert [line[:8] for line in lines[:3]] == ["epoch 0:", "epoch 1:", "epoch 2:"], lines
    assert sum("decode" in line for line in lines) == 1, lines


def main():
    with tempfile.TemporaryDirectory() as folder:
        make_pack(folder)
        run, url = serve(folder)
        try:
            check_fetched(url)
            if BROWSER:
                check_browser(url, folder)
        finally:
            run.terminate()
            run.wait(timeout=30)
        check_terminal(folder)
        check_results_stay(folder)


if __name__ == "__main__":
    main()
