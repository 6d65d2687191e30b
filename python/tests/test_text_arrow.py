# SPDX-License-Identifier: Apache-2.0
import decimal
import json
import math
import os
from pathlib import Path

import pytest

import leat

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def table(n=20, start=0):
    texts = [None if i % 10 == 9 else " ".join(f"w{i}x{k}" for k in range(i % 10)) + " see http://a.b/c" for i in range(start, start + n)]
    return pa.table({"id": [f"d{i}" for i in range(start, start + n)], "text": texts, "blob": [bytes([i % 256]) for i in range(start, start + n)],
                     "list": [[i, i + 1] for i in range(start, start + n)]})


def test_table():
    source = table()
    kept, report = leat.filter_table(source, rules={"words.min": 6}, columns="blob,id,+words")
    assert kept.column_names == ["blob", "id", "words"]
    assert kept["id"].to_pylist() == [f"d{i}" for i in range(20) if 4 <= i % 10 < 9]
    assert kept["words"].to_pylist()[:2] == [6, 7] and kept["blob"].to_pylist()[0] == b"\x04"
    assert (report["documents"], report["kept"], report["bad"]) == (18, 10, 2)
    whole, _ = leat.filter_table(source, rules={"words.min": 6})
    assert whole.schema == source.schema and whole["list"].to_pylist()[0] == [4, 5]
    changed, _ = leat.filter_table({"text": ["see http://a.b/c now"]}, modify="urls")
    assert changed["text"].to_pylist() == ["see  now"]
    nothing, _ = leat.filter_table(source, rules={"words.min": 1000}, columns=["id", "+words"])
    assert nothing.num_rows == 0 and nothing.column_names == ["id", "words"]


@pytest.mark.parametrize("kind", ["large_string", "string_view", "binary", "large_binary", "binary_view", "dictionary"])
def test_types_of_texts(kind):
    plain = table()
    texts = plain["text"].dictionary_encode() if kind == "dictionary" else plain["text"].cast(getattr(pa, kind)())
    source = plain.set_column(1, "text", texts)
    kept, report = leat.filter_table(source, rules={"words.min": 6}, modify="urls")
    assert kept.schema == source.schema and report["bad"] == 2
    assert kept["id"].to_pylist() == [f"d{i}" for i in range(20) if 5 <= i % 10 < 9]
    unique, _ = leat.dedup_table(pa.concat_tables([source, source]), kind="exact")
    assert unique.num_rows == 17 and unique.schema == source.schema


def test_texts_that_are_none():
    with pytest.raises(leat.DataError, match="column 'list' is list<.*, not text"):
        leat.filter_table(table(), text_field="list", rules={"words.min": 1})
    kept, report = leat.filter_table({"text": [b"good text", b"\xff\xfe", None]}, rules={"words.min": 1})
    assert kept["text"].to_pylist() == [b"good text"] and (report["documents"], report["bad"]) == (1, 2)
    assert leat.score_text(pa.array(["a b", "c"]))["words"] == [2, 1]
    assert leat.score_text(pa.chunked_array([["a b"], ["c"]]))["words"] == [2, 1]


