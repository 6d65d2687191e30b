# SPDX-License-Identifier: Apache-2.0
import json
import math
import random
import re
from pathlib import Path

import pytest

import leat


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def docs(tmp_path):
    words = [f"word{i}" for i in range(100)]
    rows = [{"id": f"d{i}", "text": " ".join(words[i % 3:60 + i]), "score": i} for i in range(6)]
    rows.append({"id": "short", "text": "two words"})
    return write(tmp_path / "in.jsonl", rows)


def test_filter(docs, tmp_path):
    out = tmp_path / "out"
    report = leat.filter_text(docs, out, rules={"words.min": 5, "urls.max": 3})
    assert (report["documents"], report["kept"], report["dropped"]) == (7, 6, 1)
    assert (out / "kept-00000.jsonl").read_bytes() == b"".join(docs.read_bytes().splitlines(True)[:6])
    assert read(out / "reasons.jsonl")[0]["rule"] == "words.min"
    with pytest.raises(leat.ExistsError):
        leat.filter_text(docs, out, rules={"words.min": 5})
    report = leat.filter_text([docs], out, profile="gopher@paper", rules={"words.min": None, "words.max": 10},
                              force=True, threads=2, memory="64M")
    assert report["kept"] == 0 and report["rules"][1]["failed"] == 6


def test_filter_options(docs, tmp_path):
    assert leat.filter_text(docs, None, rules={"words.min": 5}, explain="short")["explained"][0]["rules"][0]["score"] == 2
    leat.filter_text(docs, tmp_path / "s", score_only=True)
    assert read(tmp_path / "s" / "scores-00000.jsonl")[-1]["words"] == 2
    leat.filter_text(docs, tmp_path / "z", modify=["urls"], compress="zstd", shard_bytes=100)
    assert (tmp_path / "z" / "kept-00001.jsonl.zst").exists() or (tmp_path / "z" / "kept-00000.jsonl.zst").exists()
    write(tmp_path / "other.jsonl", [{"content": "see http://x.y now", "key": 1}])
    leat.filter_text(tmp_path / "other.jsonl", tmp_path / "o", modify="urls", text_field="content", id_field="key")
    assert read(tmp_path / "o" / "kept-00000.jsonl") == [{"content": "see  now", "key": 1}]
    (tmp_path / "bad.jsonl").write_text('{\n{"text":"a"}\n')
    assert leat.filter_text(tmp_path / "bad.jsonl", tmp_path / "b", profile="c4@paper")["bad"] == 1
    with pytest.raises(leat.DataError, match="line 1"):
        leat.filter_text(tmp_path / "bad.jsonl", tmp_path / "b2", profile="c4@paper", on_error="fail")
    with pytest.raises(leat.ArgumentError):
        leat.filter_text(docs, tmp_path / "x", profile="nothing")
    for wrong in ("off", False, math.nan):
        with pytest.raises(leat.ArgumentError, match=rf"^rules: words.min: the threshold {wrong!r} is not a number or None, which switches the rule off$"):
            leat.filter_text(docs, tmp_path / "x", rules={"words.min": wrong})
    with pytest.raises(leat.ArgumentError, match="\"words.min=off\": the profile has no such rule"):
        leat.filter_text(docs, tmp_path / "x", rules={"words.min": None})
    with pytest.raises(leat.ArgumentError):
        leat.filter_text(docs, tmp_path / "x", profile="c4@paper", compress="lz4")


def test_scores_read_back_equal(tmp_path):
    """Scores in files are those of `score_text`, to the last bit; whole numbers stay whole."""
    texts = [f"{'word ' * n}and {'a' * n} longer, longer text. It ends!" for n in range(1, 40)]
    write(tmp_path / "in.jsonl", [{"id": i, "text": text} for i, text in enumerate(texts)])
    exact = leat.score_text(texts)
    leat.filter_text(tmp_path / "in.jsonl", tmp_path / "all", score_only=True)
    rows = read(tmp_path / "all" / "scores-00000.jsonl")
    assert all([row[name] for row in rows] == list(values) for name, values in exact.items())
    assert all(isinstance(row["words"], int) for row in rows)
    leat.filter_text(tmp_path / "in.jsonl", tmp_path / "some", columns="+mean_word_length", rules={"mean_word_length.min": 1 / 0.19})
    kept = {row["id"]: row["mean_word_length"] for row in read(tmp_path / "some" / "kept-00000.jsonl")}
    kept |= {row["id"]: row["score"] for row in read(tmp_path / "some" / "reasons.jsonl")}
    assert [kept[i] for i in range(len(texts))] == list(exact["mean_word_length"])
    assert read(tmp_path / "some" / "reasons.jsonl")[0]["threshold"] == 1 / 0.19


