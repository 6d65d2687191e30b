#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every count of a document against plain Python, on hostile and multilingual documents.

    check_text.py text_oracle [N [FILE.jsonl]]

N documents are made by a seeded generator; a file's documents are checked as well. Also checks
the text that comes out of JSON escapes, and shingles against a second implementation. Run with
each value of LEAT_CPU_MASK.
"""
import collections
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unicodedata

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/text"))
import gen_unicode  # noqa: E402

STOP = {"the", "be", "to", "of", "and", "that", "have", "with"}
ELLIPSES = {"...", "[...]", "…", "(...)", "[…]", "-»", "read more..", "read more"}
POLICY = ["terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies"]
NEMO_POLICY = POLICY + ["privacy overview", "privacy & cookies policy", "privacy and cookies policy",
                        "necessary cookies are absolutely essential for the website to function properly. this category only includes "
                        "cookies that ensures basic functionalities and security features of the website. these cookies do not store "
                        "any personal information.",
                        "any cookies that may not be particularly necessary for the website to function and is used specifically to "
                        "collect user personal data via analytics, ads, other embedded contents are termed as non-necessary cookies. it "
                        "is mandatory to procure user consent prior to running these cookies on your website.",
                        "if you continue to browse this site without changing your cookie settings, you agree to this use. acceptread "
                        "more"]
CITATION = re.compile(r"\[\d*]|\[edit]|\[citation needed]", re.A)
URL = re.compile(r"https?://(?:[A-Za-z0-9$\-_@.&+/:=?#~]|[!*\(\),]|(?:%[0-9A-Fa-f]{2}))+")
TERMINAL = gen_unicode.ranges(gen_unicode.TERMINAL)
SYMBOLS = gen_unicode.SYMBOLS | TERMINAL
M64 = (1 << 64) - 1


def ascii_lower(text):
    """str.lower() for ASCII only: other letters can become ASCII ones, which leat does not check."""
    return "".join(c.lower() if c < "\x80" else c for c in text)


def duplicates(parts):
    seen, n, chars = set(), 0, 0
    for part in parts:
        if part in seen:
            n, chars = n + 1, chars + len(part)
        seen.add(part)
    return n, chars


def top_ngram(words, n):
    grams = [" ".join(words[i:i + n]) for i in range(len(words) - n + 1)]
    if not grams:
        return 0
    gram, count = collections.Counter(grams).most_common(1)[0]
    return len(gram) * count


def datatrove_dup(words, n):
    seen, chars, i = set(), 0, 0
    while i < len(words) - n + 1:
        gram = tuple(words[i:i + n])
        if gram in seen:
            chars, i = chars + sum(map(len, gram)), i + n
        else:
            seen.add(gram)
            i += 1
    return chars


def nemo_dup(words, n):
    counts, chars, overlap = {}, 0, 0
    for gram in zip(*[words[i:] for i in range(n)]):
        counts[gram] = counts.get(gram, 0) + 1
        if counts[gram] > 1:
            chars += sum(map(len, gram[overlap:])) + min(n - overlap, n - 1)
            overlap = n
        overlap = max(overlap - 1, 0)
    return chars


def sentences(text):
    n = 0
    text += "  "
    for i, c in enumerate(text[:-2]):
        if c in ".?!":
            after = text[i + 2] if text[i + 1] in "\"')]" else text[i + 1]
            n += after == " " or "\t" <= after <= "\r"
        elif c >= "\x80":
            n += c in TERMINAL
    return n


def c4(r, text):
    """Line rules of C4: datatrove's form and the paper's."""
    lines = words = ends = drop = paper = paper_ends = 0
    # line ends count as white space for a mark at the end of a line
    for raw in text.splitlines():
        line, ww = raw.strip(), raw.split()
        if any(len(w) > 1000 for w in ww):
            continue
        line = CITATION.sub("", line)
        if not line.endswith((".", "?", "!", '"', "'")) or line.endswith("..."):
            continue
        low, n = ascii_lower(raw), max(1, sentences(raw))
        script, policy = "javascript" in low, any(p in low for p in POLICY)
        if len(ww) >= 5 and not line.endswith("'") and not script and not policy:
            paper, paper_ends = paper + 1, paper_ends + n
        if len(ww) < 3 or drop:
            continue
        if "lorem ipsum" in low:
            drop = 1
        elif script:
            pass
        elif "{" in line:
            drop = 2
        elif not policy:
            lines, words, ends = lines + 1, words + len(ww), ends + n
    r.update(c4_lines=lines, c4_words=words, c4_sentences=ends, c4_drop=drop, c4_paper_lines=paper,
             c4_paper_sentences=paper_ends)


def counts(t):
    w = t.split()
    r = dict(bytes=len(t.encode()), chars=len(t), letters=sum(c.isalpha() for c in t),
             digits=sum(unicodedata.category(c) == "Nd" for c in t), ascii_digits=sum(c in "0123456789" for c in t),
             spaces=sum(c.isspace() for c in t), nemo_spaces=sum(c in "\t\n\r\b " for c in t),
             nemo_alnum=len(re.findall("[a-zA-Z0-9\n?!,.]", t)), symbols=sum(c in SYMBOLS for c in t),
             brackets=len(re.findall(r"[{}⟨⟩\[\]()]", t)), hashes=t.count("#"),
             ellipses=t.count("...") + t.count("…"), curly=t.count("{"))
    urls = URL.findall(t)
    r.update(urls=len(urls), url_chars=sum(map(len, urls)))
    plain = [x for x in w if any(c not in SYMBOLS for c in x)]
    r.update(words=len(w), word_chars=sum(map(len, w)), longest_word=max(map(len, w), default=0),
             alpha_words=sum(any(c.isalpha() for c in x) for x in w), plain_words=len(plain),
             plain_word_chars=sum(map(len, plain)), stop_words=sum(x in STOP for x in w),
             stop_words_distinct=len(STOP & set(w)),
             symbol_words=sum(x in ELLIPSES or len(re.findall("#+", x)) / len(x) > .5 for x in w))
    lines = t.splitlines()
    r.update(newlines=t.count("\n"), split_lines=len(lines),
             bullet_lines=sum(x.lstrip().startswith(("•", "-")) for x in lines),
             ellipsis_lines=sum(x.rstrip().endswith(("...", "…")) for x in lines))
    nb = [x for x in t.split("\n") if x.strip()]
    n_dup, dup_chars = duplicates(nb)
    total = sum(map(len, nb))
    r.update(lines=len(nb), nemo_bullet_lines=sum(x.strip()[0] in gen_unicode.BULLETS for x in nb),
             open_lines=sum(not x.strip().endswith((".", "?", "!", '"', "'")) for x in nb),
             nemo_ellipsis_lines=sum(ascii_lower(x.strip()).endswith(tuple(ELLIPSES)) for x in nb),
             unique_lines=len(nb) - n_dup, unique_line_chars=total - dup_chars, line_chars=total,
             terminal_lines=sum(x[-1] in TERMINAL for x in nb), short_lines=sum(len(x) <= 30 for x in nb),
             shorter_lines=sum(len(x) < 30 for x in nb), dup_line_chars=dup_chars)
    parts = re.split("\n+", t)
    r["rep_lines"] = len(parts)
    r["rep_dup_lines"], r["rep_dup_line_chars"] = duplicates(parts)
    parts = re.split("\n{2,}", t.strip())
    r["rep_paragraphs"] = len(parts)
    r["rep_dup_paragraphs"], r["rep_dup_paragraph_chars"] = duplicates(parts)
    parts = t.split("\n\n")
    n_dup, dup_chars = duplicates(parts)
    total = sum(map(len, parts))
    low = [ascii_lower(p) for p in parts]
    policy = [any(q in p for q in NEMO_POLICY) for p in low]
    lorem = int(any("lorem ipsum" in p for p in low))
    r.update(paragraphs=len(parts), unique_paragraphs=len(parts) - n_dup, unique_paragraph_chars=total - dup_chars,
             paragraph_chars=total, lorem_ipsum=lorem, sentences=sentences(t),
             boilerplate_paragraphs=len(parts) if lorem else sum(policy))
    c4(r, t)
    for n in (2, 3, 4):
        r[f"top_{n}gram_chars"] = top_ngram(w, n)
    for n in range(5, 11):
        r[f"dup_{n}gram_chars"], r[f"nemo_dup_{n}gram_chars"] = datatrove_dup(w, n), nemo_dup(w, n)
    return r


TOKENS = """the be to that with a b ab # ## #a# #a#b# x#y#z ... .... …… … [...] (...) […] -» - • ‣ { } ⟨⟩ http://a.b/c
https://x.y/%41z; http:// httpshttps://q é Ж ЖД 漢字 。 😀 １ ٣ Ⅷ ª JavaScript javascript Privacy_Policy terms_of_use TERMS_OF_USE
uses_cookies use_of_cookies cookie_policy lorem_ipsum Lorem_Ipsum Read_more read_more.. end. end? end! " ' end.[1] end._[1] x[edit]
[citation_needed] .[1].[2]. He_said_"yes." (well.) 12 3,4 ‽ ؟ he's it. the\0 privacy_overview cookies""".replace("_", "\x00").split()
TOKENS = [t.replace("\x00", " ").replace("\\0", "\x00") for t in TOKENS]
TOKENS += [p.capitalize() for p in NEMO_POLICY[-3:]] + [p[:-1] for p in NEMO_POLICY[-3:]] + [p[1:] for p in NEMO_POLICY[-3:]]
TOKENS += ["É", "École", "école", "ÉCOLE", "a_word_of_12", "a_word_of_12\x01", "a_word_of_16_or_", "a_word_of_16_or_\x01"]
TOKENS += ["x" * 15, "y" * 16, "z" * 17, "q" * 40, "w" * 1001, "\x01", "\x7f", "\x08", "\ufffd", "\u200b", "\ufeff", "\u0301"]
SEPARATORS = [" "] * 12 + ["\n"] * 5 + ["\n\n"] * 3 + ["\n\n\n", "\t", "  ", "\r\n", "\r", "\v", "\f", "\x1c", "\x1d", "\x1e",
              "\x1f", "\x85", "\xa0", "\u1680", "\u2003", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "", "", " \n", "\n ",
              "\n \n"]


