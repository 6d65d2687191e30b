#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""leat filter and leat dedup beside the Python tools that are installed, on the same documents.

    text_corpus.py corpus
    vs_text.py --leat build-release/tools/leat --docs 1500 corpus/mixed.jsonl
    vs_text.py --leat build-release/tools/leat --only leat --repeat 5 --masks avx512icl,avx2 corpus/mixed.jsonl corpus/prose.jsonl

Prints one JSON object per line, then a table for Markdown: MB (1e6 bytes) of text per CPU-second, and peak memory. leat reads whole files with one
thread, file to file; each peer runs in a separate process on the first --docs documents of the first file, which leat also reads for the
verdicts. Filters: datatrove's classes in sequence (its own tokenizer, and str.split() in its place) and NeMo Curator's classes, called
directly. Deduplication: gaoya, rensa, datasketch (text to index), text-dedup (the whole command). What is not installed is named
and left out. Only CPU time is measured: the machine may be busy, but CPU time grows then, too.
"""
import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

LEAT = {
    "filter": ("filter", "--profile", "gopher@paper"),
    "filter --score-only": ("filter", "--score-only"),
    "fuzzy, 5 words, 14 x 8": ("dedup", "fuzzy"),
    "fuzzy --chars 24, 20 x 13": ("dedup", "fuzzy", "--chars", "24", "--bands", "20", "--rows", "13"),
    "fuzzy --profile": ("dedup", "fuzzy", "--profile", "gopher@paper"),
    "exact": ("dedup", "exact"),
    "fuzzy --compatible datatrove": ("dedup", "fuzzy", "--compatible", "datatrove"),
    "fuzzy --compatible datasketch": ("dedup", "fuzzy", "--compatible", "datasketch"),
}
table = []


def say(**values):
    print(json.dumps(values), flush=True)


def used(of=resource.RUSAGE_CHILDREN):
    use = resource.getrusage(of)
    return use.ru_utime + use.ru_stime


def measured(command, env=None):
    """Output, CPU seconds, wall seconds and peak RSS (MB) of a command."""
    before, begin = used(), time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    peak = 0
    while process.poll() is None:  # ru_maxrss has the memory of this process, before exec
        try:
            with open(f"/proc/{process.pid}/status", encoding="ascii") as f:
                peak = max([peak] + [int(line.split()[1]) for line in f if line.startswith("VmHWM:")])
        except OSError:
            pass
        time.sleep(0.02)
    out, err = process.communicate()
    if process.returncode:
        raise RuntimeError((err.strip().splitlines() or ["failed"])[-1])
    return out, used() - before, time.monotonic() - begin, peak / 1e3


def leat(args, path, name, mask=None, threads=1, repeat=None):
    """The report, and medians of MB per CPU-second and per second of wall time."""
    kind = LEAT[name]
    place = 2 if kind[0] == "dedup" else 1
    rates, walls, peaks = [], [], []
    env = dict(os.environ, LEAT_CPU_MASK=mask) if mask else None
    for _ in range(repeat or args.repeat):
        box = tempfile.mkdtemp(dir=args.folder)
        out, cpu, wall, peak = measured([args.leat, *kind[:place], path, *kind[place:], "-o", box + "/out", "--threads", str(threads), "--json", "--quiet"], env)
        shutil.rmtree(box)
        report = json.loads(out)
        rates.append(report["text_bytes"] / 1e6 / cpu)
        walls.append(report["text_bytes"] / 1e6 / wall)
        peaks.append(peak)
    return report, statistics.median(rates), statistics.median(walls), max(peaks)


def leat_rows(args):
    for path in args.files:
        for name in [name for name in LEAT if not args.rows or name in args.rows]:
            for mask in args.masks or [None]:
                report, cpu, wall, peak = leat(args, path, name, mask)
                say(tool="leat", what=name, file=os.path.basename(path), mask=mask, text_mb=round(report["text_bytes"] / 1e6, 1), documents=report["documents"],
                    kept=report["kept"], mb_per_cpu_s=round(cpu, 1), mb_per_s=round(wall, 1), rss_mb=round(peak, 1))
                table.append((f"leat {name}, {os.path.basename(path).split('.')[0]}{', ' + mask if mask else ''}", cpu, peak))
            if args.threads:
                one, two = (leat(args, path, name, threads=n)[2] for n in (1, args.threads))
                say(tool="leat", what=name, file=os.path.basename(path), threads=args.threads, mb_per_s=round(two, 1), times_one_thread=round(two / one, 2))


# ---- peers: each runs in a separate process, `vs_text.py --peer NAME` ----


def split_for_datatrove():
    """str.split() as datatrove's tokenizer, ends of sentences by their marks."""
    import datatrove.pipeline.filters.c4_filters as c4
    import datatrove.pipeline.filters.fineweb_quality_filter as fw
    import datatrove.pipeline.filters.gopher_quality_filter as gq
    import datatrove.pipeline.filters.gopher_repetition_filter as gr
    for module in (gq, gr, fw):
        if hasattr(module, "split_into_words"):
            module.split_into_words = lambda text, *_: text.split()
    c4.split_into_sentences = lambda text, *_: [None] * max(1, sum(
        text[i] in ".?!" and (text[i + 2:i + 3] if text[i + 1:i + 2] in ('"', "'", ")", "]") else text[i + 1:i + 2]).strip() == ""
        for i in range(len(text))))


