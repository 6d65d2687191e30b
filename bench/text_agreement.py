#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""leat's profiles beside the filter classes of datatrove and NeMo Curator: verdicts and scores, rule by rule.

    text_agreement.py FILE.jsonl [--leat build/tools/leat] [--docs 22000] [--peer datatrove,nemo] [--examples 2]

A rule of datatrove is its class with all other thresholds switched off; a rule of NeMo Curator is its class.
Where a verdict (or, for NeMo, a score) differs, the peer's class runs again with one of its definitions after the other
replaced by leat's, in the order of `CAUSES`. The replacement with which both agree is the cause. What none explains is
counted as unexplained, and is the exit code. Peers that are not installed are left out.
"""
import argparse
import collections
import contextlib
import functools
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import types

CAUSES = {
    "tokenizer": "words of its tokenizer instead of str.split()",
    "sentences": "sentences of its tokenizer instead of ends before white space",
    "joined": "n-grams joined without a blank",
    "replaced": "top n-gram counted by text.replace(), ties by the order of a set",
    "short": "top n-gram of fewer words than n",
    "lower": "lower case beyond ASCII",
    "alpha": "letters and digits of the regex module instead of str.isalpha() and 0 to 9",
    "no words": "the mean of no words is NaN and passes; it is 0 in leat",
    "capped": "counting stops at the threshold",
    "empty": "division by zero in the class",
}


def leat(tool, path, *options):
    """The output folder's files by name, as lists of objects."""
    with tempfile.TemporaryDirectory() as box:
        subprocess.run([tool, "filter", path, "-o", box, "--quiet", *options], check=True, stdout=subprocess.DEVNULL)
        found = {}
        for name in os.listdir(box):
            if name.endswith(".jsonl") and not name.startswith("kept"):
                with open(os.path.join(box, name), encoding="utf-8") as lines:
                    found[name] = [json.loads(line) for line in lines]
        assert not found.get("bad.jsonl"), found["bad.jsonl"][0]
        return found