def document(r, i):
    separators = SEPARATORS if i % 2 else SEPARATORS[:24]
    tokens, text = r.sample(TOKENS, r.randint(3, len(TOKENS))), ""
    for _ in range(int(r.lognormvariate(4, 1.2))):
        text += r.choice(tokens) + r.choice(separators)
        if r.random() < .05 and text:
            k = r.randrange(len(text))
            text += text[k:k + r.randint(1, 200)]
    return text.strip() if r.random() < .5 else text


def special():
    yield from ("", "\n", "\n\n\n", " ", "a", "a" * 63, "a" * 64, "a" * 65, "é" * 32, "a" * 63 + "\u3000b", "漢" * 64,
                "a" * 62 + "\u2028" + "b.", "x\r", "...", "…", "[1]", ".", "http://", "#", "a\n" * 3000, "a b c d e. " * 24000,
                "Ж" * 63 + " ж." * 60000, "\n" * 270000, "a_word_of_12 b a_word_of_12\x01 b", "a line of 16 is_\na line of 16 is_\x01",
                "École ÉCOLE écOLEs ΣΑΣ σας İst Straße STRASSE Жук жУК ǅ ẞ")


def run(tool, *args):
    return subprocess.run([tool, *args], check=True, capture_output=True, text=True).stdout.splitlines()