def test_filter_columns(docs, tmp_path):
    leat.filter_text(docs, tmp_path / "c", rules={"words.min": 5}, columns=["score", "id", "+words"])
    assert read(tmp_path / "c" / "kept-00000.jsonl")[1] == {"score": 1, "id": "d1", "words": 60}
    assert (tmp_path / "c" / "kept-00000.jsonl").read_text().startswith('{"score": 0,"id": "d0","words":60}')
    leat.filter_text(docs, tmp_path / "w", columns="+chars")
    assert read(tmp_path / "w" / "kept-00000.jsonl")[6] == {"id": "short", "text": "two words", "chars": 9}
    with pytest.raises(leat.ArgumentError, match="did you mean words"):
        leat.filter_text(docs, tmp_path / "x", columns="+wrds")


def test_filter_says_which_columns_are_missing(docs, tmp_path):
    assert "columns_missing" not in leat.filter_text(docs, tmp_path / "a", columns="id,text,+words")
    report = leat.filter_text(docs, tmp_path / "b", columns="nosuch,text,none", threads=2)
    assert report["columns_missing"] == "nosuch,none"


def test_filter_languages(tmp_path):
    model = Path(__file__).parents[2] / "tests" / "data" / "lid.ftz"
    docs = write(tmp_path / "l.jsonl", [{"text": "the language of this line is english and it has words"},
                                        {"text": "die sprache dieser zeile ist deutsch und sie hat wörter"}])
    report = leat.filter_text(docs, tmp_path / "l", lid=model, lang=["de"], lang_min=0.5, columns="+lang,+lang_score")
    assert report["kept"] == 1 and report["rules"][0]["rule"] == "lang_match.min"
    row = read(tmp_path / "l" / "kept-00000.jsonl")[0]
    assert row["lang"] == "de" and 0.5 < row["lang_score"] <= 1
    with pytest.raises(leat.ArgumentError, match="did you mean"):
        leat.filter_text(docs, tmp_path / "x", lid=model, lang="enn")
    with pytest.raises(leat.DataError, match="not a fastText model"):
        leat.filter_text(docs, tmp_path / "x", lid=docs, lang="en")


def test_filter_report(docs, tmp_path):
    pages = [tmp_path / "r.html", tmp_path / "r.json"]
    result = leat.filter_text(docs, None, rules={"words.min": 61}, report=pages, look=2, explain="d1")
    assert [(row["kind"], row["kept"]) for row in result["looked"]] == [
        ("kept", True)] * 2 + [("dropped", False)] * 2 + [("borderline", row["kept"]) for row in result["looked"][4:]]
    assert result["looked"][2]["rules"][0]["rule"] == "words.min" and result["explained"][0]["id"] == "d1"
    data = json.loads(pages[1].read_text())
    assert data["funnel"][-1]["documents"] == result["kept"] and data["examples"][0]["rule"] == "words.min"
    assert pages[0].read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(leat.ArgumentError, match="must end in"):
        leat.filter_text(docs, None, rules={"words.min": 5}, report=tmp_path / "r.txt")


def test_dedup_report(docs, tmp_path):
    rows = [json.loads(line) for line in docs.read_text().splitlines()]
    write(docs, rows + rows[:2])
    leat.dedup_text(docs, tmp_path / "d", kind="exact", report=[tmp_path / "d.json", tmp_path / "d.html"])
    data = json.loads((tmp_path / "d.json").read_text())
    assert data["sizes"] == [{"from": 2, "to": 2, "clusters": 2, "documents": 4}]
    assert data["largest"][0] == {"kept": "d0", "documents": 2} and "leat dedup exact" in (tmp_path / "d.html").read_text()


