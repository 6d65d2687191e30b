#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Labels and probabilities of `leat filter --lid` against a second implementation.

    check_lid.py LEAT [--fasttext] [--documents N]

Without --fasttext, models with random weights are written in fastText's format and predicted in
plain Python. With it (needs the package `fasttext`), models are trained by fastText, plain and
quantised, with every loss, and compared with its own predictions. Documents are made by a seeded
generator: several alphabets, hostile white space, labels and ends of lines as words.
"""
import argparse
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

BLANKS = " \n\r\t\v\f\0"
EOS = "</s>"
PREFIX = "__label__"
HS, NS, SOFTMAX, OVA = 1, 2, 3, 4
ALPHABETS = ["abcdefghijklmnop", "aeiourstlnmzq", "абвгдежзиклмно", "αβγδεζηθικλμ", "的一是不了人我在有他", "äöüßéèñçabde"]


def make_words(rng, alphabet):
    return ["".join(rng.choice(alphabet) for _ in range(rng.randint(1, 9))) for _ in range(120)]


def make_documents(n, seed=1):
    """(label, text) of n documents."""
    rng = random.Random(seed)
    words = [make_words(rng, a) for a in ALPHABETS]
    odd = [EOS, PREFIX + "l1", PREFIX, "<", ">", "😀", "a" * 300, "\u00ad", "0", "-1", "l1", "<a>"]
    documents = []
    for i in range(n):
        k = rng.randrange(len(words))
        parts = []
        for _ in range(rng.choice([0, 1, 2, 5, 20, 60])):
            source = words[k] if rng.random() < 0.7 else words[rng.randrange(len(words))]
            parts.append(rng.choice(odd) if rng.random() < 0.02 else rng.choice(source))
            parts.append(rng.choice(BLANKS) if rng.random() < 0.1 else " ")
            if rng.random() < 0.05:
                parts.append(rng.choice(BLANKS))
        documents.append((f"l{k}", "".join(parts)))
    return documents


# ---- plain Python ----

def fnv(data):
    h = 2166136261
    for byte in data:
        h = ((h ^ (byte if byte < 128 else byte | 0xffffff00)) * 16777619) & 0xffffffff
    return h


class Model:
    """Settings, dictionary and matrices (lists of rows), and fastText's prediction."""

    def __init__(self, loss, words, labels, counts, dim, bucket, minn, maxn, word_ngrams, pruned, rows, output):
        self.loss, self.words, self.labels, self.counts, self.dim = loss, words, labels, counts, dim
        self.bucket, self.minn, self.maxn, self.word_ngrams = bucket, minn, maxn, word_ngrams
        self.pruned, self.rows, self.output = pruned, rows, output
        self.ids = {w: i for i, w in enumerate(words)}
        self.label_ids = set(labels)

    def row_of(self, h):
        if self.pruned is None:
            return [len(self.words) + h]
        return [len(self.words) + self.pruned[h]] if h in self.pruned else []

    def characters(self, token):
        text = [c.encode() for c in "<" + token + ">"]
        rows = []
        for i in range(len(text)):
            for n in range(1, self.maxn + 1):
                if i + n > len(text):
                    break
                if n >= self.minn and not (n == 1 and (i == 0 or i + n == len(text))):
                    rows += self.row_of(fnv(b"".join(text[i:i + n])) % self.bucket)
        return rows

    def inputs(self, text):
        for blank in BLANKS:
            text = text.replace(blank, " ")
        tokens = [t for t in text.split(" ") if t] + [EOS]
        tokens = tokens[:tokens.index(EOS) + 1]
        rows, hashes = [], []
        for token in tokens:
            if token in self.label_ids or (token not in self.ids and token.startswith(PREFIX)):
                continue
            if token in self.ids:
                rows.append(self.ids[token])
            if token != EOS:
                rows += self.characters(token)
            h = fnv(token.encode())
            hashes.append(h - (1 << 32) if h >= 1 << 31 else h)
        for i in range(len(hashes)):
            h = hashes[i]
            for j in range(i + 1, min(len(hashes), i + self.word_ngrams)):
                h = (h * 116049371 + hashes[j]) & (1 << 64) - 1
                rows += self.row_of(h % self.bucket)
        return rows

    def tree(self):
        n = len(self.labels)
        count, nodes = list(self.counts), {}
        leaf, node = n - 1, n
        for i in range(n, 2 * n - 1):
            pair = []
            for _ in range(2):
                if leaf >= 0 and (node >= i or count[leaf] < count[node]):
                    pair.append(leaf)
                    leaf -= 1
                else:
                    pair.append(node)
                    node += 1
            nodes[i] = pair
            count.append(count[pair[0]] + count[pair[1]])
        return nodes

    def probabilities(self, hidden):
        def dot(row):
            return sum(a * b for a, b in zip(row, hidden))
        n = len(self.labels)
        if self.loss == HS:
            nodes, out = self.tree(), [0.0] * n
            todo = [(2 * n - 2, 0.0)]
            while todo:
                node, score = todo.pop()
                if node < n:
                    out[node] = math.exp(score)
                    continue
                f = 1 / (1 + math.exp(-dot(self.output[node - n])))
                todo += [(nodes[node][0], score + math.log(1 - f + 1e-5)), (nodes[node][1], score + math.log(f + 1e-5))]
            return out
        values = [dot(row) for row in self.output]
        if self.loss == SOFTMAX:
            e = [math.exp(v - max(values)) for v in values]
            return [x / sum(e) + 1e-5 for x in e]
        steps = [0 if v < -8 else 512 if v > 8 else int((v + 8) * 32) for v in values]
        return [0 + 1e-5 if v < -8 else 1.0 if v > 8 else 1 / (1 + math.exp(-(s / 32 - 8))) + 1e-5
                for v, s in zip(values, steps)]

    def predict(self, text):
        rows = self.inputs(text)
        if not rows:
            return None
        hidden = [sum(self.rows[r][k] for r in rows) / len(rows) for k in range(self.dim)]
        return self.probabilities(hidden)