def peer_datatrove(docs, tokenizer="its own", profile=None):
    from datatrove.data import Document
    from datatrove.pipeline.filters import C4QualityFilter, FineWebQualityFilter, GopherQualityFilter, GopherRepetitionFilter
    if tokenizer == "str.split":
        split_for_datatrove()
    chains = {"gopher@datatrove": (GopherQualityFilter, GopherRepetitionFilter), "c4@datatrove": (C4QualityFilter,),
              "fineweb@datatrove": (FineWebQualityFilter,)}
    chain = [kind() for name, kinds in chains.items() if profile in (None, name) for kind in kinds]

    def run():
        dropped = []
        for d in docs:
            # every filter sees every document, as leat computes all scores of all rules
            answers = [f.filter(Document(text=d["text"], id=str(d["id"]))) for f in chain]
            if not all(a is True or (isinstance(a, tuple) and a[0]) for a in answers):
                dropped.append(d["id"])
        return dropped
    return run


def peer_datatrove_split(docs):
    return peer_datatrove(docs, "str.split")


def nemo_classes():
    """NeMo's heuristic filter classes without the package around them, which imports much more than they need."""
    import importlib
    import importlib.util
    import types
    root = list(importlib.util.find_spec("nemo_curator").submodule_search_locations)[0]
    for part in ("", ".stages", ".stages.text", ".stages.text.filters", ".stages.text.filters.heuristic", ".stages.text.filters.heuristic.repetition",
                 ".stages.text.utils"):
        module = types.ModuleType("nemo_curator" + part)
        module.__path__ = [os.path.join(root, *part.split(".")[1:])]
        sys.modules["nemo_curator" + part] = module
    base = "nemo_curator.stages.text.filters.heuristic."
    modules = [importlib.import_module(base + name) for name in ("string", "repetition.repetition")]
    return {name: value for module in modules for name, value in vars(module).items()}


def peer_nemo(docs):
    c = nemo_classes()
    chain = [c[name]() for name in (
        "NonAlphaNumericFilter", "SymbolsToWordsFilter", "NumbersFilter", "UrlsFilter", "BulletsFilter", "WhiteSpaceFilter", "ParenthesesFilter",
        "LongWordFilter", "WordCountFilter", "BoilerPlateStringFilter", "MeanWordLengthFilter", "PunctuationFilter", "EllipsisFilter",
        "CommonEnglishWordsFilter", "WordsWithoutAlphabetsFilter", "RepeatedLinesFilter", "RepeatedParagraphsFilter", "RepeatedLinesByCharFilter",
        "RepeatedParagraphsByCharFilter")]
    chain += [c["RepeatingTopNGramsFilter"](n=n, max_repeating_ngram_ratio=t) for n, t in ((2, .2), (3, .18), (4, .16))]
    chain += [c["RepeatingDuplicateNGramsFilter"](n=n, max_repeating_duplicate_ngram_ratio=(20 - n) / 100) for n in range(5, 11)]
    return lambda: [d["id"] for d in docs if not all([f.keep_document(f.score_document(d["text"])) for f in chain])]


def shingles(text):
    words = text.lower().split()
    return {" ".join(words[i:i + 5]) for i in range(max(1, len(words) - 4))}


def peer_rensa(docs):
    from rensa import RMinHash, RMinHashLSH

    def run():
        index = RMinHashLSH(threshold=0.7, num_perm=112, num_bands=14)
        for i, d in enumerate(docs):
            m = RMinHash(num_perm=112, seed=42)
            m.update(list(shingles(d["text"])))
            index.insert(i, m)
    return run


def peer_gaoya(docs):
    from gaoya.minhash import MinHashStringIndex

    def run():
        index = MinHashStringIndex(hash_size=32, jaccard_threshold=.7, num_bands=14, band_size=8, num_hashes=112,
                                   analyzer="word", ngram_range=(5, 5), lowercase=True)
        for i, d in enumerate(docs):
            index.insert_document(i, d["text"])
    return run


def peer_datasketch(docs):
    from datasketch import MinHash, MinHashLSH

    def run():
        index = MinHashLSH(params=(14, 8), num_perm=112)
        for i, d in enumerate(docs):
            m = MinHash(num_perm=112)
            m.update_batch([s.encode() for s in shingles(d["text"])])
            index.insert(str(i), m)
    return run


PEERS = {"datatrove filters": peer_datatrove, "datatrove filters, str.split": peer_datatrove_split, "NeMo Curator filters": peer_nemo,
         "gaoya, text to index": peer_gaoya, "rensa, text to index": peer_rensa, "datasketch, text to index": peer_datasketch}


def load(path, n):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for _, line in zip(range(n), f)]