@pytest.mark.parametrize("kind", ["string", "large_string", "binary", "dictionary"])
def test_texts_that_are_not_utf8(kind, tmp_path):
    """Row 5000 is not in the first batch."""
    rows = [b"some text %d" % i for i in range(6000)]
    rows[5000], rows[5001] = b"caf\xe9 noir\n", None
    plain = pa.array(rows, pa.large_binary() if kind == "large_string" else pa.binary())
    texts = plain if kind == "binary" else plain.view(getattr(pa, kind)()) if kind != "dictionary" else plain.view(pa.string()).dictionary_encode()
    source = pa.table({"text": texts, "id": pa.array([b"\xff%d" % i for i in range(6000)], pa.binary()).view(pa.string())})
    kept, report = leat.filter_table(source, rules={"words.min": 1})
    assert kept.num_rows == 5998 and report["bad"] == 2
    pa.parquet.write_table(source, tmp_path / "in.parquet")
    for run, options in ((leat.filter_parquet, dict(rules={"words.min": 1})), (leat.dedup_parquet, dict(kind="exact"))):
        out = tmp_path / run.__name__
        assert run(tmp_path / "in.parquet", out, **options)["kept"] == 5998
        assert [(bad["row"], bad["reason"]) for bad in map(json.loads, (out / "bad.jsonl").read_text().splitlines())] == \
            [(5000, "not valid UTF-8"), (5001, "the text field is null")]
        with pytest.raises(leat.DataError, match=r"in.parquet: row 5000: .*not valid UTF-8"):
            run(tmp_path / "in.parquet", tmp_path / "failed", on_error="fail", **options)


def test_output_folders_are_protected(tmp_path):
    """Of a folder that is an input, of files that would be replaced, and of a run that is not over."""
    data = tmp_path / "data"
    data.mkdir()
    pq.write_table(table(30), data / "a.parquet")
    for run in (leat.filter_parquet, leat.dedup_parquet):
        options = {"rules": {"words.min": 1}} if run is leat.filter_parquet else {}
        with pytest.raises(leat.ArgumentError, match="data: is an input"):
            run(data, data, **options)
        out = tmp_path / f"out-{run.__name__}"
        out.mkdir()
        (out / "kept-00007.parquet").write_bytes(b"mine")
        with pytest.raises(leat.ExistsError, match="would replace: kept-00007.parquet"):
            run(data, out, **options)
        with pytest.raises(leat.ExistsError, match="kept-00007.parquet"):
            run(data, out, force=True, **options)
        assert (out / "kept-00007.parquet").read_bytes() == b"mine"
        (out / "kept-00007.parquet").unlink()

        def again(*_, run=run, out=out, options=options):
            with pytest.raises(leat.StateError, match="in use by another run"):
                run(data, out, **options)

        run(data, out, progress=again, **options)
        before = sorted(os.listdir(out))
        assert json.loads((out / "report.json").read_text())["written"] == [name for name in before if name != "report.json"]
        (out / "kept-00009.parquet").write_bytes(b"mine")  # not of that run
        with pytest.raises(leat.ExistsError, match="would replace: kept-00009.parquet, and no report of leat that names it"):
            run(data, out, force=True, **options)
        assert (out / "kept-00009.parquet").read_bytes() == b"mine"
        (out / "kept-00009.parquet").unlink()
        run(data, out, force=True, **options)
        assert sorted(os.listdir(out)) == before and ".leat-lock" not in before


def test_interrupted_runs_are_replaced_only_with_force(tmp_path):
    pq.write_table(table(30), tmp_path / "a.parquet")
    for run in (leat.filter_parquet, leat.dedup_parquet):
        options = {"rules": {"words.min": 1}} if run is leat.filter_parquet else {}
        work = tmp_path / run.__name__ / ".leat-work"
        work.mkdir(parents=True)
        (work / "state.json").write_text("{}")
        with pytest.raises(leat.ExistsError, match="has an interrupted run of leat dedup"):
            run(tmp_path / "a.parquet", work.parent, **options)
        assert (work / "state.json").exists()
        run(tmp_path / "a.parquet", work.parent, force=True, **options)
        assert not work.exists()


def test_incomplete_output_is_not_read(tmp_path):
    """A run that was killed while it replaced the files leaves its mark in the lock."""
    half = tmp_path / "half"
    half.mkdir()
    pq.write_table(table(30), half / "kept-00000.parquet")
    (half / ".leat-lock").write_text("1\nfiles of leat\n")
    for run in (leat.filter_parquet, leat.dedup_parquet):
        for source in (half, half / "kept-*.parquet", half / "kept-00000.parquet"):
            with pytest.raises(leat.DataError, match="half: incomplete output"):
                run(source, tmp_path / "out", **({"rules": {"words.min": 1}} if run is leat.filter_parquet else {}))