def f32(values):
    return [struct.unpack("f", struct.pack("f", v))[0] for v in values]


def quantise(rng, n, dim, part, norms):
    """Random codes: the rows, and the bytes of the matrix."""
    parts = -(-dim // part)
    last = dim - (parts - 1) * part
    centroids = f32(rng.gauss(0, 1) for _ in range(256 * dim))
    codes = bytes(rng.randrange(256) for _ in range(n * parts))
    norm_centroids = f32(rng.uniform(0.5, 3) for _ in range(256))
    norm_codes = bytes(rng.randrange(256) for _ in range(n))
    rows = []
    for r in range(n):
        row = []
        for k in range(parts):
            width = last if k == parts - 1 else part
            at = k * 256 * part + codes[r * parts + k] * width
            row += centroids[at:at + width]
        rows.append([v * (norm_centroids[norm_codes[r]] if norms else 1) for v in row])
    data = struct.pack("<?qqi", norms, n, dim, len(codes)) + codes
    data += struct.pack("<iiii", dim, parts, part, last) + struct.pack(f"<{256 * dim}f", *centroids)
    if norms:
        data += norm_codes + struct.pack("<iiii", 1, 1, 1, 1) + struct.pack("<256f", *norm_centroids)
    return rows, data


def dense(rng, n, dim):
    rows = [f32(rng.gauss(0, 1) for _ in range(dim)) for _ in range(n)]
    return rows, struct.pack("<qq", n, dim) + b"".join(struct.pack(f"<{dim}f", *r) for r in rows)


def random_model(rng, loss, quantised, prune, qout, minn, maxn, word_ngrams):
    """A model with random weights, and its file."""
    vocabulary = sorted({w for a in ALPHABETS for w in make_words(rng, a)[:30]})
    words = [EOS] + [w for w in vocabulary if w != EOS]
    labels = [PREFIX + f"l{i}" for i in range(rng.randint(2, 9))]
    counts = sorted((rng.randint(1, 1000) for _ in labels), reverse=True)
    dim, bucket = rng.randint(3, 11), rng.randint(40, 90) if maxn or word_ngrams > 1 else 0
    kept = None
    if prune:
        hashes = rng.sample(range(bucket), bucket // 2) if bucket else []
        kept = {h: i for i, h in enumerate(hashes)}
    n = len(words) + (bucket if kept is None else len(kept))
    rows, data = quantise(rng, n, dim, 2, rng.random() < 0.5) if quantised else dense(rng, n, dim)
    head = struct.pack("<ii12id", 793712314, 12, dim, 5, 5, 1, 5, word_ngrams, loss, 3, bucket, minn, maxn, 100, 1e-4)
    head += struct.pack("<iiiqq", len(words) + len(labels), len(words), len(labels), 1000, -1 if kept is None else len(kept))
    for kind, entries in ((0, [(w, 1) for w in words]), (1, list(zip(labels, counts)))):
        for word, count in entries:
            head += word.encode() + b"\0" + struct.pack("<qb", count, kind)
    for h, i in (kept or {}).items():
        head += struct.pack("<ii", h, i)
    head += struct.pack("<?", quantised) + data
    if quantised and qout:
        output, data = quantise(rng, len(labels), dim, 2, True)
    else:
        output, data = dense(rng, len(labels), dim)
    head += struct.pack("<?", qout) + data
    return Model(loss, words, labels, counts, dim, bucket, minn, maxn, word_ngrams, kept, rows, output), head


# ---- comparison ----

def leat_predictions(leat, folder, model, documents):
    source, out = os.path.join(folder, "in.jsonl"), os.path.join(folder, "out")
    with open(source, "w", encoding="utf-8") as f:
        for i, (_, text) in enumerate(documents):
            f.write(json.dumps({"id": i, "text": text}) + "\n")
    subprocess.run([leat, "filter", source, "-o", out, "--lid", model, "--score-only", "--force", "--quiet", "--json"],
                   check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(out, "scores-00000.jsonl"), encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    assert len(rows) == len(documents)
    return [(row["lang"], row["lang_score"]) for row in rows]


def check_random(leat, folder, documents):
    rng = random.Random(7)
    models = wrong = 0
    worst = 0.0
    for loss in (HS, NS, SOFTMAX, OVA):
        for quantised, prune, qout in ((0, 0, 0), (1, 0, 0), (1, 1, 1), (1, 1, 0)):
            minn, maxn, word_ngrams = rng.choice([(0, 0, 1), (2, 4, 1), (1, 3, 2), (0, 0, 3), (3, 3, 1), (0, 2, 3)])
            model, data = random_model(rng, loss, bool(quantised), bool(prune), bool(qout), minn, maxn, word_ngrams)
            path = os.path.join(folder, "model.bin")
            with open(path, "wb") as f:
                f.write(data)
            models += 1
            for (_, text), (lang, score) in zip(documents, leat_predictions(leat, folder, path, documents)):
                p = model.predict(text)
                best = 0.0 if p is None else min(1.0, max(p))
                worst = max(worst, abs(best - score))
                mine = 0.0 if p is None or not lang else p[model.labels.index(PREFIX + lang)]
                # equal, or a tie: values of a table of sigmoids are often equal
                if abs(best - score) > (0.002 if loss in (NS, OVA) else 1e-4) or best - min(1.0, mine) > 0.002:
                    wrong += 1
                    print("differs:", loss, quantised, prune, (minn, maxn, word_ngrams), repr(text[:80]), best, lang, score)
    print(f"lid: {models} models with random weights, {len(documents)} documents each: {wrong} differ, "
          f"largest difference of probabilities {worst:.2g}")
    return wrong


def write_training(path, labels_per_language):
    with open(path, "w", encoding="utf-8") as f:
        for i, (label, text) in enumerate(make_documents(3000, seed=2)):
            for blank in BLANKS:
                text = text.replace(blank, " ")
            more = f"_{i % labels_per_language}" if labels_per_language > 1 else ""
            f.write(f"{PREFIX}{label}{more} {text.replace(EOS, '').replace(PREFIX, '')}\n")


def compare_fasttext(leat, folder, documents, train, options, quantised):
    """Trains a model; the number of predictions that differ, and the largest difference."""
    import fasttext
    # with fewer than 10 threads fastText 0.9.2 leaves part of its matrix uninitialised
    model = fasttext.train_supervised(train, bucket=2000, dim=10, epoch=2, lr=0.1, thread=10, verbose=0, **options)
    path = os.path.join(folder, "model.bin")
    if quantised is not None:
        model.quantize(train if quantised.get("retrain") else None, **quantised)
        path = os.path.join(folder, "model.ftz")
    model.save_model(path)
    model = fasttext.load_model(path)
    wrong, worst = 0, 0.0
    for (_, text), (lang, score) in zip(documents, leat_predictions(leat, folder, path, documents)):
        p = model.f.predict(text.replace("\n", " ") + "\n", 1, 0.0, "strict")
        want, probability = (p[0][1][len(PREFIX):], p[0][0]) if p else ("", 0.0)
        worst = max(worst, abs(probability - score))
        if want != lang or abs(probability - score) > 1e-4:
            wrong += 1
            if wrong < 4:
                print("differs:", repr(text[:60]), want, probability, lang, score)
    print(f"{options} quantised {quantised}: {wrong} of {len(documents)} differ", flush=True)
    return wrong, worst


def check_fasttext(leat, folder, documents):
    plain, many = os.path.join(folder, "train.txt"), os.path.join(folder, "many.txt")
    write_training(plain, 1)
    write_training(many, 60)
    runs = []
    for loss in ("softmax", "hs", "ova", "ns"):
        for minn, maxn, words in ((0, 0, 1), (2, 4, 1), (1, 3, 2), (0, 0, 3), (3, 6, 3)):
            options = dict(loss=loss, minn=minn, maxn=maxn, wordNgrams=words)
            for quantised in (None, {}, {"qnorm": True, "dsub": 3}, {"cutoff": 300},
                              {"cutoff": 300, "retrain": True, "qnorm": True}):
                runs.append((plain, options, quantised))
        # quantised output needs 256 labels
        runs.append((many, dict(loss=loss, minn=2, maxn=3), {"qout": True, "cutoff": 500, "qnorm": True}))
    results = [compare_fasttext(leat, folder, documents, *run) for run in runs]
    wrong = sum(r[0] for r in results)
    print(f"lid: {len(runs)} models of fastText, {len(documents)} documents each: {wrong} differ, "
          f"largest difference of probabilities {max(r[1] for r in results):.2g}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("leat")
    parser.add_argument("--fasttext", action="store_true")
    parser.add_argument("--documents", type=int, default=150)
    args = parser.parse_args()
    documents = [("", ""), ("", " \n"), ("", EOS), ("", "a " + EOS + " b")] + make_documents(args.documents)
    with tempfile.TemporaryDirectory() as folder:
        check = check_fasttext if args.fasttext else check_random
        sys.exit(1 if check(args.leat, folder, documents) else 0)


if __name__ == "__main__":
    main()
