# SPDX-License-Identifier: Apache-2.0
"""Time, memory and coverage of `leat select` by diversity, beside random rows and scikit-learn's k-means.

    python bench/select_scale.py --leat build-release/tools/leat --rows 1000000 --count 10000 [--dim 128] [--kind clusters|even]
                                 [--kmeans] [--work FOLDER] [--semantic] [--images COLUMNS.leat…] [--kills 3]

Vectors are drawn from a fixed seed: `clusters` is a mixture of 2,000 groups of different spread and size, `even` has no
structure, the worst case of lazy evaluation. Coverage is the distance of 100,000 other rows to the nearest chosen one.
--kmeans needs scikit-learn: one pass of MiniBatchKMeans, then the row nearest to each centre. --semantic runs `leat dedup
semantic` as well, --images `leat dedup images` on columns (images_scale.c writes them). --kills N starts each command again, kills it at N random moments, and compares the results. CPU
seconds count on a busy machine. Reports tables in Markdown.
"""
import argparse
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import tempfile
import time

import leat
import numpy as np


def vectors(rows, dim, kind, seed=7):
    """float16, a chunk at a time."""
    draw = np.random.default_rng(seed)
    groups = 2000
    centre = draw.normal(size=(groups, dim)).astype(np.float32)
    spread = draw.uniform(0.1, 0.6, groups).astype(np.float32)
    size = draw.pareto(1.5, groups) + 0.05
    for at in range(0, rows, 50000):
        n = min(50000, rows - at)
        noise = draw.normal(size=(n, dim)).astype(np.float32)
        if kind == "clusters":
            of = draw.choice(groups, n, p=size / size.sum())
            noise = centre[of] + spread[of, None] * noise
        yield (noise / np.linalg.norm(noise, axis=1, keepdims=True)).astype(np.float16)


def write(path, rows, dim, kind):
    row = 0
    with leat.Writer(path, {"vector": ("float16", (dim,)), "label": int}, sync=False, replace=True) as w:
        for chunk in vectors(rows, dim, kind):
            for vector in chunk:
                w.append((vector, row % 10), key=f"{row:08d}")
                row += 1


def run(*words, kill_after=None):
    """What the command says with --json, its time and peak memory; None when it was killed."""
    begin = time.monotonic()
    process = subprocess.Popen([*map(str, words), "--json"], stdout=subprocess.PIPE, text=True)
    if kill_after is not None:
        try:
            process.wait(kill_after)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
    out = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0) if process.returncode is None else (0, process.returncode, None)
    process.returncode = 0
    if status:
        assert kill_after is not None, f"{words}: status {status}"
        return None
    said = json.loads(out)
    peak = used.ru_maxrss * 1024 if used else 0
    return {**said, "wall": time.monotonic() - begin, "peak": peak}


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def killed(words, output, whole, kills, draw):
    """Kills the command at random moments, starts it again without --force, and compares."""
    want, seconds = digest(output), whole["wall"]
    os.unlink(output)
    count = 0
    for _ in range(kills):
        if run(*words, kill_after=draw.uniform(0.05, 0.6) * seconds) is None:
            count += 1
        else:
            os.unlink(output)
    begin = time.process_time()
    last = run(*words)
    left = [name for name in os.listdir(os.path.dirname(output)) if name.startswith(os.path.basename(output) + ".")]
    same = digest(output) == want
    print(f"| killed {count} times, then run to its end: {'same bytes' if same else 'OTHER BYTES'}, files left over: {left or 'none'}, "
          f"last run {last['cpu_seconds']:.0f} CPU-s of {whole['cpu_seconds']:.0f} | | | | |", flush=True)
    return begin


def coverage(path, chosen, rows):
    """Mean and largest distance of sampled rows to the nearest chosen one."""
    data = leat.open(path)
    take = np.random.default_rng(1).choice(rows, min(rows, 100000), replace=False)
    near = np.stack([data[int(i)]["vector"] for i in take]).astype(np.float32)
    to = np.stack([data[int(i)]["vector"] for i in chosen]).astype(np.float32)
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    to /= np.linalg.norm(to, axis=1, keepdims=True)
    best = np.concatenate([(near[i:i + 2000] @ to.T).max(1) for i in range(0, len(near), 2000)])
    distance = np.sqrt(np.maximum(2 - 2 * best, 0))
    return distance.mean(), distance.max()