def test_inputs_are_not_replaced(tmp_path):
    out = tmp_path / "out"
    pq.write_table(table(30), tmp_path / "a.parquet")
    leat.filter_parquet(tmp_path / "a.parquet", out, rules={"words.min": 1})
    before = (out / "kept-00000.parquet").read_bytes()
    for run in (leat.filter_parquet, leat.dedup_parquet):
        with pytest.raises(leat.ArgumentError, match="is an input"):
            run(out, out, force=True, **({"rules": {"words.min": 8}} if run is leat.filter_parquet else {}))
    assert (out / "kept-00000.parquet").read_bytes() == before and (out / "report.json").exists()


def test_table_languages():
    model = Path(__file__).parents[2] / "tests" / "data" / "lid.ftz"
    texts = ["the language of this line is english and it has words", "die sprache dieser zeile ist deutsch und sie hat wörter"]
    kept, _ = leat.filter_table({"body": texts}, text_field="body", lid=model, lang="de", columns="+lang,+lang_score")
    assert kept["lang"].to_pylist() == ["de"] and kept["body"].to_pylist() == texts[1:] and kept["lang_score"].to_pylist()[0] > 0.5


def test_parquet(tmp_path):
    (tmp_path / "in").mkdir()
    pq.write_table(table(10000), tmp_path / "in" / "a.parquet", row_group_size=700)
    pq.write_table(table(0), tmp_path / "in" / "b.parquet")
    pq.write_table(table(30, 10000), tmp_path / "in" / "c.parquet")
    out = tmp_path / "out"
    report = leat.filter_parquet(tmp_path / "in", out, rules={"words.min": 6}, report=tmp_path / "r.html", look=1)
    assert (report["documents"], report["kept"], report["bad"], report["shards"]) == (9027, 5015, 1003, 3)
    read = [pq.read_table(out / f"kept-{i:05}.parquet") for i in range(3)]
    assert [t.num_rows for t in read] == [5000, 0, 15]
    want = table(10000).filter(pa.array([4 <= i % 10 < 9 for i in range(10000)]))
    assert read[0].equals(want) and read[1].schema == table(0).schema
    reasons = [json.loads(line) for line in (out / "reasons.jsonl").read_text().splitlines()]
    assert reasons[0]["id"] == "d0" and reasons[0]["row"] == 0 and reasons[0]["file"].endswith("a.parquet")
    bad = [json.loads(line) for line in (out / "bad.jsonl").read_text().splitlines()]
    assert bad[-1]["row"] == 29 and bad[-1]["file"].endswith("c.parquet")
    assert sorted(p.name for p in out.iterdir()) == ["bad.jsonl"] + [f"kept-{i:05}.parquet" for i in range(3)] + ["reasons.jsonl", "report.json"]
    assert (tmp_path / "r.html").exists() and len(report["looked"]) >= 2
    with pytest.raises(leat.ExistsError):
        leat.filter_parquet(tmp_path / "in", out, rules={"words.min": 6})
    report = leat.filter_parquet(tmp_path / "in" / "c.parquet", out, modify=["urls"], columns=["text", "+words"], force=True, compression="none")
    assert pq.read_table(out / "kept-00000.parquet")["text"].to_pylist()[1] == "w10001x0 see " and not (out / "kept-00001.parquet").exists()


