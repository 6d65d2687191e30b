#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""leat dedup fuzzy of many small documents: memory, kills in every phase, a full disk, hostile documents.

    text_scale.py --leat build/tools/leat --folder /tmp/scale --docs 5000000 memory
    text_scale.py --leat build/tools/leat --folder /tmp/scale --docs 300000 --kills 20 kill
    text_scale.py --leat build/tools/leat --folder /tmp/scale --docs 300000 disk       # as root: mounts a tmpfs
    text_scale.py --leat build/tools/leat --folder /tmp/scale hostile

Prints one JSON object per line; exit status 1 when something that must hold does not. Documents are made of
random words; every fifth is an edited copy of one of the thousand before it.
"""
import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from text_output import digest, failed, must, say

PHASES = ("sketch", "group", "resolve", "write")


def make(path, docs, seed=1):
    """JSONL of `docs` documents of about 300 bytes."""
    if os.path.exists(path):
        return
    draw = random.Random(seed)
    words = ["".join(draw.choices("etaoinshrdlucmfw", k=draw.randint(2, 10))) for _ in range(20000)]
    recent = []
    with open(path + ".partial", "w", encoding="utf-8") as out:
        for i in range(docs):
            if i % 5 == 4:
                text = list(draw.choice(recent))
                text[draw.randrange(len(text))] = draw.choice(words)
            else:
                text = draw.choices(words, k=draw.randint(25, 60))
            recent.append(text)
            if len(recent) > 1000:
                recent = recent[500:]
            out.write('{"id":%d,"text":"%s"}\n' % (i, " ".join(text)))
    os.rename(path + ".partial", path)


def command(args, source, out, memory, *more):
    return [args.leat, "dedup", "fuzzy", source, "-o", out, "--memory", memory, "--threads", str(args.threads), "--quiet", *more]


def peak_rss(pid):
    """The kernel's own maximum, in bytes."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            return max((int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM:")), default=0)
    except OSError:
        return 0


def run(words):
    """Exit status, stderr, and resources of a command."""
    begin = time.monotonic()
    p = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    peak = 0
    while os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        peak = max(peak, peak_rss(p.pid))  # ru_maxrss has the memory of this process, before exec
        time.sleep(0.01)
    text = p.stderr.read()
    _, status, used = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    return p.returncode, text.strip(), {"wall_s": round(time.monotonic() - begin, 1), "cpu_s": round(used.ru_utime + used.ru_stime, 1),
                                        "rss_mb": round(peak / 1e6, 1)}


def memory(args, source):
    seen = set()
    for limit in args.memory:
        out = os.path.join(args.folder, "out-" + limit)
        shutil.rmtree(out, ignore_errors=True)
        status, text, used = run(command(args, source, out, limit))
        must(status == 0, f"--memory {limit}: {text}")
        if status:
            continue
        with open(os.path.join(out, "report.json"), encoding="utf-8") as f:
            report = json.load(f)
        allowed = int(limit[:-1]) * {"M": 1 << 20, "G": 1 << 30}[limit[-1]] / 1e6 + 32 * 1.048576
        must(used["rss_mb"] <= allowed, f"--memory {limit}: {used['rss_mb']} MB of RSS")
        seen.add(digest(out))
        say(memory=limit, documents=report["documents"], removed=report["removed"], text_mb=round(report["text_bytes"] / 1e6, 1), **used,
            planned_memory_mb=round(report["plan_memory"] / 1e6, 1), planned_disk_mb=round(report["plan_disk"] / 1e6, 1),
            disk_mb=round(report["disk_bytes"] / 1e6, 1), budget_peak_mb=round(report["budget_peak_bytes"] / 1e6, 1), digest=digest(out))
        shutil.rmtree(out)
    must(len(seen) == 1, f"different outputs: {seen}")


def phase_of(work):
    try:
        with open(os.path.join(work, "state.json"), encoding="utf-8") as f:
            return PHASES[json.load(f)["phase"]]
    except (OSError, ValueError):
        return None


def kill_one(words, work, target, draw):
    """Runs until the saved state says `target`, and a little longer; kills. False when the run ended first."""
    p = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    delay = draw.random() * 0.1
    while p.poll() is None:
        if phase_of(work) == target:
            time.sleep(delay)
            break
        time.sleep(0.001)
    done = p.poll() is not None
    if not done:
        p.send_signal(signal.SIGKILL)
    p.wait()
    must(not done or p.returncode == 0, f"{target}: exit {p.returncode}")
    return not done


def kill(args, source):
    out, draw = os.path.join(args.folder, "out-kill"), random.Random(7)
    work = os.path.join(out, ".leat-work")
    options = ("--checkpoint", "4M")
    shutil.rmtree(out, ignore_errors=True)
    must(run(command(args, source, out, "128M"))[0] == 0, "a run that is not killed")
    want = digest(out)
    for target in PHASES:
        kills = ends = 0
        shutil.rmtree(out)
        while kills < args.kills and ends < args.kills:
            words = command(args, source, out, "128M", *options, *(("--resume",) if os.path.exists(work) else ()))
            if kill_one(words, work, target, draw):
                kills += 1
                continue
            ends += 1
            must(digest(out) == want, f"{target}: other output after {kills} kills")
            shutil.rmtree(out)
        resume = ("--resume",) if os.path.exists(os.path.join(work, "state.json")) else ("--force",)
        status, text, _ = run(command(args, source, out, "128M", *options, *resume))
        must(status == 0, f"{target}: {text}")
        must(digest(out) == want, f"{target}: other output")
        say(phase=target, kills=kills, runs_that_ended=ends, same=digest(out) == want)
    shutil.rmtree(out)


