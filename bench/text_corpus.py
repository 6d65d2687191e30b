#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the corpora of vs_text.py from the documentation of this machine.

    text_corpus.py FOLDER [--root /usr/share] [--megabytes 130]

Writes mixed.jsonl (package documentation, man pages, Perl and Python documentation, locale messages), prose.jsonl (paragraphs of English
sentences of these) and nonlatin.jsonl (man pages and messages in scripts other than Latin). Long files are cut at line ends into
pieces of a median of 3 kB, like pages of the web. Exact copies are dropped, similar ones stay. One document in eight has
\\u escapes.
"""
import argparse
import ast
import gettext
import gzip
import hashlib
import json
import os
import random
import re
import warnings

warnings.simplefilter("ignore")


class Corpus:
    def __init__(self, path, limit):
        self.out = open(path, "w", encoding="utf-8")
        self.limit, self.size, self.count, self.seen = limit, 0, 0, set()
        self.draw = random.Random(7)

    def add(self, text, source, share=1.0):
        """Adds the pieces of a text, until the corpus has `share` of its size."""
        at = 0
        text = text.replace("\0", " ")
        while at < len(text) and self.size < self.limit * share:
            end = min(len(text), at + int(min(60000, max(300, self.draw.lognormvariate(8.0, 1.0)))))
            if end < len(text):
                line = text.find("\n", end)
                end = len(text) if line < 0 or line - end > 2000 else line + 1
            piece, at = text[at:end].strip(), end
            data = piece.encode("utf-8", "replace")
            key = hashlib.blake2b(data, digest_size=8).digest()
            if len(piece) < 100 or key in self.seen:
                continue
            self.seen.add(key)
            self.out.write(json.dumps({"text": data.decode(), "id": f"{source}/{self.count}", "url": f"https://example.org/{source}/{self.count}"},
                                      ensure_ascii=self.count % 8 == 0) + "\n")
            self.count += 1
            self.size += len(data)


def files(folder, pattern=""):
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(root, name)
            if re.search(pattern, name) and os.path.isfile(path) and not os.path.islink(path):
                yield path


def read(path):
    try:
        with (gzip.open(path) if path.endswith(".gz") else open(path, "rb")) as f:
            data = f.read()
    except (OSError, EOFError):
        return ""
    if b"\0" in data[:1000]:
        return ""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def plain_html(path, text):
    return re.sub(r"(?s)<(script|style).*?</\1>|<[^>]*>", "", text) if ".htm" in path else text


def man_text(text):
    text = re.sub(r"\\f[BIRP]|\\-", lambda m: "-" if m[0] == "\\-" else "", text)
    return "\n".join(line if line[:1] not in ".'" else " ".join(line.split()[1:]) for line in text.split("\n") if not line.startswith('.\\"'))


def messages(path):
    try:
        with open(path, "rb") as f:
            catalog = gettext.GNUTranslations(f)._catalog
    except (OSError, LookupError, UnicodeError, ValueError):
        return ""
    return "\n".join(v for v in catalog.values() if isinstance(v, str))


def docstrings(path):
    try:
        with open(path, "rb") as f:
            tree = ast.parse(f.read())
    except (OSError, SyntaxError, ValueError):
        return ""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return "\n\n".join(d for n in ast.walk(tree) if isinstance(n, kinds) and (d := ast.get_docstring(n)))


def is_sentence(paragraph):
    letters = sum(c.isalpha() or c == " " for c in paragraph)
    return (len(paragraph) >= 120 and paragraph[0].isupper() and paragraph[-1] in ".:?!" and paragraph.isascii() and letters >= 0.9 * len(paragraph)
            and len(re.findall(r"\b(?:the|of|and|to|is|a|in)\b", paragraph)) >= len(paragraph) / 60)


def prose_of(text):
    paragraphs = (" ".join(p.split()) for p in re.split(r"\n\s*\n", text))
    return "\n\n".join(p for p in paragraphs if p and is_sentence(p))


def is_foreign(text):
    return sum(ord(c) >= 0x370 for c in text) > 0.25 * len(text)


def sources(root):
    """(source, text) of all files, with the share of the mixed corpus at which the source ends."""
    for path in files(root + "/doc"):
        if not re.search(r"\.(png|jpg|gif|svg|pdf|js|css|so|bin|ps|json)(\.gz)?$", path):
            yield "doc", 0.55, plain_html(path, read(path))
    for path in files(root + "/man"):
        yield "man", 0.8, man_text(read(path))
    for path in files(root + "/perl", r"\.(pod|pm)$"):
        yield "perl", 0.9, read(path)
    for path in files("/usr/lib/python3", r"\.py$"):
        yield "python", 0.95, docstrings(path)
    for path in files("/usr/lib/python3.11", r"\.py$"):
        yield "python", 0.95, docstrings(path)
    for path in files(root + "/locale", r"\.mo$"):
        yield "locale", 1.0, messages(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--root", default="/usr/share")
    parser.add_argument("--megabytes", type=float, default=130)
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    size = args.megabytes * 1e6
    mixed, prose, nonlatin = (Corpus(os.path.join(args.folder, name + ".jsonl"), limit) for name, limit in
                              (("mixed", size), ("prose", size / 4), ("nonlatin", size / 4)))
    for source, share, text in sources(args.root):
        mixed.add(text, source, share)
        prose.add(prose_of(text), source)
        if is_foreign(text):
            nonlatin.add(text, source)
    for name, corpus in (("mixed", mixed), ("prose", prose), ("nonlatin", nonlatin)):
        corpus.out.close()
        print(json.dumps({"corpus": name, "documents": corpus.count, "text_mb": round(corpus.size / 1e6, 1)}))


if __name__ == "__main__":
    main()
