#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Documents of a Debian machine as JSONL: package documentation, man pages, Perl and Python documentation, messages.

    text_documents.py OUT.jsonl [--share /usr/share,...] [--python DIR,...] [--per-source BYTES] [--seed 7]

Long sources are cut at line ends into pieces of seeded lognormal size (median about 3 KB), like web pages. Equal pieces
are written once; near copies stay. `id` names the source and, for man pages and messages, the language: `man/ja/12`.
"""
import argparse
import ast
import collections
import gettext
import gzip
import hashlib
import html
import json
import os
import random
import re
import warnings

SKIPPED = re.compile(r"\.(png|jpe?g|gif|svg|pdf|js|css|so|bin|xz|zip|o|a|ico|ttf|woff2?|map)(\.gz)?$")


def decoded(data):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def content(path):
    """The text of a file, or "" of one that is not text."""
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
            data = f.read(4 << 20)
    except (OSError, EOFError):
        return ""
    return "" if b"\0" in data[:1000] else decoded(data)


def walk(folder):
    for root, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = os.path.join(root, name)
            if os.path.isfile(path) and not os.path.islink(path) and not SKIPPED.search(name):
                yield path


def manual(text):
    """A man page without most of its markup."""
    text = re.sub(r"\\f[BIRP]|\\-", lambda m: "-" if m[0] == "\\-" else "", text)
    return "\n".join(line if line[:1] not in ".'" else " ".join(line.split()[1:])
                     for line in text.split("\n") if not line.startswith('.\\"'))


def page(text):
    return html.unescape(re.sub(r"(?s)<(script|style).*?</\1>|<[^>]*>", "", text))


def messages(path):
    try:
        with open(path, "rb") as f:
            return "\n".join(v for v in gettext.GNUTranslations(f)._catalog.values() if isinstance(v, str))
    except Exception:  # damaged or of another kind
        return ""


def docstrings(path):
    try:
        with open(path, "rb") as f, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(f.read())
    except (SyntaxError, ValueError, RecursionError):
        return ""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return "\n\n".join(d for n in ast.walk(tree) if isinstance(n, kinds) and (d := ast.get_docstring(n)))


def sources(shares, pythons):
    """Pairs of a source's name and its text."""
    for share in shares:
        for path in walk(os.path.join(share, "doc")):
            yield "doc", page(content(path)) if ".htm" in path else content(path)
        base = os.path.join(share, "man")
        for path in walk(base):
            first = os.path.relpath(path, base).split(os.sep)[0]
            yield "man/" + ("en" if first.startswith("man") else first.split(".")[0]), manual(content(path))
        base = os.path.join(share, "locale")
        for path in walk(base):
            if path.endswith(".mo"):
                yield "messages/" + os.path.relpath(path, base).split(os.sep)[0], messages(path)
        for path in walk(os.path.join(share, "perl")):
            if path.endswith((".pod", ".pm")):
                yield "perl", content(path)
    for folder in pythons:
        for path in walk(folder):
            if path.endswith(".py"):
                yield "python", docstrings(path)


def pieces(rng, text):
    text, at = text.replace("\0", " "), 0
    while at < len(text):
        end = min(len(text), at + int(min(60000, max(300, rng.lognormvariate(8.0, 1.0)))))
        if end < len(text):
            line = text.find("\n", end)
            end = len(text) if line < 0 or line - end > 2000 else line + 1
        yield text[at:end].strip()
        at = end


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--share", default="/usr/share", help="folders with doc, man, locale and perl")
    parser.add_argument("--python", default="/usr/lib/python3", help="folders of Python files")
    parser.add_argument("--per-source", type=float, default=12e6, help="bytes of text of one source and language")
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    rng, seen, total, count = random.Random(args.seed), set(), collections.Counter(), collections.Counter()
    with open(args.out, "w", encoding="utf-8") as out:
        for source, text in sources(args.share.split(","), args.python.split(",")):
            for piece in pieces(rng, text) if total[source] < args.per_source else ():
                key = hashlib.blake2b(piece.encode("utf-8", "replace"), digest_size=8).digest()
                if len(piece) < 100 or key in seen or re.search("[\ud800-\udfff]", piece):
                    continue
                seen.add(key)
                # every eighth line with \uXXXX escapes: both forms occur
                out.write(json.dumps({"text": piece, "id": f"{source}/{count[source]}"},
                                     ensure_ascii=sum(count.values()) % 8 == 0) + "\n")
                count[source] += 1
                total[source] += len(piece.encode())
    for source, n in sorted(count.items()):
        print(f"{source:24} {n:7} documents {total[source] / 1e6:8.2f} MB")
    print(f"{'all':24} {sum(count.values()):7} documents {sum(total.values()) / 1e6:8.2f} MB")


if __name__ == "__main__":
    main()
