# SPDX-License-Identifier: Apache-2.0
"""Text curation: the commands `leat filter` and `leat dedup`, and scores of texts, from Python."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _check, _leat
from ._errors import ArgumentError, DataError, counted, shown
from ._pack import Path, Progress, _run

_COMPRESS = {"none": 0, "gzip": 1, "zstd": 2}
_CLUSTERS = {"star": 0, "components": 1}
_KEEP = {"first": 0, "longest": 1, "field": 2}
_COMPATIBLE = {"none": 0, "datasketch": 1, "datasketch-legacy": 2, "datatrove": 3}
_LEVELS = {"document": 0, "line": 1, "paragraph": 2}
_SUBSTRING = 3
_POLICIES = {"skip": 0, "fail": 1}
_FLAGS = {"force": "replace", "plan": "plan_only"}  # their names in C


class NoTextError(DataError):
    """No line of the input has a text. `report` has the counts of the run, whose output is complete."""

    def __init__(self, report: dict[str, Any], output: str | None, unit: str) -> None:
        super().__init__(f"no {unit} has a text that could be read ({counted(report['bad'], unit)})" + (f": see {output}/bad.jsonl" if output else ""))
        self.report = report


def with_texts(report: dict[str, Any], output: str | None, unit: str = "line") -> dict[str, Any]:
    """Returns the report of a run, or raises when it read lines but no text, as the command does."""
    if report["documents"] == 0 and report["bad"] > 0:
        raise NoTextError(report, output, unit)
    return report


def _text(name: str, value: object) -> str | None:
    return None if value is None else _check.text(name, value)


def _names(name: str, value: Any) -> str | None:
    """Returns names, given as one text or as several, as text for C."""
    return _text(name, value if value is None or isinstance(value, str) else ",".join(_check.several(name, value)))


def _thresholds(rules: Any) -> str | None:
    """Returns the changes of thresholds as text for C."""
    if rules is not None and not isinstance(rules, Mapping):
        raise ArgumentError(f"rules: {shown(rules)} is not a dict of rule to threshold")
    parts = []
    for name, value in (rules or {}).items():
        _check.text("rules", name)
        try:
            number = "off" if value is None else repr(_check.real(f"rules: {name}", value, -math.inf, math.inf))
        except ArgumentError:
            raise ArgumentError(f"rules: {name}: the threshold {shown(value)} is not a number or None, which switches the rule off") from None
        parts.append(f"{name}={number}")
    return ",".join(parts) or None


def _pages(report: Any) -> str | None:
    """Returns the files of a report as text for C."""
    pages = [] if report is None else [_check.utf8_path("report", path) for path in _check.paths("report", report)]
    for page in pages:
        if "," in page:
            raise ArgumentError(f"report: {shown(page)} has a comma")
    return ",".join(pages) or None


def _task_bytes(on: object, task_bytes: object) -> int:
    """Checks the options of a cluster."""
    size = _check.size("task_bytes", task_bytes)
    if on is None and size:
        raise ArgumentError("task_bytes: has no effect without on")
    if on is not None:
        from . import _ray
        _ray.check(on)
    return size


def filter_text(source: Path | Sequence[Path], output: Path | None, *, profile: str | Sequence[str] | None = None,
                rules: dict[str, float | None] | None = None, modify: str | Sequence[str] | None = None,
                text_field: str = "text", id_field: str = "id", score_only: bool = False,
                columns: str | Sequence[str] | None = None, lid: Path | None = None,
                lang: str | Sequence[str] | None = None, lang_min: float = 0,
                report: Path | Sequence[Path] | None = None, look: int = 0, seed: int = 0, explain: str | None = None, compress: str = "none", shard_bytes: int | str = 0,
                max_document: int | str = 0, on_error: str = "skip", threads: int = 0, memory: int | str = 0,
                force: bool = False, on: str | None = None, task_bytes: int | str = 0,
                progress: Progress | None = None) -> dict[str, Any]:
    """Keeps the documents of JSONL files that pass named rules; what `leat filter` does.

    >>> leat.filter_text("crawl", "kept", profile="gopher@paper", rules={"words.min": 20})
    {'documents': 1000, 'kept': 812, 'dropped': 188, 'bad': 0, 'rules': [...], ...}

    Parameters
        source: JSONL files (plain, .gz, .zst), folders or patterns
        output: folder for kept documents, reasons, bad lines and the report; None only counts
        profile: names of profiles, in a list or separated by commas (see `text_names`)
        rules: changes of thresholds; None switches a rule off
        modify: modifiers of the text, in this order
        text_field, id_field: keys of the text and of the id
        columns: keys of kept documents to write, in this order; "+words" adds a score; only scores: the whole line with them
        lid: fastText model (.bin, .ftz) that identifies languages: scores lang_score and lang_match, column "+lang"
        lang: labels of the languages to keep
        lang_min: least probability of the label
        report: file or files for a report: NAME.html is a page with plots and examples, NAME.json its data
        look: how many random kept, dropped and borderline documents to add to the result as "looked"
        seed: of that choice
        score_only: write every score of every document, drop nothing
        explain: id of a document whose rules and scores are added to the result
        compress: "none", "gzip" or "zstd", of the kept documents
        on_error: "skip" lists lines that cannot be read, "fail" stops at the first
        shard_bytes, max_document, memory: sizes in bytes or text ("10G"); 0 is the default
        force: replace the output of an earlier run
        on: "ray" or "ray://HOST:PORT": run on the nodes of a Ray cluster, which share the folders (see docs/text.md)
        task_bytes: with `on`: input of a task; 0 is chosen by the input and the nodes
        progress: called now and then with (bytes, total bytes, documents, dropped)
    """
    options = dict(
        report=_pages(report), look=_check.whole("look", look, 0, 100), seed=_check.whole("seed", seed, 0, 2**32 - 1),
        lid=None if lid is None else _check.utf8_path("lid", lid), lang=_names("lang", lang),
        lang_min=_check.real("lang_min", lang_min, 0, 1), columns=_names("columns", columns), profile=_names("profile", profile), set=_thresholds(rules), modify=_names("modify", modify),
        text_field=_check.text("text_field", text_field), id_field=_check.text("id_field", id_field),
        explain=_text("explain", explain), memory=_check.size("memory", memory), shard_bytes=_check.size("shard_bytes", shard_bytes),
        max_document=_check.size("max_document", max_document), threads=_check.whole("threads", threads, 0, 4096),
        compress=_check.one_of("compress", compress, _COMPRESS), score_only=_check.flag("score_only", score_only),
        fail_on_bad=_check.one_of("on_error", on_error, _POLICIES) == 1, replace=_check.flag("force", force))
    sources, target = _check.paths("source", source), None if output is None else _check.utf8_path("output", output)
    size = _task_bytes(on, task_bytes)
    if on is not None:
        from . import _ray
        return with_texts(_ray.filter_text(on, sources, target, options, size, progress), target)
    answer, explained = _run(progress, _leat.filter_text, sources, target, **options)
    result = json.loads(answer)
    rows = [json.loads(line) for line in explained.split("\n") if line]
    if explain is not None:
        result["explained"] = [row for row in rows if "kind" not in row]
    if look > 0:
        result["looked"] = [row for row in rows if "kind" in row]
    return result if explain is not None and target is None else with_texts(result, target)


def dedup_text(source: Path | Sequence[Path], output: Path | None, *, kind: str = "fuzzy", normalize: bool = False,
               words: int = 0, chars: int = 0, bands: int = 0, rows: int = 0, threshold: float | None = None,
               clusters: str = "star", keep: str = "first", keep_field: str | None = None,
               text_field: str = "text", id_field: str = "id", compress: str = "none",
               shard_bytes: int | str = 0, max_document: int | str = 0, on_error: str = "skip", threads: int = 0,
               memory: int | str = 0, bands_per_iteration: int = 0, checkpoint: int | str = 0,
               force: bool = False, resume: bool = False, plan: bool = False,
               index: bool = False, against: Path | None = None, level: str = "document",
               report: Path | Sequence[Path] | None = None, compatible: str = "none",
               profile: str | Sequence[str] | None = None, rules: dict[str, float | None] | None = None,
               on: str | None = None, task_bytes: int | str = 0,
               progress: Progress | None = None) -> dict[str, Any]:
    """Removes duplicate documents from JSONL files; what `leat dedup` does.

    >>> leat.dedup_text("crawl", "unique", kind="fuzzy", memory="4G")
    {'documents': 1000, 'kept': 871, 'removed': 129, 'clusters': 80, ...}

    Parameters
        source: JSONL files (plain, .gz, .zst), folders or patterns
        output: folder for kept documents, clusters, bad lines and the report
        kind: "exact" (equal texts), "fuzzy" (similar shingles) or "substring" (sequences of words that occurred before are cut out)
        normalize: exact: compare words only, without case, punctuation and white space
        words, chars: fuzzy: words of a shingle (5), or shingles of characters instead; substring: words of a sequence (50)
        bands, rows: fuzzy: bands of a sketch (14) and values of a band (8)
        threshold: fuzzy: least estimated Jaccard similarity (0.7)
        clusters: "star": every removed document is similar to the kept one; "components": chains count
        keep: "first", "longest", or "field": the largest number of `keep_field`
        memory: hard limit; what does not fit is on disk below `output`
        bands_per_iteration: bands on disk at once; fewer take less disk and more passes
        checkpoint: save the state after this much input
        resume: continue a run that was interrupted
        plan: return what the run would take, do nothing; `output` may be None
        index: save an index of the kept documents, for `against` of later runs
        level: exact: "line" or "paragraph" takes repeated ones out of the texts
        report: file or files for a report: NAME.html is a page with cluster sizes and similarities, NAME.json its data
        compatible: fuzzy: make signatures of "datasketch", "datasketch-legacy" or "datatrove"; documents that share a band
            are duplicates, joined by chains, unless `threshold` is given
        profile, rules: first drop documents that violate a rule, as `filter_text` does, in the same run; `output` gets reasons.jsonl, too
        against: output folder of an earlier run with `index`: also remove what is like its documents
        others: as in `filter_text`
    """
    _check.one_of("kind", kind, {"exact": 0, "fuzzy": 1, "substring": 2})
    depth = _check.one_of("level", level, _LEVELS)
    if kind == "substring" and depth:
        raise ArgumentError("level: is only for kind=\"exact\", not for substring")
    numbers = dict(words=words, chars=chars, bands=bands, rows=rows, threads=threads,
                   bands_per_iteration=bands_per_iteration)
    sizes = dict(memory=memory, shard_bytes=shard_bytes, max_document=max_document, checkpoint=checkpoint)
    flags = dict(normalize=normalize, force=force, resume=resume, plan=plan, index=index)
    options = dict(
        kind=2 if kind == "fuzzy" else 1,
        threshold=_check.above("threshold", threshold, 1),
        clusters=_check.one_of("clusters", clusters, _CLUSTERS), keep=_check.one_of("keep", keep, _KEEP),
        level=_SUBSTRING if kind == "substring" else depth, report=_pages(report),
        compatible=_check.one_of("compatible", compatible, _COMPATIBLE),
        against=None if against is None else _check.utf8_path("against", against),
        profile=_names("profile", profile), set=_thresholds(rules),
        keep_field=_text("keep_field", keep_field), text_field=_check.text("text_field", text_field),
        id_field=_check.text("id_field", id_field),
        compress=_check.one_of("compress", compress, _COMPRESS),
        fail_on_bad=_check.one_of("on_error", on_error, _POLICIES) == 1,
        **{_FLAGS.get(name, name): _check.flag(name, value) for name, value in flags.items()},
        **{name: _check.whole(name, value, 0, 4096) for name, value in numbers.items()},
        **{name: _check.size(name, value) for name, value in sizes.items()})
    if output is None and not plan:
        raise ArgumentError("output: is needed, except for a plan")
    source_paths, target = _check.paths("source", source), None if output is None else _check.utf8_path("output", output)
    size = _task_bytes(on, task_bytes)
    if on is not None:
        from . import _ray
        return with_texts(_ray.dedup_text(on, source_paths, target or "", options, size, progress), target)
    answer, _ = _run(progress, _leat.dedup_text, source_paths, target, **options)
    return with_texts(json.loads(answer), target)


def decontaminate_text(source: Path | Sequence[Path], output: Path, *, evals: Path | Sequence[Path],
                       eval_field: str | Sequence[str] = "text", ngram: int = 13, min_matches: int = 1,
                       by: str = "document", window: int = 0, text_field: str = "text", id_field: str = "id",
                       compress: str = "none", shard_bytes: int | str = 0, max_document: int | str = 0,
                       on_error: str = "skip", threads: int = 0, memory: int | str = 0, force: bool = False,
                       progress: Progress | None = None) -> dict[str, Any]:
    """Removes what JSONL files share with evaluation sets; what `leat decontaminate` does.

    >>> leat.decontaminate_text("crawl", "clean", evals="mmlu.jsonl", eval_field="question")
    {'documents': 1000, 'kept': 997, 'dropped': 3, 'contaminated': 3, 'evals_found': 2, ...}

    Parameters
        source: JSONL files (plain, .gz, .zst), folders or patterns
        output: folder for kept documents, matches, bad lines and the report
        evals: JSONL files of the evaluation sets, folders or patterns
        eval_field: keys of their texts
        ngram: consecutive words that must be shared
        min_matches: shared n-grams that make a document contaminated
        by: "document" drops contaminated documents, "span" cuts the shared text out of them
        window: span: bytes around it that are cut out too
        others: as in `filter_text`
    """
    fields = eval_field if isinstance(eval_field, str) else ",".join(_check.several("eval_field", eval_field))
    target = _check.utf8_path("output", output)
    report, _ = _run(
        progress, _leat.decontaminate_text, _check.paths("source", source), target,
        evals=_check.paths("evals", evals), eval_fields=_check.text("eval_field", fields),
        ngram=_check.whole("ngram", ngram, 2, 64), min_matches=_check.whole("min_matches", min_matches, 1, 10**9),
        by=_check.one_of("by", by, {"document": 0, "span": 1}), window=_check.whole("window", window, 0, 10**6),
        text_field=_check.text("text_field", text_field), id_field=_check.text("id_field", id_field),
        threads=_check.whole("threads", threads, 0, 4096), memory=_check.size("memory", memory),
        shard_bytes=_check.size("shard_bytes", shard_bytes), max_document=_check.size("max_document", max_document),
        compress=_check.one_of("compress", compress, _COMPRESS),
        fail_on_bad=_check.one_of("on_error", on_error, _POLICIES) == 1, replace=_check.flag("force", force))
    return with_texts(json.loads(report), target)


def _listed(texts: Any) -> Any:
    """Returns a column of Arrow as a list; its elements are not str."""
    return texts.to_pylist() if callable(getattr(texts, "to_pylist", None)) else texts


def _documents(texts: Any) -> list[str]:
    return [_check.document("texts", text) for text in _check.several("texts", _listed(texts))]


def score_text(texts: str | Iterable[str]) -> dict[str, float] | dict[str, list[float]]:
    """Returns all scores of a text, or for several texts a list per score.

    >>> leat.score_text("The cat sat on the mat.")["words"]
    6.0
    """
    names = [name for name, _ in _leat.text_names()[1]]
    if isinstance(texts, str):
        return dict(zip(names, _leat.score_text([_check.document("texts", texts)])[0]))
    rows = _leat.score_text(_documents(texts))
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def text_names() -> dict[str, dict[str, str]]:
    """Returns profiles, scores and modifiers with their descriptions."""
    return {kind: dict(rows) for kind, rows in zip(("profiles", "scores", "modifiers"), _leat.text_names())}


def text_signatures(texts: str | Iterable[str], *, compatible: str = "datatrove", words: int = 0, chars: int = 0,
                    values: int = 112) -> list[int] | None | list[list[int] | None]:
    """Returns the MinHash signature of a text, or a list for several texts; equal bit for bit to those of another tool.

    >>> len(leat.text_signatures("one two three four five six"))
    112

    Parameters
        texts: a text, or several
        compatible: "datatrove" (0.10), "datasketch" (2.0) or "datasketch-legacy" (before 2.0), with their seed 1
        words, chars: words of a shingle (5), or shingles of characters instead
        values: values of a signature

    A text without a shingle has the signature None.
    """
    family = _check.one_of("compatible", compatible, {name: value for name, value in _COMPATIBLE.items() if value})
    n, letters = _check.whole("words", words, 0, 64), _check.whole("chars", chars, 0, 1024)
    if n and letters:
        raise ArgumentError("words, chars: give one of them, not both")
    count = _check.whole("values", values, 1, 1024)
    several = [_check.document("texts", texts)] if isinstance(texts, str) else _documents(texts)
    rows = _leat.text_signatures(several, family, n or (0 if letters else 5), letters, count)
    return rows[0] if isinstance(texts, str) else rows
