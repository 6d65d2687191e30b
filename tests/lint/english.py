#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds phrases that a reader has to read twice, and prints a plain replacement for each.

Checks comments, docstrings, strings with a space (messages and help), docs and names of unit tests.

    python3 tests/lint/english.py            check everything
    python3 tests/lint/english.py PATH...    check these files or folders
    python3 tests/lint/english.py --count    count the phrases per folder
"""
import collections
import io
import pathlib
import re
import subprocess
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A pattern (upper and lower case are the same), and what to write instead.
PHRASES = [
    (r"(?:nobody|anybody|everybody|somebody)", "name the thread, caller or user; 'no thread', 'no caller'"),
    (r"whoever", "'the thread that', 'the caller', 'the owner'"),
    (r"for ever", "'indefinitely', 'never ends', 'until close'"),
    (r"anew", "'again', 'from scratch', 'new'"),
    (r"passed over", "'skipped', 'ignored'"),
    (r"the world(?! size)", "'conditions', or name what changed"),
    (r"without a word(?! left| are)", "'silently'"),
    (r"(?:goes|go|going|went) on", "'continues', 'resumes', 'proceeds'"),
    (r"behind (?:it|its|them|their)", "'after it', 'beyond it', or name what is used"),
    (r"(?<!there )(?:is|are|was|were) no (?!longer|more|less|later|fewer|greater|smaller|larger|slower|faster|matter)",
     "'is not a', 'are not'"),
    (r"lies", "'is', 'is stored'"),
    (r"lie (?:in|at|on|inside|outside|behind|before|after|below|above|between|next|beside|together|there|within)",
     "'are', 'are stored'"),
    (r"of (?:its|their|our|his) own(?! (?!and|or|when|where|which|is|are|that|for|in|to|at|on|with|while|so)\w)",
     "'its own', 'separate', 'private'"),
    (r"as if", "say what happens"),
    (r"(?:a|the|this|that|any|which|very) moment", "'briefly', 'at any time', 'when', or a number of seconds"),
    (r"(?:probe|base|engine|codec|dsp|op|gpu|io|pack|ingest|text|curate|plan|doctor|loader|each|every) room(?! for)",
     "'module'"),
    (r"rooms", "'modules' for folders of src/, 'slots' or 'space' for memory"),
    (r"(?:the|of|our) house", "'leat', 'this code base'"),
    (r"already there", "'already exists'"),
    (r"on (?:its|their) way", "'in flight', 'in progress'"),
    (r"loans?", "'borrowed batch', 'borrowed result'"),
    (r"at hand", "'current'"),
    (r"but for", "'except'"),
    (r"in a row", "'consecutive'"),
    (r"one after the other", "'one at a time', 'in sequence'"),
    (r"business", "say which part handles it"),
    (r"(?:give|gives|given|gave|giving) (?:it |them )?back", "'return', 'release', 'extract'"),
    (r"(?:let|lets|letting) go of", "'release', 'close'"),
    (r"kin", "'similar functions'"),
    (r"answers (?:whether|how|what|where|false|true|null|0|with)", "'returns'"),
    (r"(?:no|any|some) notion of", "'does not know', 'has no'"),
    (r"(?:comes?|came|coming) to an end", "'ends'"),
    (r"in vain", "'without success'"),
    (r"looks at the", "'checks the', 'reads the'"),
    (r"would have it", "'requires'"),
    (r"so to speak|as it were", "delete it"),
    (r"a good deal|a great deal", "'much', or a number"),
    (r"writes? behind", "'writes past', 'writes after'"),
    (r"holds? (?:\w+ ){1,4}back", "'limits', 'is the bottleneck of'"),
    (r"fails? without memory", "'fails only with LEAT_ENOMEM'"),
    (r"(?:what|that) is only kept", "'cached'"),
    (r"ready but for", "'blocked only by'"),
    (r"(?:stood|stands?|standing) in line", "'waited for a CPU', 'queued'"),
    (r"stands? (?:behind|inside|where)", "'comes after', 'is inside', 'replaces'"),
    (r"by turns", "'alternating'"),
    (r"bur(?:y|ies|ied)", "'frees', 'removes'"),
    (r"(?:this|the) room(?! for)", "'this module'"),
    (r"shel(?:f|ves)", "'pool', 'list of spare ones'"),
    (r"takes? (?:it|them) away", "'removes'"),
    (r"what shall", "say what is missing"),
    (r"on paper", "'estimated'"),
    (r"(?:is|are) said(?! to)", "'is reported', 'the message names'"),
    (r"so many(?! are| of)", "'this many', or the number"),
    (r"(?:image|file|pack|archive|it) is whole", "'is valid', 'is complete', 'is not truncated'"),
    (r"look(?:s|ing)? at boxes", "'depends on boxes'"),
    (r"looked at", "'checked', 'read', 'compared', 'processed'"),
]
BANNED = [(re.compile(rf"\b(?:{pattern})\b", re.I), hint) for pattern, hint in PHRASES]
# A question word as the subject: "Who looks up many keys packs one file."
BANNED.append((re.compile(r"(?:^|[.;:] )Who (?!is\b|has\b)[a-z]+s\b"), "start with the subject: 'To …, use …'"))

C_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
TEST_NAME = re.compile(r"^static void ([a-z0-9]+(?:_[a-z0-9]+)+)\(void \*\*", re.M)


def tracked() -> list[str]:
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    skip = ("/corpus/", "/data/", "/golden/", "LICENSE", "tests/lint/english.py", "tests/lint/not_misspelt.txt")
    ends = (".c", ".h", ".cu", ".py", ".pyi", ".md", ".sh", ".build", ".txt", ".yml", ".yaml")
    return [p for p in out.stdout.splitlines()
            if p.endswith(ends) and not any(s in p for s in skip) and (ROOT / p).is_file()]


def prose_of_c(path: str, text: str):
    """Yields (offset, text): comments, adjacent string literals joined, names of unit tests."""
    string, begin, end = "", 0, 0
    for match in C_TOKEN.finditer(text):
        token = match[0]
        if token[0] == '"':
            if string and text[end:match.start()].strip() == "":
                string += token[1:-1]
            else:
                if " " in string:
                    yield begin, string
                string, begin = token[1:-1], match.start()
            end = match.end()
        elif token[0] == "/":
            words = re.sub(r"(?m)^\s*\* ?", "", token.strip("/*"))
            yield match.start(), re.sub(r"`[^`\n]*`", "`code`", words)
    if " " in string:
        yield begin, string
    if path.startswith("tests/unit/"):
        for match in TEST_NAME.finditer(text):
            yield match.start(1), match[1].replace("_", " ")


def prose_of_python(text: str):
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    comment, begin, last = "", 0, -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        at = lines[token.start[0] - 1] + token.start[1]
        if token.type == tokenize.COMMENT:
            if token.start[0] == last + 1:
                comment += "\n" + token.string.lstrip("#")
            else:
                if comment:
                    yield begin, comment
                comment, begin = token.string.lstrip("#"), at
            last = token.start[0]
        elif token.type in (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)) and " " in token.string:
            yield at, token.string
    if comment:
        yield begin, comment


def prose_of_markdown(text: str):
    text = re.sub(r"(?ms)^```.*?^```", lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    text = re.sub(r"`[^`\n]*`", lambda m: "`" + "_" * (len(m[0]) - 2) + "`", text)
    for match in re.finditer(r"(?s)(?:[^\n]+\n?)+", text):
        yield match.start(), match[0]


def prose_of_script(text: str):
    for match in re.finditer(r"(?m)(?:^[^\n#]*#(?!!)[^\n]*\n?)+|'[^'\n]* [^'\n]*'", text):
        yield match.start(), re.sub(r"(?m)^\s*#", "", match[0])


def prose(path: str, text: str):
    if path.endswith((".c", ".h", ".cu")):
        return prose_of_c(path, text)
    if path.endswith((".py", ".pyi")):
        return prose_of_python(text)
    if path.endswith((".md", ".txt")):
        return prose_of_markdown(text)
    return prose_of_script(text)


def line_of_word(raw: str, index: int) -> int:
    for number, match in enumerate(re.finditer(r"\S+", raw)):
        if number == index:
            return raw.count("\n", 0, match.start())
    return 0


def find(path: str) -> list[tuple[int, str, str]]:
    text = (ROOT / path).read_text(errors="replace")
    found = []
    for begin, raw in prose(path, text):
        words = " ".join(raw.split())  # a phrase may be broken across lines
        for pattern, hint in BANNED:
            for match in pattern.finditer(words):
                line = text.count("\n", 0, begin) + 1 + line_of_word(raw, words.count(" ", 0, match.end()))
                found.append((line, match[0], hint))
    return sorted(set(found))


def folder_of(path: str) -> str:
    parts = path.split("/")
    depth = 3 if path.startswith("tests/unit/") else 2 if path.startswith(("src/", "tests/")) else 1
    return "/".join(parts[:depth]) if len(parts) > depth else "/".join(parts[:-1]) or path


def main() -> int:
    asked = [a.rstrip("/") for a in sys.argv[1:] if not a.startswith("-")]
    count = "--count" in sys.argv
    files = tracked()
    if asked:
        files = [p for p in files if any(p == a or p.startswith(a + "/") for a in asked)]
    total, hits = 0, collections.Counter()
    for path in files:
        for line, phrase, hint in find(path):
            total += 1
            hits[folder_of(path)] += 1
            if not count:
                print(f"{path}:{line}: '{phrase}': write {hint}", file=sys.stderr)
    if count:
        for folder, n in sorted(hits.items()):
            print(f"{n:5} {folder}")
    print(f"english: {len(files)} files, {total} phrases to reword")
    return bool(total) and not count


if __name__ == "__main__":
    sys.exit(main())
