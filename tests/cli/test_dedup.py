#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills `leat dedup fuzzy` and `leat dedup substring` with SIGKILL at random times and resumes it: the same bytes in the end."""
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

LEAT = os.environ["LEAT"]
ROUNDS = int(os.environ.get("LEAT_KILLS", "3"))


def corpus(path, n):
    r = random.Random(3)
    words = [f"w{i}" for i in range(5000)]
    texts = []
    with open(path, "w", encoding="utf-8") as f:
        for i in range(n):
            if i > 10 and r.random() < .3:
                text = list(r.choice(texts))
                for _ in range(r.randint(0, 20)):
                    text[r.randrange(len(text))] = r.choice(words)
            else:
                text = r.choices(words, k=r.randint(20, 300))
            texts.append(text)
            f.write(json.dumps({"id": i, "text": " ".join(text)}) + "\n")


def digest(folder):
    h = hashlib.sha256()
    for name in sorted(os.listdir(folder)):
        if name.startswith(("kept", "clusters", "bad", "changed")):
            h.update(name.encode())
            with open(os.path.join(folder, name), "rb") as f:
                h.update(f.read())
    return h.hexdigest()


def main():
    kill_runs("fuzzy", ROUNDS, "--bands-per-iteration", "7")
    kill_runs("substring", max(ROUNDS // 3, 1), "--words", "8", "--memory", "100M")


def kill_runs(kind, rounds, *options):
    with tempfile.TemporaryDirectory() as box:
        src = os.path.join(box, "in.jsonl")
        corpus(src, 6000)
        command = [LEAT, "dedup", kind, src, "--checkpoint", "1", *options, "--quiet", "-o"]
        whole = os.path.join(box, "whole")
        begin = time.monotonic()
        subprocess.run([*command, whole], check=True, stdout=subprocess.DEVNULL)
        took = time.monotonic() - begin
        want = digest(whole)
        r = random.Random(int.from_bytes(os.urandom(4), "little"))
        for i in range(rounds):
            out, kills, resumed = os.path.join(box, f"killed{i}"), 0, 0
            while True:
                process = subprocess.Popen([*command, out, "--resume", "--json", "--threads", str(r.randint(1, 3))],
                                           stdout=subprocess.PIPE)
                if kills < 6:
                    time.sleep(r.random() * took * 1.2)
                    process.send_signal(signal.SIGKILL)
                text = process.communicate(timeout=120)[0]
                kills += 1
                if process.returncode == 0:
                    resumed += json.loads(text)["resumed"]
                    break
                assert process.returncode == -signal.SIGKILL, process.returncode
                if os.path.exists(os.path.join(out, "report.json")) and \
                        not os.path.exists(os.path.join(out, ".leat-work", "state.json")):
                    # it was complete: killed while it removed its work files
                    done = subprocess.run([*command, out, "--resume", "--json"], capture_output=True, check=True)
                    assert json.loads(done.stdout)["already_complete"] is True, done
                    break
            assert digest(out) == want, f"round {i} differs"
            assert not os.path.exists(os.path.join(out, ".leat-work"))
            print(f"{kind}, round {i}: {kills - 1} kills, resumed {resumed}, same bytes")


if __name__ == "__main__":
    sys.exit(main())