def one_peer(name, path):
    """In a separate process: the time of the work without imports, and the peak memory of all."""
    docs = load(path, sys.maxsize)
    run = PEERS[name](docs)
    begin = used(resource.RUSAGE_SELF)
    dropped = run()
    say(cpu=used(resource.RUSAGE_SELF) - begin, dropped=dropped)


def version(package):
    from importlib.metadata import version as installed
    return installed(package)


def peers(args, sample, size):
    packages = {"datatrove": "datatrove", "NeMo": "nemo-curator", "gaoya": "gaoya", "rensa": "rensa", "datasketch": "datasketch"}
    for name in PEERS:
        try:
            out, _, _, peak = measured([sys.executable, __file__, "--peer", name, sample])
            label = f"{name} ({version(packages[name.split(',')[0].split()[0]])})"
        except (RuntimeError, ImportError) as error:
            say(tool=name, absent=str(error))
            continue
        answer = json.loads(out.splitlines()[-1])
        rate = size / answer["cpu"]
        say(tool=label, documents=args.docs, cpu_s=round(answer["cpu"], 2), mb_per_cpu_s=round(rate, 3), rss_mb=round(peak, 1),
            dropped=None if answer["dropped"] is None else len(answer["dropped"]))
        table.append((label, rate, peak))
    text_dedup(args, sample, size)


def text_dedup(args, sample, size):
    """The whole command: reading, signatures, clusters, writing, with its start."""
    try:
        __import__("datasets")
        label = f"text-dedup minhash, the whole command ({version('text-dedup')})"
    except ImportError as error:
        return say(tool="text-dedup", absent=str(error))
    with tempfile.TemporaryDirectory(dir=args.folder) as box:
        env = dict(os.environ, HF_DATASETS_CACHE=box + "/cache", HF_HUB_OFFLINE="1")
        try:
            _, cpu, _, peak = measured([sys.executable, "-m", "text_dedup.minhash", "--path", "json", "--data_files", sample, "--split", "train",
                                        "--cache_dir", box + "/cache", "--output", box + "/out", "--column", "text", "--num_proc", "1", "--num_perm", "112",
                                        "--b", "14", "--r", "8", "--ngram", "5", "--batch_size", "1000"], env)
        except RuntimeError as error:
            return say(tool=label, absent=str(error))
    say(tool=label, documents=args.docs, cpu_s=round(cpu, 2), mb_per_cpu_s=round(size / cpu, 3), rss_mb=round(peak, 1))
    table.append((label, size / cpu, peak))


def verdicts(args, sample, docs):
    """Documents on which leat's profile and datatrove's classes agree, with the same words on both sides."""
    try:
        from datatrove.pipeline.filters import GopherQualityFilter  # noqa: F401
    except ImportError as error:
        return say(profile="datatrove", absent=str(error))
    for profile in ("gopher@datatrove", "c4@datatrove", "fineweb@datatrove"):
        with tempfile.TemporaryDirectory(dir=args.folder) as box:
            subprocess.run([args.leat, "filter", sample, "-o", box + "/out", "--profile", profile, "--quiet"], check=True, stdout=subprocess.DEVNULL)
            with open(box + "/out/reasons.jsonl", encoding="utf-8") as f:
                ours = {r["id"] for r in map(json.loads, f)}
        theirs = set(peer_datatrove(docs, "str.split", profile)())
        say(profile=profile, documents=len(docs), leat_dropped=len(ours), datatrove_dropped=len(theirs), verdicts_equal=len(docs) - len(ours ^ theirs),
            examples=sorted(ours ^ theirs)[:3])
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--leat", default="build/tools/leat")
    parser.add_argument("--docs", type=int, default=1500, help="documents for the peers")
    parser.add_argument("--repeat", type=int, default=3, help="runs of leat, of which the median counts")
    parser.add_argument("--masks", type=lambda text: text.split(","), help="values of LEAT_CPU_MASK")
    parser.add_argument("--rows", type=lambda text: text.split(";"), help="only these rows of leat, with semicolons between")
    parser.add_argument("--threads", type=int, default=0, help="also compare the wall time of this many threads with one")
    parser.add_argument("--folder", help="folder for outputs (a file system in memory gives steadier figures)")
    parser.add_argument("--only", choices=("leat", "peers", "verdicts"))
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        return one_peer(args.peer, args.files[0])
    if args.only in (None, "leat"):
        leat_rows(args)
    if args.only in (None, "peers", "verdicts"):
        docs = load(args.files[0], args.docs)
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8", dir=args.folder) as f:
            f.writelines(json.dumps(d, ensure_ascii=False) + "\n" for d in docs)
            f.flush()
            if args.only != "verdicts":
                peers(args, f.name, sum(len(d["text"].encode()) for d in docs) / 1e6)
            if args.only != "peers":
                verdicts(args, f.name, docs)
    if table:
        print("\n| | MB per CPU-second | peak RSS, MB |\n|---|---|---|")
        for name, rate, peak in table:
            print(f"| {name} | {rate:.0f} | {peak:.0f} |" if rate >= 10 else f"| {name} | {rate:.2f} | {peak:.0f} |")
    return None


if __name__ == "__main__":
    main()