def test_dedup(docs, tmp_path):
    plan = leat.dedup_text(docs, tmp_path / "p", plan=True)
    assert plan["plan_documents"] == 7 and plan["documents"] == 0 and not (tmp_path / "p").exists()
    assert leat.dedup_text(docs, None, plan=True)["plan_disk"] == plan["plan_disk"]
    with pytest.raises(leat.ArgumentError, match="output: is needed"):
        leat.dedup_text(docs, None)
    calls = []
    report = leat.dedup_text(docs, tmp_path / "f", threshold=0.6, bands=40, rows=2, progress=lambda *a: calls.append(a))
    assert report["removed"] == 5 and report["below_threshold"] == 0
    clusters = read(tmp_path / "f" / "clusters.jsonl")
    assert {c["kept"] for c in clusters} == {"d0"} and all(c["similarity"] >= 0.6 for c in clusters)
    report = leat.dedup_text(docs, tmp_path / "k", threshold=0.6, bands=40, rows=2, keep="field", keep_field="score",
                             clusters="components", bands_per_iteration=10, memory="64M", threads=1, checkpoint=1)
    assert report["passes"] == 4
    assert {c["kept"] for c in read(tmp_path / "k" / "clusters.jsonl")} == {"d5"}
    assert leat.dedup_text(docs, tmp_path / "e", kind="exact", normalize=True)["removed"] == 0
    leat.dedup_text(docs, tmp_path / "i", kind="exact", index=True)
    assert leat.dedup_text(docs, tmp_path / "l", kind="exact", level="line")["pieces_removed"] == 0
    with pytest.raises(leat.Error, match="whole documents"):
        leat.dedup_text(docs, tmp_path / "l2", kind="exact", level="line", index=True)
    again = leat.dedup_text(docs, tmp_path / "j", kind="exact", against=tmp_path / "i")
    assert again["kept"] == 0 and again["removed_against"] == again["documents"]
    with pytest.raises(leat.ArgumentError):
        leat.dedup_text(docs, tmp_path / "x", kind="exact", bands=3)
    with pytest.raises(leat.BudgetError):
        leat.dedup_text(docs, tmp_path / "y", memory="1M")


def similar(a: list[int], b: list[int]) -> float:
    """The similarity that leat estimates: of one byte per value of the signatures."""
    equal = sum((x * 0x9e3779b1 & 0xffffffff) >> 24 == (y * 0x9e3779b1 & 0xffffffff) >> 24 for x, y in zip(a, b))
    return (equal / len(a) - 1 / 256) / (1 - 1 / 256)


@pytest.mark.parametrize("copies", [1, 2])
def test_components_are_those_of_all_similar_pairs_of_a_band(tmp_path, copies):
    """Chains of edited documents, in any order: each pair that shares a band is an edge if it is similar."""
    rng = random.Random(7)
    texts = []
    for chain in range(30):
        words = [f"w{chain}x{i}" for i in range(100)]
        for step in range(8):
            at = rng.randrange(88)
            words = words[:at] + [f"c{chain}s{step}n{i}" for i in range(rng.randrange(4, 14))] + words[at + 8:]
            texts += [" ".join(words)] * copies
    rng.shuffle(texts)
    bands, rows, threshold = 20, 5, 0.6
    signatures = leat.text_signatures(texts, compatible="datasketch", values=bands * rows)
    group = list(range(len(texts)))
    for a in range(len(texts)):
        for b in range(a):
            x, y = signatures[a], signatures[b]
            shared = any(x[k:k + rows] == y[k:k + rows] for k in range(0, bands * rows, rows))
            if shared and similar(x, y) >= threshold:
                old, new = group[a], group[b]
                group = [new if g == old else g for g in group]
    places = list(range(len(texts)))
    for keep in ("first", "longest"):
        rng.shuffle(places)
        path = tmp_path / f"{keep}.jsonl"
        path.write_text("".join(json.dumps({"id": str(i), "text": texts[i]}) + "\n" for i in places))
        report = leat.dedup_text(path, tmp_path / keep, compatible="datasketch", bands=bands, rows=rows, threshold=threshold,
                                 clusters="components", keep=keep)
        assert report["kept"] == len(set(group)) < len(texts) / copies
        clusters = read(tmp_path / keep / "clusters.jsonl")
        assert all(group[int(c["id"])] == group[int(c["kept"])] for c in clusters)


@pytest.mark.parametrize("count", [400, 640])
def test_documents_of_a_crowded_band_are_counted(tmp_path, count):
    """With 1024 values, a band compares 512 documents."""
    words = [f"w{i}" for i in range(800)]
    path = write(tmp_path / "b.jsonl", [{"text": " ".join(words[:i] + [f"own{i}"] + words[i:])} for i in range(count)])
    report = leat.dedup_text(path, tmp_path / "o", bands=128, rows=8, threshold=1)
    assert report["removed"] == 0
    assert (report["crowded"] > 0) == (count > 512)


