#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""leat check beside imagededup, imagehash, cleanvision and fastdup, on the same images, one thread each.

    python bench/vs_check.py --leat build-release/tools/leat --images imagenet-sample [--small cifar10/test] [--limit 400]

Install the others into a separate virtual environment: pip install imagededup imagehash cleanvision fastdup. What is
not installed is left out. Each contender runs in a separate process. CPU time is that of the work alone for Python
packages (imports and models are loaded before) and that of the whole command for leat. leat check
computes everything of docs/images.md; the others compute what the table names. Each is run --rounds times, and the fastest counts.
Also measures how much CPU time `leat pack --check` adds to `leat pack`. Prints tables in Markdown.
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

SUFFIXES = (".jpg", ".jpeg")


def images_of(folder):
    return sorted(p for p in pathlib.Path(folder).rglob("*") if p.suffix.lower() in SUFFIXES)


# ---- the others: each returns the work as a function ----

def imagehash_phash(folder):
    import imagehash
    from PIL import Image

    def work():
        for path in images_of(folder):
            with Image.open(path) as image:
                imagehash.phash(image)
    return work


def imagededup_hash(name):
    def prepare(folder):
        from imagededup import methods
        method = getattr(methods, name)(verbose=False)
        return lambda: method.encode_images(image_dir=folder, recursive=True, num_enc_workers=0)
    return prepare


def cleanvision_all(folder):
    from cleanvision import Imagelab
    lab = Imagelab(data_path=folder)
    return lambda: lab.find_issues(n_jobs=1, verbose=False)


def fastdup_run(folder):
    import fastdup
    work = tempfile.mkdtemp()
    return lambda: fastdup.run(folder, work_dir=work, num_threads=1, verbose=False)


OTHERS = {
    "imagehash, pHash": imagehash_phash,
    "imagededup, PHash": imagededup_hash("PHash"),
    "imagededup, DHash": imagededup_hash("DHash"),
    "cleanvision, all issues": cleanvision_all,
    "fastdup, features and pairs": fastdup_run,
}


def run_one(name, folder):
    """In a separate process: says the CPU seconds and the peak memory."""
    try:
        work = OTHERS[name](folder)
    except ImportError as e:
        print(json.dumps({"missing": str(e)}))
        return

    def spent():
        all_of_it = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(u.ru_utime + u.ru_stime for u in all_of_it), max(u.ru_maxrss for u in all_of_it)
    before, _ = spent()
    work()
    after, peak = spent()
    sys.stdout.write("\n" + json.dumps({"cpu": after - before, "peak": peak * 1024}) + "\n")


def run_command(command):
    """CPU seconds and peak memory of a command."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # 1: issues were found
        raise SystemExit(f"{command}: exit code {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def best_of(rounds, run):
    return min((run() for _ in range(rounds)), key=lambda r: r[0])


def row(name, count, cpu, peak):
    print(f"| {name} | {count / cpu:,.0f} | {peak / 1e6:,.0f} MB |", flush=True)


def others(folder, count, rounds):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    for name in OTHERS:
        found = []
        for _ in range(rounds):
            out = subprocess.run([sys.executable, __file__, "--one", name, "--images", str(folder)], capture_output=True,
                                 text=True, env=environment)
            try:
                found.append(json.loads(out.stdout.strip().splitlines()[-1]))
            except (IndexError, ValueError):
                found.append({"missing": (out.stderr.strip().splitlines() or ["no output"])[-1]})
        if "missing" in found[0]:
            print(f"{name}: {found[0]['missing']}", file=sys.stderr)
            continue
        best = min(found, key=lambda f: f["cpu"])
        row(name, count, best["cpu"], best["peak"])


def leat_rows(args, folder, count, small, work):
    ways = [("keep", ["--images", "keep"])] if small else [
        ("keep", ["--images", "keep"]), ("tiles small", ["--trust"]), ("tiles fast", ["--trust", "--tiles", "fast"])]
    check = [args.leat, "check", "-t", "1", "--force", "-o", f"{work}/check.leat"]
    row("leat check, folder", count, *best_of(args.rounds, lambda: run_command([*check, str(folder)])))
    for name, options in ways:
        pack = f"{work}/pack.leat"
        run_command([args.leat, "pack", str(folder), "-o", pack, "--force", *options])
        row(f"leat check, pack: {name}", count, *best_of(args.rounds, lambda: run_command([*check, pack])))


def pack_rows(args, folder, count, work):
    print("\n| leat pack -t 1 | us of CPU per image | with --check | more |\n|---|---|---|---|")
    for name, options in (("tiled", []), ("tiled --tiles fast", ["--tiles", "fast"]), ("tiled --trust", ["--trust"]),
                          ("--images keep", ["--images", "keep"])):
        command = [args.leat, "pack", str(folder), "-o", f"{work}/pack.leat", "-t", "1", "--force", *options]
        plain, checked = [], []
        for _ in range(args.rounds):
            plain.append(run_command(command)[0])
            checked.append(run_command([*command, "--check", f"{work}/check.leat"])[0])
        a, b = min(plain), min(checked)
        print(f"| {name} | {a / count * 1e6:,.0f} | {b / count * 1e6:,.0f} | {100 * (b / a - 1):.1f} % |", flush=True)


def table(args, folder, small):
    with tempfile.TemporaryDirectory() as work:
        chosen = pathlib.Path(work) / "images"
        paths = images_of(folder)[:args.limit]
        for i, path in enumerate(paths * (1 if small else args.repeat)):
            to = chosen / f"{i // 1000:03}" / f"{i:06}.jpg"
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(path.read_bytes())
        count = len(images_of(chosen))
        print(f"\n{count} images of {pathlib.Path(folder).name}, one thread:\n")
        print("| contender | images per CPU-second | peak memory |\n|---|---|---|")
        leat_rows(args, chosen, count, small, work)
        if not args.alone:
            others(chosen, count, args.rounds)
        if not small:
            pack_rows(args, chosen, count, work)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leat", default="leat")
    parser.add_argument("--images", required=True, help="a folder of photographs")
    parser.add_argument("--small", help="a folder of small images")
    parser.add_argument("--limit", type=int, default=400)
    parser.add_argument("--repeat", type=int, default=1, help="copies of each photograph")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--alone", action="store_true", help="leat only")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        run_one(args.one, args.images)
        return
    begin = time.time()
    table(args, args.images, False)
    if args.small:
        table(args, args.small, True)
    print(f"\n{time.time() - begin:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