def kmeans(path, rows, count):
    from sklearn.cluster import MiniBatchKMeans
    data = leat.open(path)
    all_rows = np.stack([data[i]["vector"] for i in range(rows)]).astype(np.float32)
    begin, cpu = time.monotonic(), time.process_time()
    made = MiniBatchKMeans(count, max_iter=1, batch_size=max(4096, count), n_init=1, init="random", random_state=0,
                           compute_labels=False).fit(all_rows)
    centre = made.cluster_centers_.astype(np.float32)
    centre /= np.linalg.norm(centre, axis=1, keepdims=True) + 1e-9
    best, near = np.full(count, -2, np.float32), np.zeros(count, np.int64)
    for at in range(0, rows, 20000):
        found = centre @ all_rows[at:at + 20000].T
        where = found.argmax(1)
        value = found[np.arange(count), where]
        near[value > best] = at + where[value > best]
        best = np.maximum(best, value)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return np.unique(near), time.monotonic() - begin, time.process_time() - cpu, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leat", required=True)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--kind", choices=("clusters", "even"), default="clusters")
    parser.add_argument("--kmeans", action="store_true")
    parser.add_argument("--semantic", action="store_true")
    parser.add_argument("--images", nargs="+", default=[])
    parser.add_argument("--no-select", action="store_true")
    parser.add_argument("--no-coverage", action="store_true")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--work")
    a = parser.parse_args()
    work = a.work or tempfile.mkdtemp(prefix="leat-select-")
    os.makedirs(work, exist_ok=True)
    path = os.path.join(work, f"v-{a.kind}-{a.rows}-{a.dim}.leat")
    if not os.path.exists(path) and (a.semantic or not a.no_select):
        write(path, a.rows, a.dim, a.kind)
    draw = random.Random(3)
    print(f"{a.rows:,} rows of {a.dim} numbers ({a.kind})\n\n| run | wall s, CPU s | peak memory, planned (MB) | mean distance | largest |"
          "\n|---|---|---|---|---|", flush=True)
    commands = []
    if not a.no_select:
        out = os.path.join(work, f"select-{a.kind}-{a.rows}.leat")
        commands.append((f"diversity, {a.count:,} chosen", out, [a.leat, "select", path, "-e", path, "-s", "diversity", "-n", a.count,
                                                                "-o", out]))
    if a.semantic:
        out = os.path.join(work, f"semantic-{a.kind}-{a.rows}.leat")
        commands.append(("dedup semantic", out, [a.leat, "dedup", "semantic", path, "-o", out]))
    if a.images:
        out = os.path.join(work, "images.leat")
        commands.append(("dedup images", out, [a.leat, "dedup", "images", *a.images, "-o", out]))
    for name, out, words in commands:
        if os.path.exists(out):
            os.unlink(out)
        done = run(*words)
        mean, most = (coverage(path, np.flatnonzero(leat.open(out).column("selected")), a.rows)
                      if "select" in words and not a.no_coverage else (0, 0))
        more = f"{done['distances'] / a.rows / a.count:.1%} of all distances" if "distances" in done else f"{done['pairs']:,} pairs"
        print(f"| {name}: {more} | {done['wall']:.0f}, {done['cpu_seconds']:.0f} | {done['peak'] / 1e6:.0f}, "
              f"{done['plan_memory'] / 1e6:.0f} | {mean:.4f} | {most:.4f} |", flush=True)
        if a.kills:
            killed(words, out, done, a.kills, draw)
    if not a.no_select and not a.no_coverage:
        mean, most = coverage(path, np.random.default_rng(0).choice(a.rows, a.count, replace=False), a.rows)
        print(f"| random | | | {mean:.4f} | {most:.4f} |", flush=True)
    if a.kmeans:
        rows, wall, cpu, peak = kmeans(path, a.rows, a.count)
        mean, most = coverage(path, rows, a.rows)
        print(f"| scikit-learn MiniBatchKMeans, one pass, {len(rows):,} rows | {wall:.0f}, {cpu:.0f} | {peak / 1e6:.0f} | {mean:.4f} | "
              f"{most:.4f} |")


main()