def test_scores():
    one = leat.score_text("The cat sat on the mat. Héllo!")
    assert one["words"] == 7 and one["sentences"] == 2
    several = leat.score_text(["a b", ""])
    assert several["words"] == [2, 0]
    names = leat.text_names()
    assert "gopher@paper" in names["profiles"] and "pii" in names["modifiers"] and set(one) == set(names["scores"])
    with pytest.raises(leat.ArgumentError, match="^texts: number 1 is 5, not str"):
        leat.score_text(["a", 5])


def test_any_characters_are_scored():
    """As in files: a surrogate without its partner counts as U+FFFD."""
    several = leat.score_text(["a\x00b", "a \ud800 b", "a \ufffd b", "\ud83d\ude00", "\U0001f600"])
    assert all(len(values) == 5 and values[1] == values[2] and values[3] == values[4] for values in several.values())
    assert leat.score_text("\ud800 word")["words"] >= 1
    signed = leat.text_signatures(["one two three four five \ud800", "one two three four five \ufffd"])
    assert signed[0] == signed[1]


def test_decontaminate(tmp_path):
    shared = "one two three four five six seven eight nine ten eleven twelve thirteen"
    (tmp_path / "c.jsonl").write_text(json.dumps({"id": "bad", "text": f"Before it. {shared.upper()}! After."}) + "\n" +
                                      json.dumps({"id": "good", "text": "nothing of it"}) + "\n")
    (tmp_path / "e.jsonl").write_text(json.dumps({"id": "q1", "question": f"so: {shared}?"}) + "\n")
    evals = dict(evals=tmp_path / "e.jsonl", eval_field=["question", "answer"])
    report = leat.decontaminate_text(tmp_path / "c.jsonl", tmp_path / "d", **evals)
    assert (report["contaminated"], report["kept"], report["evals_found"]) == (1, 1, 1)
    match = json.loads((tmp_path / "d" / "matches.jsonl").read_text())
    assert match["id"] == "bad" and match["eval"] == "q1" and match["span"] == shared.upper() and not match["kept"]
    report = leat.decontaminate_text(tmp_path / "c.jsonl", tmp_path / "s", by="span", window=2, **evals)
    assert (report["kept"], report["spans"]) == (2, 1)
    assert json.loads((tmp_path / "s" / "kept-00000.jsonl").read_text().splitlines()[0])["text"] == "Before it\nAfter."
    assert leat.decontaminate_text(tmp_path / "c.jsonl", tmp_path / "m", min_matches=2, **evals)["contaminated"] == 0
    with pytest.raises(leat.Error, match="13 words"):
        leat.decontaminate_text(tmp_path / "c.jsonl", tmp_path / "x", evals=tmp_path / "c.jsonl", eval_field="id")


def test_signatures():
    """Values of datatrove 0.10.1 and datasketch 2.0.0, whose shingles are those of `text_signatures`."""
    text = "The quick brown fox jumps over the lazy dog."
    assert leat.text_signatures(text, values=4) == [0x1a10a3766a5db31, 0x7cf7c5470a629, 0x2fb173cb0ecaa96, 0xcb37cf59dcb52fb]
    assert leat.text_signatures([text, "one"], values=4, compatible="datasketch") == [
        [0x129709bb, 0x194807b, 0x61dcf577, 0x1fa75b75], leat.text_signatures("one", values=4, compatible="datasketch")]
    assert leat.text_signatures("one two three four") is None
    with pytest.raises(leat.ArgumentError):
        leat.text_signatures(text, chars=3)
    with pytest.raises(leat.ArgumentError):
        leat.text_signatures(text, compatible="none")


@pytest.mark.parametrize("scheme", ["affine32", "legacy"])
def test_signatures_of_datasketch(scheme):
    """Against datasketch itself, where it is installed."""
    datasketch = pytest.importorskip("datasketch", minversion="2.0")
    text = "Größe ÉCOLE İstanbul ΟΔΟΣ one two three four five six"
    words = text.lower().split()
    theirs = datasketch.MinHash(num_perm=112, scheme=scheme)
    theirs.update_batch([" ".join(words[i:i + 5]).encode() for i in range(len(words) - 4)])
    assert leat.text_signatures(text, compatible="datasketch" if scheme == "affine32" else "datasketch-legacy") == theirs.hashvalues.tolist()


