#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which edited copies fuzzy deduplication finds: recall by Jaccard similarity, and precision.

    text_accuracy.py [--leat build/tools/leat] [--pairs 3600] [--threshold 0.7] [--bands 14] [--rows 8] [FILES...]

Every pair is a document and a copy of it with seeded edits: words inserted, deleted, replaced, sentences
shuffled, truncated, or merged with another document. Edits are drawn until the similarity falls into the bin whose turn it is, so
that all bins have about as many pairs. Pairs share no text with each other. The truth is the exact Jaccard
similarity of their sets of 5-word shingles. FILES are texts, or JSONL with a key "text". Tools that are not installed are left out.
All get the same words, bands and rows. A candidate counts when its estimated similarity reaches the threshold, except for datatrove, which
takes every pair that shares a band.
"""
import argparse
import glob
import json
import os
import random
import re
import subprocess
import tempfile
import time

BINS = (0, 0.3, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1.01)


def words_of(text):
    """Words as leat's own sketches see them; ASCII is enough here."""
    return re.findall("[a-z0-9]+", text.lower())


def shingles(text, n=5):
    w = words_of(text)
    return {" ".join(w[i:i + n]) for i in range(max(1, len(w) - n + 1))} if w else set()


def jaccard(a, b):
    return len(a & b) / len(a | b) if a | b else 0.0


def edited(rng, text, other):
    """A copy with one kind of edit, of a strength that spreads similarities over all bins."""
    w = text.split()
    kind = rng.choice(["insert", "delete", "replace", "shuffle", "truncate", "merge"])
    share = rng.random() ** 1.5 * 0.8
    if kind in ("insert", "delete", "replace"):
        out = []
        for word in w:
            hit = rng.random() < share / 6
            if not hit or kind == "insert":
                out.append(word)
            if hit and kind != "delete":
                out.append(f"new{rng.randrange(10**6)}")
        return kind, " ".join(out)
    if kind == "shuffle":
        size = rng.choice([8, 15, 30, 60])
        parts = [w[i:i + size] for i in range(0, len(w), size)]
        rng.shuffle(parts)
        return kind, " ".join(word for part in parts for word in part)
    if kind == "truncate":
        return kind, " ".join(w[:max(20, int(len(w) * (1 - share)))])
    return kind, text + " " + " ".join(other.split()[:int(len(w) * share) + 1])


def copies(rng, texts, half):
    """Copies of the first texts; their similarities are spread over the bins."""
    kinds, pairs, truth = [], [], []
    for i in range(half):
        base, low, high = shingles(texts[i]), BINS[i % (len(BINS) - 1)], BINS[i % (len(BINS) - 1) + 1]
        for _ in range(24):
            kind, copy = edited(rng, texts[i], texts[half + i % (len(texts) - half)])
            similarity = jaccard(base, shingles(copy))
            if low <= similarity < high:
                break
        kinds.append(kind)
        pairs.append((texts[i], copy))
        truth.append(similarity)
    return kinds, pairs, truth


def texts_of(path):
    """Lists of words; of JSONL, one for each document."""
    try:
        with open(path, encoding="utf-8") as f:
            if path.endswith(".jsonl"):
                for line in f:
                    yield json.loads(line)["text"].split()
            else:
                yield f.read(400000).split()
    except (OSError, UnicodeDecodeError):
        return


def originals(files, count):
    """Pieces of text of 120 to 400 words that share no shingle with an earlier one."""
    rng = random.Random(1)
    seen, found = set(), []
    for w in (w for path in files for w in texts_of(path)):
        at = 0
        while at + 120 <= len(w) and len(found) < count * 10 / 9:
            n = rng.randint(120, 400)
            text = " ".join(w[at:at + n])
            at += n
            s = shingles(text) if text.isascii() else ()
            if len(s) > 100 and not s & seen:
                seen |= s
                found.append(text)
        if len(found) >= count * 10 / 9:
            break
    return found