def disk(args, source):
    """A file system that is too small, and one that fills up during the run."""
    box, size = os.path.join(args.folder, "small"), os.path.getsize(source)
    out, other = os.path.join(box, "out"), os.path.join(args.folder, "out-disk")
    shutil.rmtree(other, ignore_errors=True)
    run(command(args, source, other, "128M"))
    want = digest(other)
    shutil.rmtree(other)
    os.makedirs(box, exist_ok=True)
    for share, filler in ((0.5, 0), (3.2, 1.2), (3.2, 2.0), (3.2, 2.5)):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={int(size * share)}", "none", box], check=True)
        try:
            p = subprocess.Popen(command(args, source, out, "128M", "--checkpoint", "4M"), stderr=subprocess.PIPE, text=True)
            if filler:  # takes space after the plan was made
                while p.poll() is None and not os.path.exists(os.path.join(out, ".leat-work")):
                    time.sleep(0.001)
                subprocess.run(["fallocate", "-l", str(int(size * filler)), os.path.join(box, "filler")], check=True)
            text = p.communicate()[1].strip()
            after = {}
            if filler:
                os.remove(os.path.join(box, "filler"))
                state = os.path.exists(os.path.join(out, ".leat-work", "state.json"))
                status, why, _ = run(command(args, source, out, "128M", "--resume" if state else "--force"))
                after = {"resumed": state, "then": status, "same": status == 0 and digest(out) == want}
                must(after["same"], f"full disk {filler}: {why}")
            must(p.returncode != 0 or bool(filler), "a disk that is too small was accepted")
            say(disk=share, taken=filler, exit=p.returncode, message=text, **after)
        finally:
            subprocess.run(["umount", box], check=True)


def hostile(args, _):
    """Counts of hostile files, with their time and memory."""
    surrogate, deep = r"\ud800 \udc00x \ud83d\ude00", "[" * 100000
    cases = {
        "100 MB on one line": ('{"text":"' + "many words on one line " * 4347826 + '"}\n', {"documents": 1, "bad": 0}),
        "10^6 equal lines": ('{"text":"one line like any other"}\n' * 1000000, {"documents": 1000000, "removed": 999999}),
        "lone surrogates": (('{"text":"' + surrogate + '"}\n') * 1000, {"documents": 1000, "lone_surrogates": 2000, "removed": 999}),
        "NULs": ('{"text":"a\\u0000b c d e f"}\n{"text":"a\0b"}\n' * 500, {"documents": 500, "bad": 500}),
        "deep": ('{"x":' + deep + ',"text":"t"}\n', {"documents": 0, "bad": 1}),
        "escapes": ('{"text":"' + "\\\\" * 5000000 + ' w"}\n{"text":"' + "\\u0041" * 2000000 + '"}\n', {"documents": 2, "bad": 0}),
        "invalid UTF-8": (b'{"text":"\xff\xc0\x80"}\n{"text":"ok then"}\n', {"documents": 1, "bad": 1}),
        "blank lines": ("\n" * 3000000 + '{"text":"the only one"}\n', {"documents": 1, "bad": 0}),
    }
    source, out = os.path.join(args.folder, "hostile.jsonl"), os.path.join(args.folder, "out-hostile")
    for name, (text, want) in cases.items():
        memory = {"100 MB on one line": "16G", "escapes": "8G"}.get(name, "256M")
        with open(source, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        del text
        for kind in ("fuzzy", "exact", "filter"):
            shutil.rmtree(out, ignore_errors=True)
            words = [args.leat, "filter", source, "-o", out, "--profile", "gopher@paper"] if kind == "filter" else [args.leat, "dedup", kind, source, "-o", out]
            status, text, used = run([*words, "--memory", memory, "--threads", "1", "--quiet", "--max-document", "200M"])
            path = os.path.join(out, "report.json")
            report = json.load(open(path, encoding="utf-8")) if os.path.exists(path) else {}
            wrong = {k: report[k] for k, v in want.items() if k in report and report[k] != v}
            must(status in (0, 4) and report and not wrong, f"{name}, {kind}: exit {status}, {wrong}, {text}")
            say(case=name, run=kind, exit=status, **used, **{k: report.get(k) for k in want if k in report})
    os.remove(source)
    shutil.rmtree(out, ignore_errors=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--leat", default="build/tools/leat")
    p.add_argument("--folder", required=True)
    p.add_argument("--docs", type=int, default=300000)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--kills", type=int, default=20, help="in each phase")
    p.add_argument("--memory", nargs="+", default=["256M", "8G"])
    p.add_argument("part", choices=["memory", "kill", "disk", "hostile"])
    args = p.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    source = os.path.join(args.folder, f"docs-{args.docs}.jsonl")
    if args.part != "hostile":
        make(source, args.docs)
    {"memory": memory, "kill": kill, "disk": disk, "hostile": hostile}[args.part](args, source)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
