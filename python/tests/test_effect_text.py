# SPDX-License-Identifier: Apache-2.0
"""Every option of `leat filter`, `leat dedup` (of texts) and `leat decontaminate` has an effect that can be seen, or is refused where it has none.

The options come from the command's own table (`leat help --json`): a new one needs a row here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MODEL = Path(__file__).parents[2] / "tests" / "data" / "lid.ftz"
NOISE = {"seconds", "cpu_seconds", "budget_peak_bytes", "limit", "read_share", "work_share", "write_share", "memory_share"}
COMMON = {"json", "quiet", "verbose", "color", "help"}
OTHERS = {"csv", "orientations", "windows", "across", "list-probable",  # of images: tests/cli/cases/images.t
          "keep-share", "centres", "field", "device"}  # of vectors: test_effect_more.py


def run(*args, code=0):
    done = subprocess.run([sys.executable, "-m", "leat", *map(str, args)], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, (args, done.stdout, done.stderr)
    return done


def words(seed, n=60):
    return " ".join(f"w{seed}x{i}" for i in range(n))


class Case:
    """A folder with documents: three equal ones, two of similar text, one short, one long, one that has no words."""

    def __init__(self, folder):
        self.folder = folder
        self.runs = 0
        rows = [{"id": f"e{i}", "text": words(0), "score": i} for i in range(3)]
        rows += [{"id": "s0", "text": words(1), "score": 5}, {"id": "s1", "text": words(1, 55) + " and some other words now", "score": 9}]
        rows += [{"id": "short", "text": "see http://a.b/c", "score": 0, "other": words(2)}, {"id": "long", "text": words(3, 500)},
                 {"id": "upper", "text": words(0).upper() + "!"}, {"id": "de", "text": "die sprache dieser zeile ist deutsch und sie hat wörter"}]
        self.input = self.write("in.jsonl", rows)

    def write(self, name, rows):
        path = self.folder / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def done(self, command, *args, code=0, source=None):
        """Runs; returns what it printed and the files of its folder, as one value."""
        self.runs += 1
        out = self.folder / f"out{self.runs}"
        kind = command.split()
        given = () if "-o" in args or "--output" in args else ("-o", out)
        printed = run(*kind, source or self.input, *given, "--json", *args, code=code)
        report = {key: value for key, value in json.loads(printed.stdout.splitlines()[-1]).items()
                  if key not in NOISE} if code == 0 else None
        files = {path.name: path.read_bytes() for path in sorted(out.glob("*")) if path.is_file() and path.name != "report.json"}
        return report, files, len(printed.stdout.splitlines())

    def differ(self, command, *args, base=None, source=None):
        base = base if base is not None else KEEP if command == F else ()
        plain, changed = self.done(command, *base, source=source), self.done(command, *base, *args, source=source)
        assert plain != changed, f"{args} changes nothing"
        return changed

    def refused(self, text, command, *args, code=2):
        done = run(*command.split(), self.input, "-o", self.folder / "refused", *args, code=code)
        assert text in done.stderr, done.stderr

    def file(self, name):
        return self.folder / name

    def writes(self, command, *args, name):
        self.done(command, *args, self.file(name))
        assert self.file(name).stat().st_size > 0

    def questions(self, seed):
        """An evaluation set that has the text of some documents."""
        return self.write(f"eval{seed}.jsonl", [{"text": words(seed, 30), "question": words(0, 40)}])

    def evals(self):
        return "--eval", self.questions(1)

    def yaml(self, text):
        path = self.file("options.yaml")
        path.write_text(text)
        return path

    def same(self, command, first, second):
        (one, files, _), (two, others, _) = self.done(command, *first), self.done(command, *second)
        assert one == two and files == others

    def eval_fields(self):
        """Another field has another text; of a field that is nowhere nothing can be found."""
        self.differ(C, "--eval-field", "question", base=self.evals())
        self.refused("nothing", C, *self.evals(), "--eval-field", "nothing", code=4)

    def decontaminates_again(self):
        out = self.file("again")
        for more, code in (((), 0), ((), 2), (("--force",), 0)):
            run(C, self.input, "-o", out, *self.evals(), *more, code=code)

    def bad(self):
        path = self.file("bad.jsonl")
        path.write_text(self.input.read_text() + "broken\n")
        return path

    def force(self, command):
        out = self.file("forced")
        run(*command.split(), self.input, "-o", out)
        run(*command.split(), self.input, "-o", out, code=2)
        run(*command.split(), self.input, "-o", out, "--force")

    def threads(self, command):
        """The most threads that were seen while a run lasted."""
        big = self.write("big.jsonl", [{"text": words(i % 97)} for i in range(60000)])

        def most(n):
            process = subprocess.Popen([sys.executable, "-m", "leat", *command.split(), str(big), "-o", str(self.file(f"t{n}")), "-f", "-t", str(n)],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            seen = 0
            while process.poll() is None:
                try:
                    with open(f"/proc/{process.pid}/status") as status:
                        seen = max([seen] + [int(line.split()[1]) for line in status if line.startswith("Threads:")])
                except OSError:
                    break
            assert process.wait(300) == 0
            return seen

        assert most(9) >= most(1) + 4

    def config(self, command, line, *args):
        """A file says what the option says."""
        self.file("c.yaml").write_text(line)
        base = ("--profile", "c4@paper") if command == F else ()
        assert self.done(command, *base, "--config", self.file("c.yaml")) == self.done(command, *base, *args) != self.done(command, *base)

    def checkpoint(self):
        """A run that fails at its end has a saved state only with a small checkpoint."""
        rows = [{"text": words(i)} for i in range(5000)]
        broken = self.write("broken.jsonl", rows)
        broken.write_text(broken.read_text() + "broken\n")
        for size, saved in (("512M", False), ("1", True)):
            out = self.file(f"c{size}")
            run("dedup", "fuzzy", broken, "-o", out, "--on-error", "fail", "--checkpoint", size, code=4)
            assert (out / ".leat-work" / "state.json").exists() is saved

    def resumes(self):
        rows = [{"text": words(i)} for i in range(5000)]
        broken = self.write("broken.jsonl", rows)
        broken.write_text(broken.read_text() + "broken\n")
        out = self.file("r")
        run("dedup", "fuzzy", broken, "-o", out, "--on-error", "fail", "--checkpoint", "1", code=4)
        assert json.loads(run("dedup", "fuzzy", broken, "-o", out, "--checkpoint", "1", "--resume", "--json").stdout)["resumed"] == 1

    def against(self):
        run("dedup", "exact", self.input, "-o", self.file("first"), "--index")
        report, _, _ = self.done("dedup exact", "--against", self.file("first"))
        assert report["kept"] == 0


    def fused(self, command):
        """One run with rules writes what filter and dedup write in sequence."""
        rules = ("--profile", "fineweb@paper", "--set", "terminal_line_ratio.above=off,words.min=10")
        first, both, then = self.file("filtered" + command[-5:]), self.file("fused" + command[-5:]), self.file("then" + command[-5:])
        run(F, self.bad(), "-o", first, *rules)
        run(*command.split(), first, "-o", then)
        run(*command.split(), self.bad(), "-o", both, *rules)
        for name, other in (("kept-00000.jsonl", then), ("clusters.jsonl", then), ("reasons.jsonl", first), ("bad.jsonl", first)):
            assert (both / name).read_bytes() == (other / name).read_bytes(), name
        assert (both / "reasons.jsonl").stat().st_size > 0

    def seeds(self):
        """--look draws other documents for other seeds; of few, some seeds draw the same."""
        rows = self.write("many.jsonl", [{"id": f"m{i}", "text": words(i)} for i in range(200)])
        drawn = {json.dumps(run("filter", rows, "--set", "words.min=5", "--look", 1, "--seed", seed).stdout) for seed in range(5)}
        assert len(drawn) > 1

    def chains(self):
        """Each document is like the next, the first unlike the last."""
        rows = self.write("chain.jsonl", [{"text": " ".join(f"w{k}" for k in range(10 * i, 10 * i + 100))} for i in range(8)])
        self.differ("dedup fuzzy", "--clusters", "components", base=("--rows", 2, "--bands", 40), source=rows)


F = "filter"
KEEP = ("--set", "words.min=5")
FILTER = {
    "output": lambda c: (c.done(F, *KEEP, "-o", c.file("here")), (c.file("here") / "kept-00000.jsonl").read_bytes()),
    "profile": lambda c: c.differ(F, "--profile", "gopher@paper"),
    "set": lambda c: c.differ(F, "--set", "words.min=50", base=("--profile", "c4@paper")),
    "modify": lambda c: c.differ(F, "--modify", "urls"),
    "lid": lambda c: (c.differ(F, "--lid", MODEL, base=("--score-only",)), c.refused("lid", F, "--lang", "de")),
    "lang": lambda c: c.differ(F, "--lang", "de", base=(*KEEP, "--lid", MODEL)),
    "lang-min": lambda c: c.differ(F, "--lang-min", 0.999999, base=(*KEEP, "--lid", MODEL)),
    "columns": lambda c: c.differ(F, "--columns", "id,+words"),
    "config": lambda c: c.config(F, "set:\n  words.min: 50\n", "--set", "words.min=50"),
    "score-only": lambda c: c.differ(F, "--score-only"),
    "explain": lambda c: c.differ(F, "--explain", "short"),
    "report": lambda c: c.writes(F, *KEEP, "--report", name="page.html"),
    "look": lambda c: c.differ(F, "--look", 1),
    "seed": lambda c: c.seeds(),
    "list": lambda c: "gopher@paper" in run("filter", "--list").stdout or pytest.fail("no list"),
    "text-field": lambda c: c.differ(F, "--text-field", "other"),
    "id-field": lambda c: c.differ(F, "--id-field", "score"),
    "on-error": lambda c: (c.done(F, *KEEP, source=c.bad()), c.done(F, *KEEP, "--on-error", "fail", source=c.bad(), code=4)),
    "compress": lambda c: c.differ(F, "--compress", "zstd"),
    "shard-bytes": lambda c: c.differ(F, "--shard-bytes", 1000),
    "max-document": lambda c: c.differ(F, "--max-document", 1024),
    "force": lambda c: c.force("filter --set words.min=5"),
    "threads": lambda c: c.threads("filter --set words.min=5"),
    "memory": lambda c: c.refused("", F, *KEEP, "--memory", "100K", code=3),
    "on": lambda c: (c.refused("--on: nowhere is not", F, *KEEP, "--on", "nowhere"), c.refused("--look: does not work", F, *KEEP, "--on", "ray", "--look", 2)),
    "task-bytes": lambda c: c.refused("--task-bytes needs --on", F, *KEEP, "--task-bytes", "1M"),
}

D, E = "dedup fuzzy", "dedup exact"
DEDUP = {
    "output": lambda c: (c.done(D, "-o", c.file("here")), (c.file("here") / "kept-00000.jsonl").read_bytes()),
    "normalize": lambda c: (c.differ(E, "--normalize"), c.refused("normalize", D, "--normalize")),
    "level": lambda c: (c.differ(E, "--level", "line"), c.refused("found by exact", D, "--level", "line")),
    "words": lambda c: (c.differ(D, "--words", 60), c.differ("dedup substring", "--words", 10)),
    "chars": lambda c: c.differ(D, "--chars", 9),
    "bands": lambda c: c.differ(D, "--bands", 2),
    "rows": lambda c: c.differ(D, "--rows", 1),
    "threshold": lambda c: c.differ(D, "--threshold", 0.99),
    "compatible": lambda c: c.differ(D, "--compatible", "datatrove"),
    "clusters": lambda c: c.chains(),
    "keep": lambda c: c.differ(D, "--keep", "longest"),
    "keep-field": lambda c: (c.differ(D, "--keep", "field", "--keep-field", "score"), c.refused("keep-field", D, "--keep-field", "score")),
    "index": lambda c: c.differ(D, "--index"),
    "against": lambda c: c.against(),
    "profile": lambda c: (c.fused(D), c.fused(E), c.refused("whole documents", "dedup substring", "--profile", "c4@paper")),
    "set": lambda c: (c.differ(D, "--set", "words.min=20"), c.differ(D, "--set", "terminal_line_ratio.above=off", base=("--profile", "fineweb@paper"))),
    "report": lambda c: c.writes(D, "--report", name="page.html"),
    "config": lambda c: c.config(D, "threshold: 0.99\n", "--threshold", 0.99),
    "plan": lambda c: c.differ(D, "--plan"),
    "text-field": lambda c: c.differ(D, "--text-field", "other"),
    "id-field": lambda c: c.differ(D, "--id-field", "score"),
    "on-error": lambda c: (c.done(D, source=c.bad()), c.done(D, "--on-error", "fail", source=c.bad(), code=4)),
    "compress": lambda c: c.differ(D, "--compress", "gzip"),
    "shard-bytes": lambda c: c.differ(D, "--shard-bytes", 1000),
    "max-document": lambda c: c.differ(D, "--max-document", 1024),
    "force": lambda c: c.force("dedup exact"),
    "resume": lambda c: c.resumes(),
    "threads": lambda c: c.threads("dedup exact"),
    "memory": lambda c: c.refused("", D, "--memory", "10M", code=3),
    "bands-per-iteration": lambda c: c.differ(D, "--bands-per-iteration", 7),
    "checkpoint": lambda c: c.checkpoint(),
    "on": lambda c: (c.refused("--on: nowhere is not", D, "--on", "nowhere"), c.refused("--plan: does not work", D, "--on", "ray", "--plan"),
                     c.refused("--set: does not work with --on ray", D, "--on", "ray", "--set", "words.min=2"),
                     c.refused("--set: does not work with --on ray", D, "--config", c.yaml("on: ray\nset:\n  words.min: 2\n"))),
    "task-bytes": lambda c: c.refused("--task-bytes needs --on", D, "--task-bytes", "1M"),
}


C = "decontaminate"
DECONTAMINATE = {
    "output": lambda c: c.done(C, *c.evals(), "-o", c.file("mine")),
    "eval": lambda c: c.differ(C, "--eval", c.questions(3), base=c.evals()),
    "eval-field": lambda c: c.eval_fields(),
    "ngram": lambda c: c.differ(C, "--ngram", 20, base=c.evals()),
    "min-matches": lambda c: c.differ(C, "--min-matches", 40, base=c.evals()),
    "by": lambda c: c.differ(C, "--by", "span", base=c.evals()),
    "window": lambda c: (c.differ(C, "--window", 9, base=(*c.evals(), "--by", "span")), c.refused("span", C, *c.evals(), "--window", 9)),
    "config": lambda c: c.same(C, ("--eval", c.questions(1), "-c", c.yaml("ngram: 20\n")), (*c.evals(), "--ngram", 20)),
    "text-field": lambda c: c.differ(C, "--text-field", "other", base=c.evals()),
    "id-field": lambda c: c.differ(C, "--id-field", "score", base=c.evals()),
    "on-error": lambda c: (c.done(C, *c.evals(), source=c.bad()), c.done(C, *c.evals(), "--on-error", "fail", source=c.bad(), code=4)),
    "compress": lambda c: c.differ(C, "--compress", "gzip", base=c.evals()),
    "shard-bytes": lambda c: c.differ(C, "--shard-bytes", 1000, base=c.evals()),
    "max-document": lambda c: c.differ(C, "--max-document", 1024, base=c.evals()),
    "force": lambda c: c.decontaminates_again(),
    "threads": lambda c: (c.same(C, (*c.evals(), "-t", 1), (*c.evals(), "-t", 5)), c.refused("-t: 99999", C, *c.evals(), "-t", 99999)),
    "memory": lambda c: c.refused("", C, *c.evals(), "--memory", "1K", code=3),
}
TABLES = {"filter": FILTER, "dedup": DEDUP, "decontaminate": DECONTAMINATE}


def table(name):
    listed = json.loads(run("help", "--json").stdout)["commands"]
    return {option["name"] for command in listed if command["name"] == name for option in command["options"]}


def test_the_tables_have_every_option():
    assert set(FILTER) | COMMON == table("filter")
    assert set(DEDUP) | OTHERS | COMMON == table("dedup")
    assert set(DECONTAMINATE) | COMMON == table("decontaminate")


@pytest.fixture
def case(tmp_path):
    return Case(tmp_path)


@pytest.mark.parametrize("name", FILTER)
def test_an_option_of_filter_has_an_effect(name, case):
    FILTER[name](case)


@pytest.mark.parametrize("name", DEDUP)
def test_an_option_of_dedup_has_an_effect(name, case):
    DEDUP[name](case)


@pytest.mark.parametrize("name", DECONTAMINATE)
def test_an_option_of_decontaminate_has_an_effect(name, case):
    DECONTAMINATE[name](case)