def test_parquet_wrong(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"not parquet")
    with pytest.raises(leat.DataError, match="x.parquet"):
        leat.filter_parquet(tmp_path / "x.parquet", tmp_path / "o", profile="c4@paper")
    with pytest.raises(leat.NotFoundError):
        leat.filter_parquet(tmp_path / "y.parquet", tmp_path / "o", profile="c4@paper")
    pq.write_table(table(3), tmp_path / "z.parquet")
    with pytest.raises(leat.DataError, match="has no column 'body'"):
        leat.filter_parquet(tmp_path / "z.parquet", tmp_path / "o", profile="c4@paper", text_field="body")
    with pytest.raises(leat.ArgumentError, match="there is no column 'nothing'"):
        leat.filter_parquet(tmp_path / "z.parquet", tmp_path / "o", rules={"words.min": 1}, columns="nothing")
    with pytest.raises(leat.ArgumentError):
        leat.filter_table(7, profile="c4@paper")
    assert not list((tmp_path / "o").iterdir())


@pytest.mark.parametrize("run", [leat.filter_parquet, leat.dedup_parquet])
@pytest.mark.parametrize("column", ["text", "blob"])  # read before the run, or when the kept rows are written
def test_a_damaged_page_is_named(run, column, tmp_path):
    path = tmp_path / "x.parquet"
    rows = table(3000)
    pq.write_table(rows, path, compression="snappy", use_dictionary=False)
    chunk = next(c for c in (pq.ParquetFile(path).metadata.row_group(0).column(i) for i in range(4)) if c.path_in_schema == column)
    data = bytearray(path.read_bytes())
    end = chunk.data_page_offset + chunk.total_compressed_size
    data[end - 200:end] = b"\xff" * 200
    path.write_bytes(data)
    options = dict(rules={"words.min": 1}) if run is leat.filter_parquet else {}
    with pytest.raises(leat.DataError, match=r"x\.parquet: .*[Cc]orrupt"):
        run(path, tmp_path / "out", **options)