def test_dedup_compatible(docs, tmp_path):
    report = leat.dedup_text(docs, tmp_path / "c", compatible="datasketch")
    assert report["candidates"] == report["verified"] > 0
    checked = leat.dedup_text(docs, tmp_path / "v", compatible="datasketch", threshold=0.99)
    assert checked["removed"] < report["removed"]


def _without_repeats(texts, n):
    """What `leat dedup substring` leaves, in plain Python."""
    first, number, out = {}, 0, []
    for text in texts:
        words = list(re.finditer("[A-Za-z0-9]+", text))
        names = [word.group().lower() for word in words]
        gone = [False] * len(words)
        for i in range(len(words) - n + 1):
            if number + i - first.setdefault(tuple(names[i:i + n]), number + i) >= n:
                gone[i:i + n] = [True] * n
        number += max(0, len(words) - n + 1) + n
        parts, start, i = [], 0, 0
        while i < len(words):
            if not gone[i]:
                i += 1
                continue
            parts.append(text[start:words[i].start()])
            while i < len(words) and gone[i]:
                i += 1
            start = words[i].start() if i < len(words) else len(text)
        parts.append(text[start:])
        rest = "\n".join(part for part in parts if part)
        out.append(None if words and all(gone) else rest.rstrip() if words and gone[-1] else rest)
    return out


def test_dedup_substring(tmp_path):
    rng = random.Random(4)
    texts = ["".join(rng.choice("aabc") + rng.choice([" ", ", ", "\n", "  "]) for _ in range(rng.randint(0, 60))) for _ in range(300)]
    rows = [{"id": i, "text": text} for i, text in enumerate(texts)]
    for n in (3, 6, 10):
        report = leat.dedup_text(write(tmp_path / "in.jsonl", rows), tmp_path / f"n{n}", kind="substring", words=n, threads=n % 3 + 1)
        want = [{"id": i, "text": text} for i, text in enumerate(_without_repeats(texts, n)) if text is not None]
        assert read(tmp_path / f"n{n}" / "kept-00000.jsonl") == want and report["kept"] == len(want) and report["pieces_removed"] > 0
    with pytest.raises(leat.ArgumentError, match="level"):
        leat.dedup_text(tmp_path / "in.jsonl", tmp_path / "x", kind="substring", level="line")
    assert leat.dedup_text(tmp_path / "in.jsonl", tmp_path / "p", kind="substring", plan=True)["plan_disk"] > 0


def test_profiles_may_be_a_list(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text":"one two three"}\n')
    for run in (leat.filter_text, leat.dedup_text):
        names = {rule["profile"] for rule in run(tmp_path / "in.jsonl", tmp_path / run.__name__, profile=["c4@paper", "fineweb@paper"])["rules"]}
        assert names == {"c4@paper", "fineweb@paper"}
        with pytest.raises(leat.ArgumentError, match="^profile: number 0 is 5, not str"):
            run(tmp_path / "in.jsonl", tmp_path / "none", profile=[5])


@pytest.mark.parametrize("run, options", [
    (leat.filter_text, dict(rules={"words.min": 1})), (leat.dedup_text, dict(kind="exact")), (leat.dedup_text, dict(kind="substring")),
    (leat.decontaminate_text, None),
])
def test_a_run_without_texts_is_an_error(run, options, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"id":1}\nbroken\n')
    (tmp_path / "empty.jsonl").write_text("")
    if options is None:
        (tmp_path / "evals.jsonl").write_text(json.dumps({"text": " ".join(map(str, range(20)))}) + "\n")
        options = dict(evals=tmp_path / "evals.jsonl")
    with pytest.raises(leat.DataError, match=rf"^no line has a text that could be read \(2 lines\): see {tmp_path}/out/bad.jsonl$"):
        run(tmp_path / "in.jsonl", tmp_path / "out", **options)
    assert len((tmp_path / "out" / "bad.jsonl").read_text().splitlines()) == 2
    assert run(tmp_path / "empty.jsonl", tmp_path / "none", **options)["documents"] == 0
    before = (tmp_path / "out" / "report.json").read_text()
    with pytest.raises(leat.DataError, match=r"^no line has a text that could be read \(2 lines\): the earlier output in .*/out is kept \(check text_field,"):
        run(tmp_path / "in.jsonl", tmp_path / "out", force=True, **options)
    assert (tmp_path / "out" / "report.json").read_text() == before