def sample(path, count):
    """Documents at equal distances, the long ones only now and then: peers are slow."""
    with open(path, encoding="utf-8") as lines:
        docs = [line for i, line in enumerate(lines) if len(line) < 4000 or i % 40 == 0]
    step = max(1, len(docs) // count)
    return [json.loads(line) for line in docs[::step][:count]]


@contextlib.contextmanager
def patched(patches):
    saved = [(where, name, getattr(where, name)) for where, name, _ in patches]
    try:
        for where, name, value in patches:
            setattr(where, name, value)
        yield
    finally:
        for where, name, value in reversed(saved):
            setattr(where, name, value)


def ascii_lower(text):
    return "".join(c.lower() if c < "\x80" else c for c in text)


class AsciiLower(str):
    """A text whose lower case changes ASCII letters only, also after strip()."""

    def lower(self):
        return ascii_lower(self)

    def strip(self, *args):
        return AsciiLower(str.strip(self, *args))

    def split(self, *args):
        return [AsciiLower(part) for part in str.split(self, *args)]

    def splitlines(self, *args):
        return [AsciiLower(part) for part in str.splitlines(self, *args)]


# ---- rows: a rule of leat, what the peer says, and the replacements that may explain a difference ----


class Row:
    def __init__(self, rules, keeps, causes, score=None, value=None):
        self.rules, self.keeps, self.causes = rules, keeps, causes
        self.score, self.value = score, value  # name in leat, call in the peer
        self.equal = self.dropped = self.scores_equal = self.total = 0
        self.why, self.why_score, self.examples = collections.Counter(), collections.Counter(), {}


def outcome(call, text):
    try:
        return call(text)
    except ZeroDivisionError:
        return "empty"
    except ValueError as error:  # max() of nothing
        return "empty" if "empty" in str(error) else str(error)


def close(a, b):
    return not isinstance(b, str) and abs(a - b) <= 1e-8 * max(1.0, abs(b))  # leat prints nine digits


def explain(row, call, text, wanted, same, replacements):
    """The first replacement after which the peer says what leat says; they add up."""
    found = outcome(call, text)
    if found == "empty":
        return "empty"
    patches, plain = [], text
    for cause in row.causes:
        more, change = replacements[cause]
        patches = patches + more
        plain = change(plain)
        with patched(patches):
            if same(outcome(call, plain), wanted):
                return cause
    return "unexplained"


def compare(rows, docs, failed, scores, replacements):
    for doc in docs:
        text, bad, have = doc["text"], failed.get(doc["id"], ()), scores[doc["id"]]
        for row in rows:
            ours = not any(rule in bad for rule in row.rules)
            theirs = outcome(row.keeps, text)
            row.total += 1
            row.dropped += not ours
            if theirs == ours:
                row.equal += 1
            else:
                why = explain(row, row.keeps, text, ours, lambda a, b: a == b, replacements)
                row.why[why] += 1
                row.examples.setdefault(why, []).append((doc["id"], ours, theirs))
            if row.score is None:
                continue
            value = outcome(row.value, text)
            if close(have[row.score], value):
                row.scores_equal += 1
            else:
                why = explain(row, row.value, text, have[row.score], lambda a, b: close(b, a), replacements)
                row.why_score[why] += 1
                if theirs == ours:
                    row.examples.setdefault(why, []).append((doc["id"], have[row.score], value))


def compare_in_parallel(make, docs, failed, scores, jobs):
    """Rows of all documents. Each process takes every jobs-th document."""
    def work(k, out):
        rows, replacements = make()
        compare(rows, docs[k::jobs], failed, scores, replacements)
        out.send([(row.equal, row.dropped, row.scores_equal, row.total, row.why, row.why_score, row.examples) for row in rows])

    rows, _ = make()
    context = multiprocessing.get_context("fork")
    pipes = [context.Pipe(False) for _ in range(jobs)]
    team = [context.Process(target=work, args=(k, pipes[k][1])) for k in range(jobs)]
    for process in team:
        process.start()
    for (receive, send), process in zip(pipes, team):
        send.close()
        for row, (equal, dropped, scores_equal, total, why, why_score, examples) in zip(rows, receive.recv()):
            row.equal, row.dropped, row.scores_equal, row.total = (row.equal + equal, row.dropped + dropped,
                                                                   row.scores_equal + scores_equal, row.total + total)
            row.why += why
            row.why_score += why_score
            for key, found in examples.items():
                row.examples.setdefault(key, []).extend(found)
        process.join()
    return rows


def show(peer, rows, examples):
    lines = []
    for row in rows:
        parts = [f"{n} {why}" for why, n in row.why.most_common()]
        shown = f"{row.scores_equal}" if row.score else ""
        score_parts = [f"{n} {why}" for why, n in row.why_score.most_common()]
        lines.append(f"| {' or '.join(row.rules)} | {row.total} | {row.dropped} | {row.equal} | {', '.join(parts)} | {shown} | {', '.join(score_parts)} |")
    print(f"\n{peer}\n\n| rule | documents | leat drops | equal verdicts | other verdicts | equal scores | other scores |\n|---|---|---|---|---|---|---|")
    print("\n".join(lines))
    for row in rows:
        for why, found in row.examples.items():
            for at in found[:examples if why != "unexplained" else 10]:
                print(f"  {row.rules[0]}: {why}: {at}")
    return sum(row.why["unexplained"] + row.why_score["unexplained"] for row in rows)


# ---- datatrove ----


def datatrove_rows():
    import datatrove.pipeline.filters.c4_filters as c4
    import datatrove.pipeline.filters.fineweb_quality_filter as fw
    import datatrove.pipeline.filters.gopher_quality_filter as gq
    import datatrove.pipeline.filters.gopher_repetition_filter as gr
    from datatrove.data import Document

    kept = {}

    def once(f):
        """The same answer as `f`; tokenizers are slow and each rule asks again."""
        def call(text, *more):
            if kept.get("text") != (text, f):
                kept["text"], kept["value"] = (text, f), f(text, *more)
            return list(kept["value"])
        return call

    for module in (gq, gr, fw):
        module.split_into_words = once(gq.split_into_words if module is gq else module.split_into_words)

    def keeps(chain):
        def call(text):
            for f in chain:
                answer = f.filter(Document(text=text, id="0"))
                if not (answer is True or (isinstance(answer, tuple) and answer[0])):
                    return False
            return True
        return call

    off = dict.fromkeys(("min_doc_words", "max_doc_words", "min_avg_word_length", "max_avg_word_length", "max_symbol_word_ratio",
                         "max_bullet_lines_ratio", "max_ellipsis_lines_ratio", "max_non_alpha_words_ratio", "min_stop_words"))
    none = dict(dup_line_frac=None, dup_para_frac=None, dup_line_char_frac=None, dup_para_char_frac=None, top_n_grams=(), dup_n_grams=())
    words = ("tokenizer", "no words")
    rows = []
    for option, value, rules in (("min_doc_words", 50, ["plain_words.min"]), ("max_doc_words", 100000, ["plain_words.max"]),
                                 ("min_avg_word_length", 3, ["mean_plain_word_length.min"]),
                                 ("max_avg_word_length", 10, ["mean_plain_word_length.max"]),
                                 ("max_symbol_word_ratio", .1, ["hash_ratio.max", "ellipsis_ratio.max"]),
                                 ("max_bullet_lines_ratio", .9, ["bullet_line_ratio.max"]),
                                 ("max_ellipsis_lines_ratio", .3, ["ellipsis_line_ratio.max"]),
                                 ("max_non_alpha_words_ratio", .8, ["alpha_word_ratio.min"]),
                                 ("min_stop_words", 2, ["stop_words_distinct.min"])):
        rows.append(Row(rules, keeps([gq.GopherQualityFilter(**{**off, option: value})]), words))
    for option, value, rule in (("dup_para_frac", .3, "dup_paragraph_ratio"), ("dup_para_char_frac", .2, "dup_paragraph_char_ratio"),
                                ("dup_line_frac", .3, "dup_line_ratio"), ("dup_line_char_frac", .2, "dup_line_char_ratio"),
                                *(("top_n_grams", ((n, t),), f"top_{n}gram_ratio") for n, t in ((2, .2), (3, .18), (4, .16))),
                                *(("dup_n_grams", ((n, (20 - n) / 100),), f"dup_{n}gram_ratio") for n in range(5, 11))):
        rows.append(Row([rule + ".max"], keeps([gr.GopherRepetitionFilter(**{**none, option: value})]), ("tokenizer", "joined")))
    rows.append(Row(["gopher@datatrove"], keeps([gq.GopherQualityFilter(), gr.GopherRepetitionFilter()]), ("tokenizer", "joined")))
    rows.append(Row(["c4_drop.max"], keeps([c4.C4QualityFilter(min_num_sentences=-1)]), ("lower",)))
    rows.append(Row(["c4@datatrove"], keeps([c4.C4QualityFilter()]), ("sentences", "lower")))
    never = dict(line_punct_thr=-1.0, short_line_thr=2.0, char_duplicates_ratio=2.0, new_line_ratio=1e9)
    for option, value, rule in (("line_punct_thr", .12, "terminal_line_ratio.min"), ("short_line_thr", .67, "short_line_ratio.max"),
                                ("char_duplicates_ratio", .01, "dup_line_chars_ratio.max"), ("new_line_ratio", .3, "newline_ratio.max")):
        rows.append(Row([rule], keeps([fw.FineWebQualityFilter(**{**never, option: value})]), words))
    rows.append(Row(["fineweb@datatrove"], keeps([fw.FineWebQualityFilter()]), words))

    def ends(text, *_):
        """Sentences as leat counts them, one at least."""
        n, padded = 0, text + "  "
        for i, c in enumerate(text):
            if c in ".?!":
                after = padded[i + 2] if padded[i + 1] in "\"')]" else padded[i + 1]
                n += after == " " or "\t" <= after <= "\r"
            elif c >= "\x80":
                n += c in TERMINAL
        return [None] * max(1, n)

    def tuples(found, n):
        seen, chars, at = set(), 0, 0
        while at < len(found) - n + 1:
            gram = tuple(found[at:at + n])
            if gram in seen:
                chars, at = chars + sum(map(len, gram)), at + n
            else:
                seen.add(gram)
                at += 1
        return chars

    same = lambda text: text  # noqa: E731
    split = lambda text, *_: text.split()  # noqa: E731
    mean = gq.np.mean
    numbers = types.SimpleNamespace(mean=lambda values: mean(values) if values else 0.0)
    replacements = {"no words": ([(gq, "np", numbers)], same),
                    "tokenizer": ([(m, "split_into_words", split) for m in (gq, gr, fw)], same),
                    "joined": ([(gr, "find_all_duplicate", tuples)], same),
                    "sentences": ([(c4, "split_into_sentences", ends)], same), "lower": ([], AsciiLower)}
    return rows, replacements


TERMINAL = ()


def load_terminal():
    global TERMINAL
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../src/text"))
    import gen_unicode
    TERMINAL = gen_unicode.ranges(gen_unicode.TERMINAL)


# ---- NeMo Curator ----


@functools.cache
def nemo_modules():
    """The modules of its heuristic filters; its package imports much more than they need."""
    for name in ("huggingface_hub", "fsspec", "requests"):
        try:
            __import__(name)
        except ImportError:
            sys.modules[name] = types.ModuleType(name)
    try:
        import transformers  # noqa: F401
    except ImportError:
        module = types.ModuleType("transformers")
        module.AutoTokenizer = object  # only TokenCountFilter makes one
        sys.modules["transformers"] = module
    import importlib.util
    spec = importlib.util.find_spec("nemo_curator")
    root = list(spec.submodule_search_locations)[0]
    base = "nemo_curator"
    for part in ("", ".stages", ".stages.text", ".stages.text.filters", ".stages.text.utils"):
        if base + part not in sys.modules:
            module = types.ModuleType(base + part)
            module.__path__ = [os.path.join(root, *part.split(".")[1:])]
            sys.modules[base + part] = module
    filters = os.path.join(root, "stages", "text", "filters")
    for folder, _, names in os.walk(filters):
        relative = os.path.relpath(folder, filters)
        if relative not in (".", "__pycache__") and not relative.endswith("__pycache__"):
            module = types.ModuleType(f"{base}.stages.text.filters.{relative.replace(os.sep, '.')}")
            module.__path__ = [folder]
            sys.modules.setdefault(module.__name__, module)
    found = [os.path.join(folder, name) for folder, _, names in os.walk(filters) for name in names if name.endswith(".py")]
    for path in sorted(found):
        with open(path, encoding="utf-8") as f:
            if "class NonAlphaNumericFilter" in f.read():
                name = os.path.relpath(path, root)[:-3].replace(os.sep, ".")
                holder = importlib.import_module(f"{base}.{name}")
    classes = {name: value for name, value in vars(holder).items() if isinstance(value, type)}
    for path in sorted(found):
        with open(path, encoding="utf-8") as f:
            if "class RepeatedLinesFilter" in f.read():
                name = os.path.relpath(path, root)[:-3].replace(os.sep, ".")
                other = importlib.import_module(f"{base}.{name}")
                classes.update({key: value for key, value in vars(other).items() if isinstance(value, type)})
    return holder, classes


def nemo_rows():
    module, c = nemo_modules()
    short = ("replaced", "short")
    table = [("NonAlphaNumericFilter", {}, ["non_alnum_ratio.max"], ()), ("SymbolsToWordsFilter", {}, ["symbol_word_ratio.max"], ()),
             ("NumbersFilter", {}, ["digit_ratio.max"], ("alpha",)), ("UrlsFilter", {}, ["url_ratio.max"], ()),
             ("BulletsFilter", {}, ["nemo_bullet_ratio.max"], ()), ("WhiteSpaceFilter", {}, ["space_ratio.max"], ()),
             ("ParenthesesFilter", {}, ["bracket_ratio.max"], ()), ("LongWordFilter", {}, ["longest_word.max"], ()),
             ("WordCountFilter", {}, ["words.min", "words.max"], ()),
             ("BoilerPlateStringFilter", {}, ["boilerplate_ratio.max"], ("lower",)),
             ("MeanWordLengthFilter", {}, ["mean_word_length.min", "mean_word_length.max"], ()),
             ("PunctuationFilter", {}, ["open_line_ratio.max"], ()), ("EllipsisFilter", {}, ["nemo_ellipsis_ratio.max"], ("lower",)),
             ("CommonEnglishWordsFilter", {}, ["stop_words.min"], ("capped",)),
             ("WordsWithoutAlphabetsFilter", {}, ["alpha_word_ratio.min"], ("alpha",)),
             ("RepeatedLinesFilter", {}, ["unique_line_ratio.min"], ()), ("RepeatedParagraphsFilter", {}, ["unique_paragraph_ratio.min"], ()),
             ("RepeatedLinesByCharFilter", {}, ["unique_line_char_ratio.min"], ()),
             ("RepeatedParagraphsByCharFilter", {}, ["unique_paragraph_char_ratio.min"], ()),
             *(("RepeatingTopNGramsFilter", dict(n=n, max_repeating_ngram_ratio=t), [f"top_{n}gram_ratio.max"], short)
               for n, t in ((2, .2), (3, .18), (4, .16))),
             *(("RepeatingDuplicateNGramsFilter", dict(n=n, max_repeating_duplicate_ngram_ratio=(20 - n) / 100),
                [f"nemo_dup_{n}gram_ratio.max"], ()) for n in range(5, 11))]
    rows = []
    for name, options, rules, causes in table:
        f = c[name](**options)
        rows.append(Row(rules, lambda text, f=f: bool(f.keep_document(f.score_document(text))), causes,
                        rules[0].rsplit(".", 1)[0], f.score_document))

    def occurrences(self, text):
        """The most frequent n-gram by its own occurrences, the first one of equals."""
        words = text.split()
        grams = [" ".join(words[i:i + self._n]) for i in range(len(words) - self._n + 1)]
        if not grams:
            return self._max_ratio
        gram, count = collections.Counter(grams).most_common(1)[0]
        return len(gram) * count / len(text)

    def zero(self, text):
        return 0.0 if len(text.split()) < self._n else occurrences(self, text)

    def all_words(self, text):
        return sum(word in {"the", "be", "to", "of", "and", "that", "have", "with"} for word in text.split())

    same = lambda text: text  # noqa: E731
    letters = types.SimpleNamespace(search=lambda word: any(x.isalpha() for x in word))
    digits = types.SimpleNamespace(findall=lambda text: [x for x in text if x in "0123456789"])
    method = "score_document"
    replacements = {"replaced": ([(c["RepeatingTopNGramsFilter"], method, occurrences)], same),
                    "short": ([(c["RepeatingTopNGramsFilter"], method, zero)], same),
                    "lower": ([], AsciiLower),
                    "no words": "the mean of no words is NaN and passes; it is 0 in leat",
    "capped": ([(c["CommonEnglishWordsFilter"], method, all_words)], same),
                    "alpha": ([(module, "regex_alpha", letters), (module, "regex_digit", digits)], same)}
    for row in rows:  # bound methods do not see a replaced one
        f = row.value.__self__
        row.value = lambda text, f=f: f.score_document(text)
    return rows, replacements


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--leat", default="build/tools/leat")
    parser.add_argument("--docs", type=int, default=22000)
    parser.add_argument("--peer", default="datatrove,nemo")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--examples", type=int, default=0)
    args = parser.parse_args()
    load_terminal()
    docs = sample(args.file, args.docs)
    size = sum(len(d["text"].encode()) for d in docs) / 1e6
    sources = collections.Counter(d["id"].rsplit("/", 1)[0] for d in docs)
    print(f"{len(docs)} documents, {size:.1f} MB of text, {len(sources)} sources and languages")
    unexplained = 0
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as f:
        f.writelines(json.dumps(d, ensure_ascii=False) + "\n" for d in docs)
        f.flush()
        scores = {d["id"]: d for d in leat(args.leat, f.name, "--score-only")["scores-00000.jsonl"]}
        for peer, make, profiles in (("datatrove", datatrove_rows, ("gopher@datatrove", "c4@datatrove", "fineweb@datatrove")),
                                     ("nemo", nemo_rows, ("nemo-english",))):
            if peer not in args.peer.split(","):
                continue
            try:
                make()
            except ImportError as error:
                print(f"{peer}: left out: {error}")
                continue
            failed = collections.defaultdict(set)
            for profile in profiles:
                for d in leat(args.leat, f.name, "--profile", profile)["reasons.jsonl"]:
                    failed[d["id"]].update([*d["failed"], profile])
            rows = compare_in_parallel(make, docs, failed, scores, args.jobs)
            unexplained += show(peer, rows, args.examples)
    print("\ncauses: " + "; ".join(f"{name}: {text}" for name, text in CAUSES.items()))
    sys.exit(unexplained > 0)


if __name__ == "__main__":
    main()