@pytest.mark.parametrize("run", [leat.filter_parquet, leat.dedup_parquet])
def test_errors_name_the_file_and_the_row(run, tmp_path):
    pq.write_table(table(5), tmp_path / "a.parquet")
    pq.write_table(table(20, 5), tmp_path / "b.parquet")
    options = dict(rules={"words.min": 1}) if run is leat.filter_parquet else {}
    with pytest.raises(leat.DataError) as error:
        run([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "out", on_error="fail", **options)
    assert str(error.value).startswith(f"{tmp_path}/b.parquet: row 4: ")
    assert ".jsonl" not in str(error.value) and "offset" not in str(error.value)
    assert error.value.offset is None


def test_errors_of_a_table_name_the_row():
    with pytest.raises(leat.BudgetError, match=r"^table: row 1 of \d+ bytes"):
        leat.filter_table({"text": ["a b c", "word " * 2000000]}, rules={"words.min": 1}, memory="48M")


def similar(n=300, start=0):
    """Every third row is like the one before it, with a larger score."""
    texts = []
    for i in range(start, start + n):
        seed = i - (i % 3 == 2)
        words = [f"w{seed}x{k}" for k in range(60)]
        texts.append(" ".join(words[:-1] + ["changed"] if seed != i else words))
    return pa.table({"key": list(range(start, start + n)), "body": texts, "score": [float(i) for i in range(n)], "blob": [b"x"] * n})


@pytest.mark.parametrize("kind", ["exact", "fuzzy"])
@pytest.mark.parametrize(("name", "numbers"), [
    ("n", pa.array([1763430000000000000, 1763430000000000100, 0])), ("n", pa.array([2**53, 2**53 + 1, None])),
    ("n", pa.array([2**63, 2**64 - 1, 2**64 - 2], pa.uint64())), ("n", pa.array([-(2**63), -(2**63) + 1, None])),
    ("n", pa.array([1e300, math.inf, math.nan])), ("id", pa.array([2**53, 2**53 + 1, 0])), ("row", pa.array([1, 2, 0]))])
def test_keep_field_is_exact(kind, name, numbers):
    text = "one two three four five six"
    kept, _ = leat.dedup_table({"text": [text] * 3, name: numbers, "at": [0, 1, 2]}, kind=kind, keep="field", keep_field=name)
    assert kept["at"].to_pylist() == [1]


def test_dedup_table():
    source = similar()
    kept, report = leat.dedup_table(source, text_field="body", id_field="key")
    assert (report["documents"], report["kept"], report["removed"]) == (300, 200, 100) and kept.schema == source.schema
    assert kept["key"].to_pylist() == [i for i in range(300) if i % 3 != 2]
    last, _ = leat.dedup_table(source, text_field="body", keep="field", keep_field="score")
    assert last["key"].to_pylist() == [i for i in range(300) if i % 3 != 1]
    exact, report = leat.dedup_table({"text": ["a b", "a  B", "c"]}, kind="exact", normalize=True)
    assert exact["text"].to_pylist() == ["a b", "c"]
    lines, _ = leat.dedup_table({"text": ["one\ntwo", "two\nthree"]}, kind="exact", level="line")
    assert lines["text"].to_pylist() == ["one\ntwo", "three"]
    with pytest.raises(leat.DataError, match="'absent'"):
        leat.dedup_table(source, text_field="body", keep="field", keep_field="absent")
    with pytest.raises(leat.DataError, match='number in "blob"'):
        leat.dedup_table(source, text_field="body", keep="field", keep_field="blob")
    with pytest.raises(leat.ArgumentError):
        leat.dedup_table({"text": ["a"]}, kind="exact", bands=3)


def test_an_id_that_is_nan_is_missing(tmp_path):
    pq.write_table(pa.table({"text": ["one two"] * 3, "id": [1.5, math.nan, None]}), tmp_path / "a.parquet")
    leat.dedup_parquet(tmp_path / "a.parquet", tmp_path / "out", kind="exact")
    found = [json.loads(line)["id"] for line in (tmp_path / "out/clusters.jsonl").read_text().splitlines()]
    assert found == [f"{tmp_path}/a.parquet:1", f"{tmp_path}/a.parquet:2"]


def test_dedup_parquet(tmp_path):
    (tmp_path / "in").mkdir()
    pq.write_table(similar(3000), tmp_path / "in" / "a.parquet", row_group_size=700)
    pq.write_table(similar(0), tmp_path / "in" / "b.parquet")
    pq.write_table(similar(30, 30), tmp_path / "in" / "c.parquet")  # all of them are in the first file
    out = tmp_path / "out"
    report = leat.dedup_parquet(tmp_path / "in", out, text_field="body", id_field="key", index=True, report=tmp_path / "r.json")
    assert (report["documents"], report["kept"], report["shards"]) == (3030, 2000, 3)
    read = [pq.read_table(out / f"kept-{i:05}.parquet") for i in range(3)]
    assert [t.num_rows for t in read] == [2000, 0, 0] and read[0].schema == similar(3).schema
    clusters = [json.loads(line) for line in (out / "clusters.jsonl").read_text().splitlines()]
    assert len(clusters) == 1030 and clusters[0]["id"] == 2 and clusters[0]["kept"] == 1
    assert json.loads((out / "report.json").read_text())["kept"] == 2000 and (tmp_path / "r.json").exists()
    assert sorted(path.name for path in out.iterdir()) == ["bad.jsonl", "clusters.jsonl", "index.leat-dedup", "kept-00000.parquet",
                                                           "kept-00001.parquet", "kept-00002.parquet", "report.json"]
    with pytest.raises(leat.ExistsError):
        leat.dedup_parquet(tmp_path / "in", out, text_field="body")
    again = leat.dedup_parquet(tmp_path / "in" / "c.parquet", tmp_path / "again", text_field="body", against=out)
    assert again["kept"] == 0 and again["removed_against"] == 30
    (out / ".leat-parquet-ab_d1234" / "out").mkdir(parents=True)  # of a run that was killed
    report = leat.dedup_parquet(tmp_path / "in" / "c.parquet", out, text_field="body", compatible="datasketch", force=True)
    assert not list(out.glob(".leat-*"))
    assert report["kept"] == 20 and not (out / "index.leat-dedup").exists() and not (out / "kept-00001.parquet").exists()


def test_tables_with_odd_columns():
    with pytest.raises(leat.ArgumentError, match="a surrogate without its partner"):
        leat.filter_table({"text": ["a\ud800b"]}, rules={"words.min": 1})
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    with pytest.raises(leat.DataError, match="several columns 'text'"):
        leat.filter_table(twice, rules={"words.min": 1})
    scored = {"words": ["old", "older"], "text": ["one two three", "four"]}
    kept, _ = leat.filter_table(scored, columns="+words")
    assert kept.column_names == ["words", "text"] and kept["words"].to_pylist() == [3, 1]
    with pytest.raises(leat.ArgumentError, match="'words' appears twice"):
        leat.filter_table(scored, columns="words,+words")
    with pytest.raises(leat.ArgumentError, match=r"\+words would replace the text"):
        leat.filter_table(scored, text_field="words", columns="+words")


@pytest.mark.parametrize("kind", [pa.null(), pa.string(), pa.large_string(), pa.binary()])
def test_texts_that_are_all_null(tmp_path, kind):
    source = pa.table({"id": pa.array([1, 2]), "text": pa.array([None, None], kind)})
    filtering = dict(rules={"words.min": 1}, modify="newlines", columns="id,text,+words")
    pa.parquet.write_table(source, tmp_path / "in.parquet")
    for run, options in ((leat.filter_table, filtering), (leat.dedup_table, {})):
        with pytest.raises(leat.DataError, match=r"^no row has a text that could be read \(2 rows\)$"):
            run(source, **options)
        left, report = run(source.slice(0, 0), **options)  # no rows at all
        assert left.num_rows == report["bad"] == report["documents"] == 0
    for run, out, options in ((leat.filter_parquet, "out", filtering), (leat.dedup_parquet, "unique", dict(kind="exact"))):
        with pytest.raises(leat.DataError, match=rf"^no row has a text that could be read \(2 rows\): see {tmp_path}/{out}/bad.jsonl$"):
            run(tmp_path / "in.parquet", tmp_path / out, **options)
        assert pa.parquet.read_table(tmp_path / out / "kept-00000.parquet").num_rows == 0
        assert len((tmp_path / out / "bad.jsonl").read_text().splitlines()) == 2
        assert json.loads((tmp_path / out / "report.json").read_text())["bad"] == 2
        before = (tmp_path / out / "report.json").read_text()
        with pytest.raises(leat.DataError, match=r"^no row has a text that could be read \(2 rows\): the earlier output in .* is kept"):
            run(tmp_path / "in.parquet", tmp_path / out, force=True, **options)
        assert (tmp_path / out / "report.json").read_text() == before and not list((tmp_path / out).glob(".leat-*"))


def test_decimals_are_compared():
    scores = pa.array([decimal.Decimal("1.5"), decimal.Decimal("12.25"), decimal.Decimal("3")])
    kept, _ = leat.dedup_table(pa.table({"text": ["same"] * 3, "score": scores, "at": [0, 1, 2]}), kind="exact", keep="field", keep_field="score")
    assert kept["at"].to_pylist() == [1]


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.duration("ns"), pa.time64("ns")])
def test_times_in_nanoseconds_are_ids_and_no_numbers(kind):
    times = pa.array([1763430000100, 1763430000200], pa.int64()).cast(kind)
    kept, _ = leat.dedup_table(pa.table({"id": times, "text": ["x", "y"]}), kind="exact")
    assert len(kept["text"].to_pylist()) == 2
    with pytest.raises(leat.DataError, match="no document has a number"):
        leat.dedup_table(pa.table({"text": ["x", "x"], "s": times}), kind="exact", keep="field", keep_field="s")
