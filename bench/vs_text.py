#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""leat filter and leat dedup beside the Python tools that are installed, on the same documents.

    vs_text.py --leat build/tools/leat --docs 2000 FILE.jsonl

Filters: verdicts of leat's profile and of datatrove's filter classes, per document, with datatrove's
tokenizer and with str.split() in its place; MB of text per CPU-second of each (leat's on the whole file). Deduplication: datatrove's
MinHash arithmetic, rensa, gaoya and datasketch where they are installed. Prints one JSON object per line.
What is not installed is named and left out. Only CPU time is measured: the machine may be busy.
"""
import argparse
import json
import os
import subprocess
import tempfile
import time


def cpu():
    return time.process_time()


def leat(args, *command):
    """The report of a command and its CPU seconds, start included."""
    before = os.times()
    out = subprocess.run([args.leat, *command, "--json", "--quiet"], check=True, capture_output=True, text=True)
    after = os.times()
    return json.loads(out.stdout), after.children_user + after.children_system - before.children_user - before.children_system


def load(path, n):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for _, line in zip(range(n), f)]


def say(**values):
    print(json.dumps(values), flush=True)


def dropped(folder):
    with open(os.path.join(folder, "reasons.jsonl"), encoding="utf-8") as f:
        return {r["id"]: r["rule"] for r in map(json.loads, f)}


def datatrove_verdicts(filters, docs):
    from datatrove.data import Document
    out, begin = {}, cpu()
    for d in docs:
        for f in filters:
            answer = f.filter(Document(text=d["text"], id=str(d["id"])))
            if answer is not True and not (isinstance(answer, tuple) and answer[0]):
                out[d["id"]] = answer[1] if isinstance(answer, tuple) else type(f).__name__
                break
    return out, cpu() - begin


def with_split(filters, work):
    """Runs `work` with str.split() as datatrove's tokenizer."""
    import datatrove.pipeline.filters.c4_filters as c4
    import datatrove.pipeline.filters.fineweb_quality_filter as fw
    import datatrove.pipeline.filters.gopher_quality_filter as gq
    import datatrove.pipeline.filters.gopher_repetition_filter as gr
    saved = [(m, m.split_into_words) for m in (gq, gr, fw) if hasattr(m, "split_into_words")]
    sentences = c4.split_into_sentences
    for m, _ in saved:
        m.split_into_words = lambda text, *_: text.split()
    c4.split_into_sentences = lambda text, *_: [None] * max(1, sum(
        text[i] in ".?!" and (text[i + 2:i + 3] if text[i + 1:i + 2] in ('"', "'", ")", "]") else text[i + 1:i + 2]).strip() == ""
        for i in range(len(text))))
    try:
        return work()
    finally:
        for m, f in saved:
            m.split_into_words = f
        c4.split_into_sentences = sentences


def filters(args, docs, size):
    try:
        from datatrove.pipeline.filters import (C4QualityFilter, FineWebQualityFilter, GopherQualityFilter,
                                                GopherRepetitionFilter)
    except ImportError as error:
        return say(peer="datatrove filters", absent=str(error))
    sets = {"gopher@datatrove": [GopherQualityFilter(), GopherRepetitionFilter()],
            "c4@datatrove": [C4QualityFilter()], "fineweb@datatrove": [FineWebQualityFilter()]}
    for profile, chain in sets.items():
        with tempfile.TemporaryDirectory() as box:
            leat(args, "filter", args.sample, "-o", box, "--profile", profile, "--threads", "1")
            ours = dropped(box)
            whole, ours_s = leat(args, "filter", args.file, "-o", box, "--profile", profile, "--threads", "1", "--force")
        for tokenizer in ("str.split", "its own"):
            try:
                run = lambda chain=chain: datatrove_verdicts(chain, docs)  # noqa: E731
                theirs, theirs_s = with_split(chain, run) if tokenizer == "str.split" else run()
            except ImportError as error:
                say(profile=profile, tokenizer=tokenizer, absent=str(error).splitlines()[0])
                continue
            differ = [d["id"] for d in docs if (d["id"] in ours) != (d["id"] in theirs)]
            say(profile=profile, tokenizer=tokenizer, documents=len(docs), leat_dropped=len(ours),
                datatrove_dropped=len(theirs), verdicts_equal=len(docs) - len(differ),
                examples=[(i, ours.get(i), theirs.get(i)) for i in differ[:3]],
                leat_mb_per_cpu_s=round(whole["text_bytes"] / 1e6 / ours_s, 1), datatrove_mb_per_cpu_s=round(size / theirs_s, 3))


def shingles(text):
    words = text.lower().split()
    return {" ".join(words[i:i + 5]) for i in range(max(1, len(words) - 4))}


def peer_rensa(docs):
    from rensa import RMinHash, RMinHashLSH
    index = RMinHashLSH(threshold=0.7, num_perm=112, num_bands=14)
    for i, d in enumerate(docs):
        m = RMinHash(num_perm=112, seed=42)
        m.update(list(shingles(d["text"])))
        index.insert(i, m)


def peer_gaoya(docs):
    from gaoya.minhash import MinHashStringIndex
    index = MinHashStringIndex(hash_size=32, jaccard_threshold=.7, num_bands=14, band_size=8, num_hashes=112,
                               analyzer="word", ngram_range=(5, 5), lowercase=True)
    for i, d in enumerate(docs):
        index.insert_document(i, d["text"])


def peer_datasketch(docs):
    from datasketch import MinHash, MinHashLSH
    index = MinHashLSH(params=(14, 8), num_perm=112)
    for i, d in enumerate(docs):
        m = MinHash(num_perm=112)
        m.update_batch([s.encode() for s in shingles(d["text"])])
        index.insert(str(i), m)


def dedup(args, docs, size):
    for family in (None, "datatrove", "datasketch", "datasketch-legacy"):
        with tempfile.TemporaryDirectory() as box:
            report, seconds = leat(args, "dedup", "fuzzy", args.file, "-o", box, "--threads", "1", "--force",
                                   *(("--compatible", family) if family else ()))
        say(tool="leat dedup fuzzy, JSONL to JSONL", signatures=family or "its own", documents=report["documents"], removed=report["removed"],
            mb_per_cpu_s=round(report["text_bytes"] / 1e6 / seconds, 1))
    for name, run in (("rensa", peer_rensa), ("gaoya", peer_gaoya), ("datasketch", peer_datasketch)):
        begin = cpu()
        try:
            run(docs)
        except ImportError as error:
            say(tool=name, absent=str(error))
            continue
        say(tool=f"{name}, text to index", documents=len(docs), mb_per_cpu_s=round(size / (cpu() - begin), 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--leat", default="build/tools/leat")
    parser.add_argument("--docs", type=int, default=2000)
    args = parser.parse_args()
    docs = load(args.file, args.docs)
    size = sum(len(d["text"].encode()) for d in docs) / 1e6
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as f:
        f.writelines(json.dumps(d, ensure_ascii=False) + "\n" for d in docs)
        f.flush()
        args.sample = f.name
        filters(args, docs, size)
        dedup(args, docs, size)


if __name__ == "__main__":
    main()
