#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""leat filter and leat dedup on a Ray cluster of three nodes on one machine, beside the same run in one process.

    text_ray.py FOLDER make DOCS.jsonl [--bytes 1e9]   # inputs: copies of the documents, some edited, in six files
    text_ray.py FOLDER same [KIND...]                  # digests, CPU and wall seconds
    text_ray.py FOLDER kill [KIND...] [--seed 1]       # two actors' processes, an actor and a node are killed
    text_ray.py FOLDER alone                           # all nodes are killed: the run ends with one message
    text_ray.py FOLDER client [KIND...]                # through a ray:// address

KIND is filter, exact or fuzzy. Prints one JSON object per line; exit status 1 when something that must hold does not.
Needs ray and leat in this Python (`pip install leat[ray]`), and for `client` grpcio.
"""
import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from text_output import digest, failed, must, say

for name, value in (("agent_register_timeout_ms", 250000), ("raylet_start_wait_time_s", 250), ("worker_register_timeout_seconds", 200),
                    ("health_check_failure_threshold", 20), ("health_check_initial_delay_ms", 60000),
                    ("CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S", 300), ("worker_niceness", 0)):  # as the process beside
    os.environ.setdefault(f"RAY_{name}", str(value))
STORE = 80 << 20  # the least that Ray takes; texts do not go through it


def make(folder, docs, size):
    """Copies of the documents: as they are, with some words changed, and with enough changed that they are new."""
    os.makedirs(folder, exist_ok=True)
    with open(docs, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    files = [open(os.path.join(folder, f"part-{i}.jsonl"), "w", encoding="utf-8") for i in range(6)]
    done = count = 0
    while done < size:
        copy = count // len(rows)
        row = rows[count % len(rows)]
        text = row["text"]
        if copy % 3 == 1:
            text = text.replace(" the ", f" that{copy} ", 3)
        elif copy:
            text = text.replace("e", f"e{copy}")
        done += len(text.encode())
        files[count * 6 // (len(rows) * 8) % 6].write(json.dumps({"id": f"{copy}/{row['id']}", "text": text}, ensure_ascii=False) + "\n")
        count += 1
    for f in files:
        f.close()
    say(documents=count, text_bytes=done)


def run(args, kind, name, **where):
    import leat
    out = os.path.join(args.folder, "out-" + name)
    shutil.rmtree(out, ignore_errors=True)
    begin, cpu = time.monotonic(), time.process_time()
    options = dict(memory="512M", **where)
    inputs = sorted(os.path.join(args.folder, f) for f in os.listdir(args.folder) if f.startswith("part-"))
    if kind == "filter":
        report = leat.filter_text(inputs, out, profile="gopher@paper,c4@paper,fineweb@paper,nemo-english", **options)
    else:
        report = leat.dedup_text(inputs, out, kind=kind, **options)
    seconds = time.monotonic() - begin
    here = time.process_time() - cpu
    must(not os.path.exists(os.path.join(out, ".leat-work")), f"{kind} {name}: no work folder is left")
    result = digest(out, report=True)
    shutil.rmtree(out)
    return report, dict(run=name, kind=kind, digest=result, kept=report["kept"], documents=report["documents"],
                        cpu_seconds=round(report["cpu_seconds"], 2), driver_cpu_seconds=round(here, 2), wall_seconds=round(seconds, 1))


def start(nodes=3):
    import ray
    from ray.cluster_utils import Cluster
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": STORE})
    for _ in range(nodes):
        cluster.add_node(num_cpus=1, object_store_memory=STORE)
    ray.init(address=cluster.address, log_to_driver=False)
    return cluster


def raylets(cluster):
    return {node: info.process.pid for node in cluster.worker_nodes for info in node.all_processes.get("raylet", [])}


def engines(cluster):
    """Processes of engines, whose parents are the nodes of this cluster."""
    parents, found = set(raylets(cluster).values()), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as command, open(f"/proc/{pid}/stat") as stat:
                if command.read().startswith("ray::Engine") and int(stat.read().rsplit(")", 1)[1].split()[1]) in parents:
                    found.append(int(pid))
        except OSError:
            continue
    return found


def actors():
    """Handles of engines, of the runs of this process."""
    from leat import _ray
    if not hasattr(actors, "clusters"):
        actors.clusters, begin = [], _ray.Cluster.__init__

        def noted(self, *args):
            actors.clusters.append(self)
            begin(self, *args)

        _ray.Cluster.__init__ = noted
    return [engine for cluster in actors.clusters for engine in list(getattr(cluster, "engines", {}).values())]


def killer(cluster, seed, whole, stop, killed):
    """Kills a process of an actor, an actor through Ray, a node and a process, at random moments of the run."""
    import ray
    draw = random.Random(seed)
    for what in ("worker", "actor", "node", "worker"):
        if stop.wait(draw.uniform(0.05, whole / 3)):
            return
        while not (victims := engines(cluster)):
            if stop.wait(0.05):
                return
        if what == "actor":
            if handles := actors():
                ray.kill(draw.choice(handles))
                killed.append(what)
            continue
        if what == "worker":
            victim = draw.choice(victims)
        else:
            victim = draw.choice(sorted(set(raylets(cluster).values())))
        killed.append(what)
        os.kill(victim, signal.SIGKILL)


def same(args, kinds, kill):
    cluster = start()
    actors()
    try:
        for kind in kinds:
            for _ in range(args.repeat):
                _, here = run(args, kind, "one process", threads=1)
                say(**here)
                _, there = run(args, kind, "three nodes", on="ray", threads=1)
                say(**there)
                must(here["digest"] == there["digest"], f"{kind}: the digests are equal")
            for n in range(args.kills if kill else 0):
                stop, killed = threading.Event(), []
                thread = threading.Thread(target=killer, args=(cluster, args.seed * 100 + n, there["wall_seconds"], stop, killed))
                thread.start()
                try:
                    _, broken = run(args, kind, "killed", on="ray", threads=1)
                finally:
                    stop.set()
                    thread.join()
                say(**broken, killed=killed)
                must(here["digest"] == broken["digest"], f"{kind}: the digests are equal after {killed}")
                for node, pid in list(raylets(cluster).items()):
                    if not os.path.exists(f"/proc/{pid}") or "node" in killed and _gone(pid):
                        cluster.remove_node(node, allow_graceful=False)
                        cluster.add_node(num_cpus=1, object_store_memory=STORE)
    finally:
        finish(cluster)


def _gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def finish(cluster):
    import ray
    ray.shutdown()
    cluster.shutdown()


def alone(args):
    import leat
    cluster = start(1)
    begin, said = time.monotonic(), ""

    def kill():
        while not engines(cluster):
            time.sleep(0.1)
        for pid in raylets(cluster).values():
            os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        run(args, "fuzzy", "alone", on="ray", threads=1, task_bytes="1M")
    except leat.Error as error:
        said = str(error)
    thread.join()
    say(run="all nodes killed", message=said, wall_seconds=round(time.monotonic() - begin, 1))
    must("no node of the Ray cluster is left" in said, "the run says that no node is left")
    finish(cluster)


def client(args, kinds):
    ray = os.path.join(os.path.dirname(sys.executable), "ray")
    head = subprocess.Popen([ray, "start", "--head", "--block", "--port", "26379", "--ray-client-server-port", "26380", "--num-cpus", "2",
                             "--node-ip-address", "127.0.0.1", "--object-store-memory", str(STORE), "--include-dashboard", "false",
                             "--disable-usage-stats"], stdout=subprocess.DEVNULL)
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", 26380)) == 0:
                break
        assert head.poll() is None, "ray start failed"
        time.sleep(0.5)
    try:
        for kind in kinds:
            _, here = run(args, kind, "one process", threads=1)
            say(**here)
            _, there = run(args, kind, "client", on="ray://127.0.0.1:26380", threads=1)
            say(**there)
            must(here["digest"] == there["digest"], f"{kind}: the digests are equal through a client address")
    finally:
        head.terminate()
        head.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("what", choices=("make", "same", "kill", "alone", "client"))
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--bytes", type=float, default=1e9)
    parser.add_argument("--kills", type=int, default=2, help="runs with kills for each kind")
    parser.add_argument("--repeat", type=int, default=1, help="pairs of runs for each kind, alternating")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.folder = os.path.abspath(args.folder)
    kinds = args.rest or ["filter", "exact", "fuzzy"]
    if args.what == "make":
        make(args.folder, args.rest[0], args.bytes)
    elif args.what == "alone":
        alone(args)
    elif args.what == "client":
        client(args, kinds)
    else:
        same(args, kinds, args.what == "kill")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