def leat_finds(tool, pairs, args, extra=()):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "in.jsonl")
        with open(path, "w", encoding="utf-8") as f:
            for i, (a, b) in enumerate(pairs):
                f.write(json.dumps({"id": 2 * i, "text": a}) + "\n" + json.dumps({"id": 2 * i + 1, "text": b}) + "\n")
        subprocess.run([tool, "dedup", "fuzzy", path, "-o", folder + "/out", "--threshold", str(args.threshold), "--bands", str(args.bands),
                        "--rows", str(args.rows), "-t", "1", *extra], check=True, stdout=subprocess.DEVNULL)
        with open(folder + "/out/clusters.jsonl", encoding="utf-8") as lines:
            entries = [json.loads(line) for line in lines]
    assert all(entry["id"] // 2 == entry["kept"] // 2 for entry in entries), "a copy was removed for a stranger"
    return {entry["id"] // 2 for entry in entries}


def datasketch_finds(pairs, args):
    from datasketch import MinHash, MinHashLSH
    n = args.bands * args.rows
    lsh = MinHashLSH(num_perm=n, params=(args.bands, args.rows))
    base, found = MinHash(num_perm=n), set()
    for i, (a, b) in enumerate(pairs):
        ma, mb = base.copy(), base.copy()
        ma.update_batch([s.encode() for s in shingles(a)])
        mb.update_batch([s.encode() for s in shingles(b)])
        lsh.insert(i, ma)
        if i in lsh.query(mb) and ma.jaccard(mb) >= args.threshold:
            found.add(i)
    return found


def rensa_finds(pairs, args):
    from rensa import RMinHash, RMinHashLSH
    n = args.bands * args.rows
    lsh = RMinHashLSH(threshold=args.threshold, num_perm=n, num_bands=args.bands)
    found = set()
    for i, (a, b) in enumerate(pairs):
        ma, mb = RMinHash(num_perm=n, seed=42), RMinHash(num_perm=n, seed=42)
        ma.update(sorted(shingles(a)))
        mb.update(sorted(shingles(b)))
        lsh.insert(i, ma)
        if i in lsh.query(mb) and ma.jaccard(mb) >= args.threshold:
            found.add(i)
    return found


def gaoya_finds(pairs, args):
    from gaoya.minhash import MinHashStringIndex
    index = MinHashStringIndex(hash_size=32, jaccard_threshold=args.threshold, num_bands=args.bands, band_size=args.rows,
                               num_hashes=args.bands * args.rows, analyzer="word", ngram_range=(5, 5), lowercase=True)
    found = set()
    for i, (a, b) in enumerate(pairs):
        index.insert_document(i, " ".join(words_of(a)))
        if i in index.query(" ".join(words_of(b))):
            found.add(i)
    return found


def datatrove_finds(pairs, args):
    from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupSignature
    step = MinhashDedupSignature("/tmp", config=MinhashConfig(n_grams=5, num_buckets=args.bands, hashes_per_bucket=args.rows))

    def bands(text):
        return [tuple(band) for band in step.get_signature(step.get_shingles(" ".join(words_of(text))))]

    return {i for i, (a, b) in enumerate(pairs) if any(x == y for x, y in zip(bands(a), bands(b)))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--leat", default="build/tools/leat")
    parser.add_argument("--pairs", type=int, default=3600)
    parser.add_argument("--threshold", type=float, default=0.7)
    parser.add_argument("--bands", type=int, default=14)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    files = args.files or sorted(glob.glob("/usr/lib/python3*/**/*.py", recursive=True) + glob.glob("/usr/share/doc/*/*"))
    texts = originals(files, args.pairs)
    rng = random.Random(2)
    half = len(texts) * 9 // 10  # the others are merged into copies
    kinds, pairs, truth = copies(rng, texts, half)
    print(f"{half} pairs, threshold {args.threshold}, {args.bands} x {args.rows}")
    found = {}
    for name, tool in (("leat", lambda: leat_finds(args.leat, pairs, args)),
                       ("leat --compatible datasketch", lambda: leat_finds(args.leat, pairs, args, ("--compatible", "datasketch"))),
                       ("datasketch", lambda: datasketch_finds(pairs, args)), ("rensa", lambda: rensa_finds(pairs, args)),
                       ("gaoya", lambda: gaoya_finds(pairs, args)), ("datatrove", lambda: datatrove_finds(pairs, args))):
        start = time.process_time()
        try:
            found[name] = tool()
        except ImportError as error:
            print(f"{name}: left out: {error}")
            continue
        print(f"{name}: {len(found[name])} found, {time.process_time() - start:.1f} s of this process's CPU")
    print("\n| Jaccard | pairs | " + " | ".join(found) + " |\n|---|---|" + "---|" * len(found))
    for low, high in zip(BINS, BINS[1:]):
        inside = [i for i, t in enumerate(truth) if low <= t < high]
        cells = [f"{sum(i in hits for i in inside) / len(inside):.3f}" if inside else "" for hits in found.values()]
        print(f"| {low} to {min(high, 1)} | {len(inside)} | " + " | ".join(cells) + " |")
    print("| precision | | " + " | ".join(f"{sum(truth[i] >= args.threshold for i in hits) / max(1, len(hits)):.3f}" for hits in found.values()) + " |")
    for kind in sorted(set(kinds)):
        inside = [i for i, t in enumerate(truth) if kinds[i] == kind and t >= 0.8]
        cells = [f"{sum(i in hits for i in inside) / len(inside):.3f}" if inside else "" for hits in found.values()]
        print(f"| {kind}, 0.8 and more | {len(inside)} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