# ---- shingles, written from the description in the headers ----
H0, H1, H2, H3 = 0x9e3779b97f4a7c15, 0xd1b54a32d192ed03, 0x8cb92ba72f3d8dd7, 0xaef17502108ef2d9


def fold(a, b):
    r = a * b
    return (r & M64) ^ (r >> 64)


def without_case(c):
    """The character without case, where that is one character; U+0130 becomes an i."""
    if c == "\u0130":
        return "i"
    return next((x for x in (c.casefold(), c.lower()) if len(x) == 1), c)


def word_key(word):
    data = "".join(map(without_case, word)).encode()
    h, left = H2, data

    def at(b, i):
        return int.from_bytes(b[i:i + 8], "little")
    while len(left) > 16:
        h, left = fold(at(left, 0) ^ H0 ^ h, at(left, 8) ^ H1), left[16:]
    return fold(at(left, 0) ^ H0 ^ h, at(left, 8) ^ H1 ^ len(data) << 32)


def word_shingles(text, n):
    def inside(c):
        if c < "\x80":
            return c.isalnum()
        k = unicodedata.category(c)
        return k[0] not in "PSZC" or k in ("Cn", "Co")
    words, now = [], ""
    for c in text + " ":
        if inside(c):
            now += c
        elif now:
            words.append(word_key(now))
            now = ""
    n = min(n, len(words))
    out = []
    for i in range(len(words) - n + 1 if words else 0):
        if n == 5:
            w = words[i:i + 5]
            h = (((w[0] * H0 + w[1]) * H1 + w[2] * H0 + w[3]) * H1 + w[4]) & M64
        else:
            h = n
            for x in words[i:i + n]:
                h = (h * H1 + x) & M64
        h ^= h >> 32
        h = h * H3 & M64
        out.append(h ^ h >> 29)
    return out


def main():
    tool, n = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 400
    r = random.Random(7)
    texts = [*special(), *(document(r, i) for i in range(n))]
    if len(sys.argv) > 3:
        with open(sys.argv[3], encoding="utf-8") as f:
            texts += [json.loads(line)["text"] for line in f]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as f:
        for i, text in enumerate(texts):
            record = {"id": i, "n": {"a": ["}", 1, "\"{"]}, "text": text, "m": -1.5e3, "z": None}
            f.write(json.dumps(record, ensure_ascii=bool(i & 1)) + "\n")
        f.flush()
        names = run(tool, "names")
        rows = run(tool, "counts", f.name)
        back = run(tool, "text", f.name)
        shingled = run(tool, "shingles", f.name, "5", "0")
        pairs = run(tool, "shingles", f.name, "3", "0")
    wrong = collections.Counter()
    for i, (text, row) in enumerate(zip(texts, rows, strict=True)):
        want, got = counts(text), dict(zip(names, map(int, row.split("\t")), strict=True))
        assert set(want) == set(names), set(want) ^ set(names)
        for name in names:
            if want[name] != got[name]:
                wrong[name] += 1
                if sum(wrong.values()) <= 5:
                    print(f"document {i}: {name}: python {want[name]}, leat {got[name]}: {text[:100]!r}")
        if bytes.fromhex(back[i]).decode() != text:
            wrong["text"] += 1
        for k, out in ((5, shingled[i]), (3, pairs[i])):
            if len(text) < 20000 and [int(x, 16) for x in out.split("|")[0].split()] != word_shingles(text, k):
                wrong[f"shingles of {k}"] += 1
    total = len(texts) * len(names)
    print(f"{len(texts)} documents, {len(names)} counts: {total - sum(wrong.values())} of {total} equal")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
