# SPDX-License-Identifier: Apache-2.0
import json
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
