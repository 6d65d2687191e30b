#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How similar removed documents are to the one that is kept for them: stars beside components, by exact Jaccard similarity.

    text_stars.py FILE.jsonl [--leat build/tools/leat] [--threshold 0.7]

Runs `leat dedup fuzzy` with both kinds of clusters. Similarities are those of the sets of 5-word shingles, words as leat's sketches
see them. With stars, the similarity that leat estimates must reach the threshold for every removed document: exit status 1 if not.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import unicodedata


def separators():
    """Characters between words: all but letters, marks and numbers; capital ASCII letters become small ones."""
    def between(code):
        kind = unicodedata.category(chr(code))
        return kind[0] in "PSZC" and kind not in ("Cn", "Co")

    table = {code: " " for code in range(0x110000) if between(code)}
    table.update({code: chr(code + 32) for code in range(65, 91)})
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--leat", default="build/tools/leat")
    parser.add_argument("--threshold", type=float, default=0.7)
    args = parser.parse_args()
    table, sets = separators(), {}
    with open(args.file, encoding="utf-8") as lines:
        texts = {row["id"]: row["text"] for row in map(json.loads, lines)}

    def shingles(name):
        if name not in sets:
            words = texts[name].translate(table).split()
            sets[name] = {hash(tuple(words[i:i + 5])) for i in range(max(1, len(words) - 4))}
        return sets[name]

    wrong = False
    print("| clusters | removed | estimated below the threshold | reported so | exact: below 0.7 | below 0.6 | below 0.5 | below 0.3 | smallest |")
    print("|---|---|---|---|---|---|---|---|---|")
    for kind in ("star", "components"):
        with tempfile.TemporaryDirectory() as box:
            subprocess.run([args.leat, "dedup", "fuzzy", args.file, "-o", box, "--clusters", kind, "--threshold", str(args.threshold), "--quiet"],
                           check=True, stdout=subprocess.DEVNULL)
            with open(os.path.join(box, "clusters.jsonl"), encoding="utf-8") as lines:
                entries = [json.loads(line) for line in lines]
            with open(os.path.join(box, "report.json"), encoding="utf-8") as f:
                report = json.load(f)
        kept, removed = {e["kept"] for e in entries}, {e["id"] for e in entries}
        assert not kept & removed and len(removed) == len(entries) == report["removed"], "a kept document is removed, or one twice"
        exact = []
        for e in entries:
            a, b = shingles(e["id"]), shingles(e["kept"])
            exact.append(len(a & b) / len(a | b))
        below = sum(e["similarity"] < args.threshold for e in entries)
        wrong |= kind == "star" and below > 0 or below != report["below_threshold"]
        counts = " | ".join(str(sum(x < limit for x in exact)) for limit in (0.7, 0.6, 0.5, 0.3))
        print(f"| {kind} | {len(entries)} | {below} | {report['below_threshold']} | {counts} | {min(exact):.3f} |", flush=True)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
