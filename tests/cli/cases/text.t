# Filters and deduplication of JSONL files.

$ for i in 1 2 3; do printf '{"id": "d%s", "text": "%s"}\n' $i "one two three four five six seven eight $((i / 3))"; done > in.jsonl
> printf '{"id": "d4", "text": "short"}\nbroken\n' >> in.jsonl
> leat filter in.jsonl -o kept --set words.min=5 --json | jget documents kept dropped bad rules.0.rule rules.0.failed
! leat filter: warning: 1 line could not be read: see kept/bad.jsonl
4
3
1
1
words.min
1

$ head -n 3 in.jsonl | cmp - kept/kept-00000.jsonl && cat kept/reasons.jsonl kept/bad.jsonl
{"id":"d4","file":"in.jsonl","line":4,"rule":"words.min","profile":"","score":1,"threshold":5,"failed":["words.min"]}
{"file":"in.jsonl","line":5,"offset":*,"reason":"a line must be a JSON object"} (glob)

$ leat dedup fuzzy in.jsonl -o both --set words.min=5 --json | jget documents dropped kept removed rules.0.rule rules.0.first
! leat dedup: warning: 1 line could not be read: see both/bad.jsonl
4
1
2
1
words.min
1

$ leat dedup fuzzy kept -o after --quiet >/dev/null && cmp both/kept-00000.jsonl after/kept-00000.jsonl
> cmp both/clusters.jsonl after/clusters.jsonl && cmp both/reasons.jsonl kept/reasons.jsonl && cmp both/bad.jsonl kept/bad.jsonl

# exact deduplication has no bands
$ leat dedup exact in.jsonl -o whole 2> /dev/null | grep -o '[0-9]* comparison.*;'
1 comparison, 1 equal;

$ leat dedup exact in.jsonl -o lines --level line --set words.min=5
! leat dedup: --set works on whole documents only (run leat filter first)
= 2

$ leat dedup fuzzy in.jsonl -o other --set lang_score.min=0.5
! leat dedup: rules on the language work in leat filter only, which reads a model
= 2

$ leat filter in.jsonl -o kept --set words.min=5
! leat filter: kept: has the output of an earlier run (use --force to replace it)
= 2

$ leat filter in.jsonl -o other --set words.min=5 --on-error fail
! leat filter: in.jsonl: line 5, offset *: a line must be a JSON object (glob)
= 4

$ leat filter in.jsonl -o missing --columns idd,text,+words --on-error skip --json | jget columns_missing
! leat filter: warning: 1 line could not be read: see missing/bad.jsonl
! leat filter: warning: --columns: no kept document has idd
idd

$ leat filter in.jsonl -o other --profile gopher@papr
! leat filter: there is no profile "gopher@papr" (did you mean gopher@paper?)
= 2

$ leat filter in.jsonl -o other --set wrds.min=5
! leat filter: "wrds.min=5": there is no score of this name
= 2

$ leat filter nothing.jsonl -o other --profile c4@paper
! leat filter: nothing.jsonl: cannot open: No such file or directory
= 4

$ leat filter in.jsonl -o other --profile c4@paper --memory 100K
! leat filter: * (glob)
= 3

$ leat filter in.jsonl --set words.min=5 --explain d4 | jget id rules.0.rule rules.0.score rules.0.keeps
d4
words.min
1
false

# a rule that is switched off has no threshold
$ leat filter in.jsonl --profile gopher@paper --set words.min=off --explain d4 | jget rules.0.rule rules.0.threshold rules.0.keeps
words.min
null
true

$ leat filter in.jsonl -o off --profile gopher@paper --set words.min=off --report off.html,off.json --json 2> /dev/null | jget rules.0.threshold; jget rules.0.threshold < off.json; grep -c '<td>words.min</td><td class="n">off</td>' off.html
null
null
1

# an id is found whatever its JSON escapes are, and where a line has none
$ printf '%s\n' '{"id": "caf\u00e9", "text": "a"}' '{"id": "http:\/\/x", "text": "b"}' '{"id": "\u0061bc\\", "text": "c"}' '{"id": 17, "text": "d"}' '{"text": "e"}' > escaped.jsonl
> for id in café http://x 'abc\' 17 escaped.jsonl:5 '"caf\u00e9"'; do leat filter escaped.jsonl --set words.min=5 --explain "$id" | jget line; done
1
2
3
4
5
1

$ leat filter in.jsonl --set words.min=5 --explain nobody
! leat filter: warning: no document has the id nobody
= 1

$ leat filter in.jsonl -o scores --score-only --quiet && head -n 1 scores/scores-00000.jsonl | jget id words
! leat filter: warning: 1 line could not be read: see scores/bad.jsonl
4 documents; 1 bad line
...
d1
9

$ leat filter in.jsonl -o columns --columns text,+words,id --set words.min=5 --quiet > /dev/null; head -n 1 columns/kept-00000.jsonl
! leat filter: warning: 1 line could not be read: see columns/bad.jsonl
{"text": "one two three four five six seven eight 0","words":9,"id": "d1"}

$ leat filter in.jsonl -o other --columns id,+wrds
! leat filter: --columns: there is no score "wrds" (did you mean words?)
= 2

$ leat filter in.jsonl -o other --columns id,id
! leat filter: --columns: "id" appears twice
= 2

$ leat filter in.jsonl -o other --set words.min=1,curly.max=0,words.min=2
! leat filter: --set: "words.min" appears twice
= 2

$ leat filter in.jsonl -o other --set words.min=1 --set words.max=9
! leat filter: --set: given twice: join the rules with commas (see leat filter --help)
= 2

$ leat dedup exact in.jsonl -o other --set words.min=1 --set=words.max=9
! leat dedup: --set: given twice: join the rules with commas (see leat dedup --help)
= 2

$ printf 'set:\n  words.min: 1\n  words.min: off\n' > twice.yaml; leat filter in.jsonl -o other -c twice.yaml
! leat filter: --set: "words.min" appears twice
= 2

$ leat filter in.jsonl -o other --columns id --score-only
! leat filter: --columns is for kept documents: leave out --score-only
= 2

$ printf 'output: fromfile\nset:\n  words.min: 5\n  words.max: off\n  urls.max: 3\nprofile: [gopher@paper]\ncolumns:\n  - id\nscore_only: no\n' > rules.yaml
> leat filter in.jsonl -c rules.yaml --profile gopher@datatrove --set words.min=5,alpha_word_ratio.min=.1 --json | jget documents rules.0.rule
! leat filter: warning: 1 line could not be read: see fromfile/bad.jsonl
4
plain_words.min

$ leat filter in.jsonl --config rules.yaml --force --json | jget kept rules.0.threshold
! leat filter: warning: 1 line could not be read: see fromfile/bad.jsonl
0
5

$ printf 'output: x\nprofle: c4@paper\n' > wrong.yaml; leat filter in.jsonl --config wrong.yaml
! leat filter: wrong.yaml:2: unknown key 'profle'; did you mean 'profile'?
= 2

$ printf 'memory: lots\n' > wrong.yaml; leat filter in.jsonl --config wrong.yaml
! leat filter: wrong.yaml:1: memory: * (glob)
= 2

$ printf 'quiet: yes\n' > wrong.yaml; leat filter in.jsonl -o other -c wrong.yaml
! leat filter: wrong.yaml:1: 'quiet' works on the command line only
= 2

$ leat filter in.jsonl --config nothing.yaml
! leat filter: nothing.yaml: cannot open: No such file or directory
= 4

$ printf 'output: dd\nthreshold: 0.5\n' > d.yaml; leat dedup exact in.jsonl --config d.yaml
! leat dedup: --threshold is only for fuzzy deduplication
= 2

$ printf 'output: dc\neval: [in.jsonl]\nngram: 5\n' > d.yaml; leat decontaminate in.jsonl --config d.yaml --json | jget contaminated
! leat decontaminate: warning: 2 lines could not be read: see dc/bad.jsonl
3

$ leat dedup exact in.jsonl
! leat dedup: --output is missing: write the result here (see leat dedup --help)
= 2

$ leat dedup fuzzy in.jsonl --plan | head -n 1; ls unique
! ls: cannot access 'unique': No such file or directory
about * documents: * of memory, * of disk besides the output, 1 pass for sketches and 1 to write (glob)
= 2

$ leat dedup exact "" -o unique
! leat dedup: IN: is empty (see leat dedup --help)
= 2

$ printf '{"words": "old", "text": "one two three"}\n' > has.jsonl; leat filter has.jsonl -o has --columns +words --quiet; cat has/kept-00000.jsonl
1 document: 1 kept, 0 dropped
...
{"words":3, "text": "one two three"}

# damaged lines of evaluation sets are listed, and end a run with --on-error fail; long ones need memory
$ printf '{"id":"e","text":"one two three four five"}\nnot json\n{"q":1}\n{"text":"\377"}\n' > ev.jsonl; echo '{"text":"one two three four five six"}' > co.jsonl
$ leat decontaminate co.jsonl -o dam --eval ev.jsonl --ngram 5 --json | jget bad evals evals_bad && cat dam/bad.jsonl
2
1
1
{"file":"ev.jsonl","line":2,"offset":44,"reason":"a line must be a JSON object"}
{"file":"ev.jsonl","line":4,"offset":70,"reason":"not valid UTF-8"}
! leat decontaminate: warning: 1 line of the evaluation sets has none of the fields "text"
! leat decontaminate: warning: 2 lines could not be read: see dam/bad.jsonl

$ leat decontaminate co.jsonl -o dam2 --eval ev.jsonl --ngram 5 --on-error fail
! leat decontaminate: ev.jsonl: line 2, offset 44: a line must be a JSON object
= 4

$ { printf '{"text":"'; head -c 20000000 /dev/zero | tr '\0' 'a'; echo '"}'; } > long.jsonl; leat decontaminate co.jsonl -o dam3 --eval long.jsonl --memory 50M
! leat decontaminate: long.jsonl: line 1 of 20000011 bytes (19.1 MiB) does not fit the memory limit of 50.0 MiB (raise --memory to 502M, or lower --max-document to list such lines as bad)
= 3

# the limit that is named is enough, also for this line in the corpus
$ leat decontaminate long.jsonl -o dam4 --eval ev.jsonl,long.jsonl --ngram 5 --memory 50M 2>&1 | sed 's/.*raise --memory to \([0-9]*M\).*/\1/' > enough
> leat decontaminate long.jsonl -o dam4 --eval ev.jsonl,long.jsonl --ngram 5 --memory $(cat enough) --json 2> /dev/null | jget documents kept
1
1

$ leat decontaminate co.jsonl -o dam3 --eval ev.jsonl,long.jsonl --ngram 5 --memory 50M --max-document 1M -q > /dev/null 2>&1; tail -n 1 dam3/bad.jsonl; rm long.jsonl
{"file":"long.jsonl","line":1,"offset":0,"reason":"longer than max-document"}

$ leat decontaminate in.jsonl
! leat decontaminate: --output is missing: write kept documents, matches, bad lines and the report here (see leat decontaminate --help)
= 2

$ leat filter in.jsonl -o other
! leat filter: nothing to do: give --profile NAMES, --set RULES, --modify or --columns (see leat filter --help)
= 2

$ leat filter in.jsonl -o other --lang en
! leat filter: languages need a model: name a fastText file (--lid)
= 2

$ leat filter in.jsonl -o other --lang-min 0.5
! leat filter: --lang-min needs a model: name a fastText file (--lid)
= 2

$ leat filter in.jsonl -o other --lid absent.bin
! leat filter: absent.bin: cannot open: No such file or directory
= 4

$ leat filter in.jsonl -o other --lid in.jsonl --lang en
! leat filter: in.jsonl: not a fastText model
= 4

$ LC_ALL=C sed 's/__label__en/__label__e\x80/' $LEAT_TEST_DATA/lid.ftz > odd.ftz; leat filter in.jsonl -o other --lid odd.ftz --lang en
! leat filter: odd.ftz: the model has no label "en" (did you mean e\x80?)
= 2

$ head -c 3000 $LEAT_TEST_DATA/lid.ftz > cut.ftz; leat filter in.jsonl -o other --lid cut.ftz --lang en
! leat filter: cut.ftz: damaged fastText model at offset *: the file is truncated (glob)
= 4

$ printf '{"text": "the language of this line is english and it has words"}\n{"text": "die sprache dieser zeile ist deutsch und sie hat wörter"}\n' > two.jsonl
> leat filter two.jsonl -o en --lid $LEAT_TEST_DATA/lid.ftz --lang en --lang-min 0.5 --columns text,+lang --json | jget kept rules.0.rule rules.1.rule; cat en/kept-00000.jsonl
1
lang_match.min
lang_score.min
{"text": "the language of this line is english and it has words","lang":"en"}

$ leat filter in.jsonl --set words.min=5 --look 1 | grep .
! leat filter: warning: 1 line could not be read
kept: d*, kept (glob)
  words.min                                   9  threshold 5
  | one two three four five six seven eight * (glob)
dropped: d4, dropped
  words.min                                   1  threshold 5  violated
  | short

$ leat filter in.jsonl --set words.min=5 --look 1 --json | tail -n 1 | jget kind id text rules.0.score
! leat filter: warning: 1 line could not be read
dropped
d4
short
1

$ leat filter in.jsonl --set words.min=5 --report r.html,r.json --quiet && grep -c '<h2>' r.html && jget funnel.1.documents examples.0.passes < r.json
! leat filter: warning: 1 line could not be read
4 documents: 3 kept, 1 dropped; 1 bad line
...
4
3
true

# an earlier report is replaced, nothing else
$ leat filter in.jsonl --set words.min=5 --report r.html,r.json --quiet > /dev/null 2>&1 && echo again
> echo '{"mine": 1}' > mine.json; echo '<!DOCTYPE html>' > mine.html
> leat filter in.jsonl --set words.min=5 --report mine.json
> leat dedup exact in.jsonl -o reported --report mine.html; cat mine.html mine.json; ls reported 2> /dev/null
again
<!DOCTYPE html>
{"mine": 1}
! leat filter: --report: mine.json: is not an earlier output of this kind, and only such a file may be replaced; give another name
! leat dedup: --report: mine.html: is not an earlier output of this kind, and only such a file may be replaced; give another name
= 2

# a report that cannot be written is refused before the run; one in the new output folder is fine
$ leat filter in.jsonl -o early --set words.min=5 --report nowhere/r.html
! leat filter: --report: nowhere: no such folder
= 4

$ mkdir page.html; leat dedup exact in.jsonl -o early --report page.html; leat dedup exact in.jsonl -o early --level line --report nowhere/r.json; ls -d early
! leat dedup: --report: page.html: is a folder; give the name of a file to write
! leat dedup: --report: nowhere: no such folder
! ls: cannot access 'early': No such file or directory
= 2

$ leat filter in.jsonl -o early --set words.min=5 --report "$PWD/./early/r.html" -q > /dev/null 2>&1 && ls early/r.html
early/r.html

# when the page cannot be written, the earlier output stays
$ ln -s /dev/full full.html; for how in "filter --set words.min=1" "dedup exact" "dedup exact --level line"; do leat $how in.jsonl -o early --report full.html -q --force; jget rules.0.rule < early/report.json; done
words.min
words.min
words.min
! leat filter: full.html: cannot write: No space left on device
! leat dedup: full.html: cannot write: No space left on device
! what was done is kept: --resume continues from there
! leat dedup: full.html: cannot write: No space left on device
! what was done is kept: --resume continues from there

$ leat filter in.jsonl -o r --set words.min=5 --report r/report.json
! leat filter: --report: r/report.json is written by the run itself: choose another name
= 2

$ leat filter --list --json | jget ? profiles.c4@paper modifiers.# scores.lang_match
modifiers profiles scores
Raffel et al. 2020, section 2.2: 5 words a line, 3 sentences a page
9
1 when it is one of --lang

$ leat filter --list | grep -c @
6

$ leat dedup exact in.jsonl -o exact --json | jget documents kept removed clusters bad
! leat dedup: warning: 1 line could not be read: see exact/bad.jsonl
4
3
1
1
1

$ cat exact/clusters.jsonl
{"id":"d2","kept":"d1","similarity":1.0000}

$ leat dedup fuzzy in.jsonl -o fuzzy --threshold 0.5 --bands 50 --rows 2 --quiet; cat fuzzy/clusters.jsonl
! leat dedup: warning: 1 line could not be read: see fuzzy/bad.jsonl
4 documents: 2 kept, 2 removed in 1 cluster
...
{"id":"d2","kept":"d1","similarity":1.0000}
{"id":"d3","kept":"d1","similarity":0.*} (glob)

$ leat dedup fuzzy in.jsonl -o fuzzy --plan
about * documents: * of memory, * of disk besides the output, 1 pass for sketches and 1 to write (glob)
14 bands of 8: chance to be compared 0.01 at 0.4, 0.05 at 0.5, 0.21 at 0.6, 0.56 at 0.7, 0.92 at 0.8, 1.00 at 0.9

$ leat dedup fuzzy in.jsonl -o small --memory 10M
! leat dedup: a run needs 48.0 MiB of memory, the limit is 10.0 MiB (raise --memory to 48M)
= 3

$ echo '{"text":"a"}' > single.jsonl; leat dedup substring single.jsonl -o small --memory 50M
! leat dedup: a run needs 80.0 MiB of memory, the limit is 50.0 MiB (raise --memory to 81M)
= 3

$ leat dedup exact single.jsonl -o single > /dev/null; leat dedup exact single.jsonl -o single --resume
! single: already complete: a run with the same options and input wrote it

$ leat dedup exact single.jsonl -o single --resume --json 2> /dev/null | jget already_complete documents kept
true
1
1

$ leat dedup exact single.jsonl -o single --resume --normalize
! leat dedup: single: the complete output was made with other options or another input (use --force to replace it)
= 2

$ leat dedup exact single.jsonl -o single --resume --compress gzip
! leat dedup: single: the complete output was made with other options or another input (use --force to replace it)
= 2

$ mv single/clusters.jsonl clusters.saved; leat dedup exact single.jsonl -o single --resume; mv clusters.saved single/clusters.jsonl
! leat dedup: single/clusters.jsonl: is missing (use --force to start over)

$ mv single/clusters.jsonl clusters.saved; mkdir single/clusters.jsonl; leat dedup exact single.jsonl -o single --resume; rmdir single/clusters.jsonl; mv clusters.saved single/clusters.jsonl
! leat dedup: single/clusters.jsonl: is not a file (remove it, then use --force to start over)

$ for f in bad.jsonl report.json kept-00000.jsonl; do mv single/$f f.saved; mkdir single/$f; leat dedup exact single.jsonl -o single --force; rmdir single/$f; mv f.saved single/$f; done; ls single
! leat dedup: single/bad.jsonl: is a folder, not a file of an output: remove it first
! leat dedup: single/report.json: is a folder, not a file of an output: remove it first
! leat dedup: single/kept-00000.jsonl: is a folder, not a file of an output: remove it first
bad.jsonl
clusters.jsonl
kept-00000.jsonl
report.json

$ cp single/kept-00000.jsonl kept.saved; : > single/kept-00000.jsonl; leat dedup exact single.jsonl -o single --resume
! leat dedup: single/kept-00000.jsonl: is 0 bytes, expected 13 (use --force to start over)
= 4

$ cp kept.saved single/kept-00000.jsonl; cp single/report.json report.saved; sed -i 's/"kept":1/"kept":2/' single/report.json; leat dedup exact single.jsonl -o single --resume
! leat dedup: single/report.json: is damaged (use --force to start over)
= 4

$ cp report.saved single/report.json; leat dedup exact single.jsonl -o single --resume -q
! single: already complete: a run with the same options and input wrote it

$ mkdir single/.leat-work; leat dedup exact single.jsonl -o single --resume --normalize
! leat dedup: single: the complete output was made with other options or another input (use --force to replace it)
= 2

$ mkdir single/.leat-work; touch single/.leat-work/begun; leat dedup exact single.jsonl -o single
! leat dedup: single: has the output of an earlier run (use --force to replace it)
= 2

$ leat dedup exact single.jsonl -o single --resume --normalize | head -n 1; ls -A single; leat dedup exact single.jsonl -o single --force > /dev/null
.leat-work
bad.jsonl
clusters.jsonl
kept-00000.jsonl
report.json
! leat dedup: single: the complete output was made with other options or another input (use --force to replace it)

$ leat dedup exact single.jsonl -o paged --report paged.html > /dev/null; rm paged.html; leat dedup exact single.jsonl -o paged --report paged.html --resume
! leat dedup: paged.html: is missing (use --force to start over)
= 4

$ echo '{"text":"b"}' > single.jsonl; leat dedup exact single.jsonl -o single --resume
! leat dedup: single: the complete output was made with other options or another input (use --force to replace it)
= 2

$ leat dedup fuzzy in.jsonl -o fuzzy --threshold 0.5 --bands 50 --rows 2 --force --report d.html,d.json > /dev/null; jget clusters sizes.0.from sizes.0.clusters largest.0.kept largest.0.documents < d.json; grep -c '<h2>' d.html
! leat dedup: warning: 1 line could not be read: see fuzzy/bad.jsonl
1
3
1
d1
3
3

$ leat dedup exact in.jsonl -o small --level line --keep longest
! leat dedup: lines are cut out of the texts: --keep is only for runs that remove whole documents
= 2

$ leat dedup substring in.jsonl -o small --keep longest
! leat dedup: substrings are cut out of the texts: --keep is only for runs that remove whole documents
= 2

$ leat dedup exact in.jsonl -o small --words 5
! leat dedup: --words is only for fuzzy and substring deduplication
= 2

$ leat dedup exact in.jsonl -o indexed --index > /dev/null 2>&1; leat dedup fuzzy in.jsonl -o small --against indexed
! leat dedup: indexed/index.leat-dedup: was made by leat dedup exact, and cannot be used by leat dedup fuzzy
= 4

$ leat dedup exact in.jsonl -o small --against indexed --normalize
! leat dedup: indexed/index.leat-dedup: was made without --normalize (use the same)
= 4

$ leat dedup fuzzy in.jsonl -o indexed --index --force > /dev/null 2>&1; leat dedup fuzzy in.jsonl -o small --against indexed --chars 7
! leat dedup: indexed/index.leat-dedup: was made with shingles of 5 words, 14 bands and 8 rows (use the same)
= 4

$ leat dedup substring in.jsonl -o small --words 8 --report s.json --force > /dev/null; jget unit most.0.removed < s.json
! leat dedup: warning: 1 line could not be read: see small/bad.jsonl
words
9

$ leat dedup fuzzy in.jsonl -o trove --compatible datatrove --words 3 --bands 40 --rows 1 --quiet; cat trove/clusters.jsonl
! leat dedup: warning: 1 line could not be read: see trove/bad.jsonl
4 documents: 2 kept, 2 removed in 1 cluster
...
{"id":"d2","kept":"d1","similarity":1.0000}
{"id":"d3","kept":"d1","similarity":1.0000}

$ leat dedup fuzzy in.jsonl -o small --compatible datasketch --clusters star
! leat dedup: --compatible makes components: --clusters star needs a --threshold (see leat dedup --help)
= 2

$ leat dedup fuzzy in.jsonl -o small --compatible datatrove --chars 9
! leat dedup: datatrove has shingles of words, not of characters
= 2

$ printf '{"text":"a b c"}\n{"text":"a b c"}\n' > twice.jsonl; leat dedup substring twice.jsonl -o twice --words 3 | head -n 1; leat dedup exact twice.jsonl -o twice-lines --level line | head -n 1
2 sequences of words: 1 span removed (5 B) from 1 of 2 documents; nothing is left of 1
2 lines: 1 removed (5 B) from 1 of 2 documents; nothing is left of 1

$ leat dedup substring in.jsonl -o sub --words 8 --quiet; cat sub/changed.jsonl
! leat dedup: warning: 1 line could not be read: see sub/bad.jsonl
6 sequences of words: 2 spans removed (*) from 2 of 4 documents; nothing is left of 1 (glob)
...
{"id":"d2","words":9,"removed":9,"kept":false}
{"id":"d3","words":9,"removed":8,"kept":true}

$ leat dedup substring in.jsonl -o small --level line
! leat dedup: --level is for exact, not for substring (see leat dedup --help)
= 2

$ leat plan --text 500G --memory 64G --cpus 32 --io-mbs 2000 --json | jget fits documents filter.limit dedup.limit dedup.ram_bytes dedup.work_bytes guide_bands_low guide_bands_high
true
125000000
io
io
1608947849
41000000000
2
3

$ leat plan --text 500G --memory 1G --cpus 32 > /dev/null
! leat plan: deduplication needs 1.50 GiB of memory. Smallest change: --memory 1608947849 (1.50 GiB)
= 3

$ leat plan --documents 100000000 --ram 2G --limit 1G --json | jget fits fix
false
--limit 1288947849 (1.20 GiB)

$ leat plan --documents 100000000 --ram 2G --limit 1288947849 --json | jget fits
true

$ leat plan --documents 100000000 --ram 1G --limit 2G --json | jget fix
--ram 1288947849 (1.20 GiB)

$ leat dedup exact in.jsonl -o small --bands 3
! leat dedup: --bands is only for fuzzy deduplication
= 2

$ leat dedup similar in.jsonl -o small
! leat dedup: * (glob)
= 2

# on a cluster: handed over to Python
$ leat filter absent.jsonl -o out --set words.min=1 --on slurm
! leat filter: --on: slurm is not ray or ray://HOST:PORT (see leat filter --help)
= 2

$ LEAT_PYTHON=/nowhere/python leat dedup fuzzy absent.jsonl -o out --on ray
! leat dedup: /nowhere/python: not found; dedup runs on Ray: install Python 3.11 or later and 'pip install leat[ray]', or name a Python with LEAT_PYTHON
= 4

$ leat dedup images a.leat -o b.leat --on ray
! leat dedup: --on is for texts, not for images (see leat dedup --help)
= 2

$ leat dedup exact a.jsonl -o b --task-bytes 1M
! leat dedup: --task-bytes needs --on (see leat dedup --help)
= 2

# the doctor on the report of a run
$ mkdir doc; echo '{"limit":"reading","read_share":0.9,"work_share":0.5,"write_share":0.1,"memory_share":0,"seconds":10,"cpu_seconds":9,"text_bytes":100000000,"bytes_in":20000000}' > doc/report.json
> leat doctor doc
Reading limits this run: the reading thread was busy 90 % of the time.
  reading 0.90, CPUs 0.50, writing 0.10, waiting for memory 0.00 of the time
  10.0 s, 10 MB of text per second, 11 per CPU-second
What would help
  1. use inputs that are not compressed, or zstd: one thread reads and decompresses
  2. run on several nodes (--on ray): each has its own reading thread
= 1

$ leat doctor doc/report.json --json | jget limit grade remedies.1.action
reading
warning
run on several nodes (--on ray): each has its own reading thread

$ leat doctor doc --step-ms 5
! leat doctor: --step-ms has no effect on doc/report.json: it is the report of a finished run (see leat doctor --help)
= 2

$ echo '{}' > doc/report.json; leat doctor doc
! leat doctor: doc/report.json: not the report of leat filter, leat dedup or leat decontaminate
= 4

# options that had no effect, or an odd message
$ leat dedup exact in.jsonl -o none --keep field --keep-field nix
! leat dedup: no document has a number in "nix", the key of keep-field
= 4

# a line without words is something, too
$ printf '{"text":"one two\\n----"}\n{"text":"One two\\n----"}\n{"text":"one two\\n \\n"}\n' > rule.jsonl; leat dedup exact rule.jsonl -o rule --level line --normalize > /dev/null; cat rule/kept-00000.jsonl
{"text":"one two\n----"}
{"text":"----"}

# numbers are compared exactly, whatever their kind
$ for n in 1763430000000000000 1763430000000000100 9007199254740993 -1 NaN; do echo "{\"text\":\"a\",\"n\":$n}"; done > number.jsonl
$ leat dedup exact number.jsonl -o number --keep field --keep-field n > /dev/null && cat number/kept-00000.jsonl
! leat dedup: warning: 1 of 5 documents has no number in "n": kept only if no duplicate has one
{"text":"a","n":1763430000000000100}

# -Infinity is the least number, NaN and others are none: they are counted
$ for n in NaN null '"7"' -Infinity; do echo "{\"text\":\"a\",\"n\":$n}"; done > number.jsonl; echo '{"text":"b","n":1}' >> number.jsonl
$ leat dedup exact number.jsonl -o number --force --keep field --keep-field n --json | jget unscored kept && cat number/kept-00000.jsonl
! leat dedup: warning: 3 of 5 documents have no number in "n": kept only if no duplicate has one
3
2
{"text":"a","n":-Infinity}
{"text":"b","n":1}

$ for n in 1e300 1e999 18446744073709551615 Infinity; do echo "{\"text\":\"a\",\"n\":$n}"; done > number.jsonl
$ leat dedup exact number.jsonl -o number --force --keep field --keep-field n > /dev/null && cat number/kept-00000.jsonl
{"text":"a","n":1e999}

$ leat dedup exact in.jsonl -o none2 --keep field
! leat dedup: --keep field needs the name of a key in --keep-field
= 2

$ leat dedup fuzzy in.jsonl -o none2 --bands-per-iteration 50
! leat dedup: --bands-per-iteration: 50 is more than the 14 bands
= 2

$ leat filter in.jsonl -o none2 --set words.min=5 --seed 5
! leat filter: --seed needs --look or --report (see leat filter --help)
= 2

$ leat filter in.jsonl -o none2 --set words.min=5 --memory 4M
! leat filter: score: the memory limit of 4.00 MiB is too low (raise --memory to *M) (glob)
= 3

$ mkdir folder && cp in.jsonl folder && leat filter folder -o folder --set words.min=5
! leat filter: folder: is an input (choose another output folder)
= 2

# control characters of a text do not reach the terminal: U+009B, ESC
$ printf '{"id": "c", "text": "a\302\23331m b\\u001b[0m c\302\240"}\n' > control.jsonl && leat filter control.jsonl --set words.min=50 --look 1 | grep -c '^  | a  31m b [[]0m c'
1

# Files that a run would replace, and other formats.
$ mkdir mine; touch mine/kept-00005.jsonl; leat filter in.jsonl -o mine --set words.min=5; ls -A mine
kept-00005.jsonl
! leat filter: mine: has files that this run would replace: kept-00005.jsonl, and no report of leat that names it (move it, or choose another folder)

# --force is for the output of a run, not for files of such names
$ echo '{"mine": 1}' > mine/report.json
> leat filter in.jsonl -o mine --set words.min=5 -f
> leat dedup exact in.jsonl -o mine -f
> leat decontaminate in.jsonl -o mine --eval in.jsonl --ngram 3 -f
> cat mine/report.json; ls -A mine
{"mine": 1}
kept-00005.jsonl
report.json
! leat filter: mine: has files that this run would replace: kept-00005.jsonl, and no report of leat that names it (move it, or choose another folder)
! leat dedup: mine: has files that this run would replace: kept-00005.jsonl, and no report of leat that names it (move it, or choose another folder)
! leat decontaminate: mine: has files that this run would replace: kept-00005.jsonl, and no report of leat that names it (move it, or choose another folder)

# nor for a file that the earlier run did not write: this one kept nothing
$ leat filter in.jsonl -o bare --set words.min=5000 > bare.txt; cp in.jsonl bare/kept-00003.jsonl
> leat filter in.jsonl -o bare --set words.min=5 -f; ls bare
bad.jsonl
kept-00000.jsonl
kept-00003.jsonl
reasons.jsonl
report.json
! leat filter: warning: 1 line could not be read: see bare/bad.jsonl
! leat filter: bare: has files that this run would replace: kept-00003.jsonl, and no report of leat that names it (move it, or choose another folder)

$ printf 'PAR1....' > t.jsonl; leat filter t.jsonl -o fresh --set words.min=5
! leat filter: t.jsonl: is a Parquet file (leat.filter_parquet and leat.dedup_parquet read it)
= 4

$ printf 'a\nb\n' > bad.jsonl; leat dedup exact bad.jsonl -o of-bad > /dev/null
! leat dedup: no line has a text that could be read (2 lines): see of-bad/bad.jsonl
= 4

# a run that reads no text does not replace the output and the page of an earlier run
$ for how in "filter --set words.min=1 --report good/page.html" "dedup exact --report good/page.html" "dedup fuzzy" "dedup substring" "dedup exact --level line" "decontaminate --eval in.jsonl --ngram 3"; do
>   mkdir good; leat $how in.jsonl -o good > /dev/null 2>&1; cp -r good before
>   leat $how in.jsonl -o good -f --text-field body; echo $?
>   diff -r -x .leat-work before good; ls -A good/.leat-work 2> /dev/null; rm -r good before
> done
4
4
begun
4
begun
4
begun
4
begun
4
! leat filter: no line has a text that could be read (5 lines): the earlier output in good is kept (check --text-field, or choose another folder to list the lines)
! leat dedup: no line has a text that could be read (5 lines): the earlier output in good is kept (check --text-field, or choose another folder to list the lines)
! leat dedup: no line has a text that could be read (5 lines): the earlier output in good is kept (check --text-field, or choose another folder to list the lines)
! leat dedup: no line has a text that could be read (5 lines): the earlier output in good is kept (check --text-field, or choose another folder to list the lines)
! leat dedup: no line has a text that could be read (5 lines): the earlier output in good is kept (check --text-field, or choose another folder to list the lines)
! leat decontaminate: no line has a text that could be read (6 lines): the earlier output in good is kept (check --text-field, or choose another folder to list the lines)

$ leat dedup exact in.jsonl -o again --against unique/index.leat-dedup
! leat dedup: unique/index.leat-dedup: --against names the folder of an index, not the index
= 4

$ mkdir made; cp in.jsonl made/new.jsonl; cp in.jsonl made/kept-00000.jsonl; echo '{}' > made/report.json; leat dedup exact made -o of-made --json | jget files
1
! leat dedup: warning: made/new.jsonl: not read: its folder has the output of a run, of which only kept-* is read
! leat dedup: warning: 1 line could not be read: see of-made/bad.jsonl

# A run that was killed while it replaced its output: nothing reads what is left.
$ leat dedup exact in.jsonl -o half --index > /dev/null 2>&1; rm half/report.json; printf '1\nfiles of leat\n' > half/.leat-lock
> leat filter half -o of-half --set words.min=1
> leat dedup exact half/kept-*.jsonl -o of-half
> leat dedup exact in.jsonl -o of-half --against half
> leat decontaminate in.jsonl -o of-half --eval half
> ls -d of-*
of-bad
of-made
! leat filter: half: incomplete output: a run was killed while it wrote these files, or is still writing them (run it again with --force)
! leat dedup: half: incomplete output: a run was killed while it wrote these files, or is still writing them (run it again with --force)
! leat dedup: half: incomplete output: a run was killed while it wrote these files, or is still writing them (run it again with --force)
! leat decontaminate: half: incomplete output: a run was killed while it wrote these files, or is still writing them (run it again with --force)

# An interrupted run in the output folder is kept without --force, and removed with it, by all commands.
$ for how in "filter --set words.min=1" "dedup exact" "decontaminate --eval in.jsonl --ngram 3"; do
>   mkdir -p left/.leat-work; echo '{}' > left/.leat-work/state.json; leat $how in.jsonl -o left; ls -A left/.leat-work
>   leat $how in.jsonl -o left -f > /dev/null 2>&1; ls -A left | wc -l; rm -r left
>   mkdir -p left/.leat-work; echo '{}' > left/.leat-work/plan.json; leat $how in.jsonl -o left; ls -A left/.leat-work
>   leat $how in.jsonl -o left -f > /dev/null 2>&1; ls -A left | wc -l; rm -r left
> done
state.json
4
plan.json
4
state.json
4
plan.json
4
state.json
5
plan.json
5
! leat filter: left: has an interrupted run of leat dedup (resume that run, or use --force to replace it)
! leat filter: left: has an interrupted run of leat dedup (resume that run, or use --force to replace it)
! leat dedup: left: has an interrupted run (use --resume to resume it, --force to start over)
! leat dedup: left: has an interrupted run on a cluster (resume it there, or use --force)
! leat decontaminate: left: has an interrupted run of leat dedup (resume that run, or use --force to replace it)
! leat decontaminate: left: has an interrupted run of leat dedup (resume that run, or use --force to replace it)

# Temporary files that a killed run of another command left are removed, others are not.
$ for how in "filter --set words.min=1" "dedup exact" "decontaminate --eval in.jsonl --ngram 3"; do
>   mkdir left; touch left/reasons.jsonl.partial left/matches.jsonl.partial left/my.partial
>   leat $how in.jsonl -o left > /dev/null 2>&1; ls left/*.partial; rm -r left
> done
left/my.partial
left/my.partial
left/my.partial

# sizes that look equal are written in bytes
$ leat dedup exact in.jsonl -o close --memory 50331647
! leat dedup: a run needs 50331648 bytes of memory, the limit is 50331647 (raise --memory to 48M)
= 3

# One of each: in pages, plans and lines.
$ printf '{"text": "one two three four"}\n' > one.jsonl; cat one.jsonl one.jsonl > two.jsonl; (cat two.jsonl; echo x) > three.jsonl
> leat dedup fuzzy one.jsonl --plan | cut -d: -f1; leat dedup exact one.jsonl --plan | cut -d: -f1
> leat dedup exact three.jsonl -o ones --report one.html > /dev/null 2>&1; grep -o '<p>[^<]*' one.html
> leat dedup exact one.jsonl -o ones -f --level line --report one.html > /dev/null; grep -o '<p>[^<]*' one.html
> leat filter three.jsonl --set words.min=5 --report one.html > /dev/null 2>&1; grep -om1 '<p>[^<]*' one.html
> leat filter one.jsonl --score-only --set words.min=1 -o ones -f | head -n 1
> leat decontaminate one.jsonl -o ones -f --eval one.jsonl --ngram 3 | sed -n 2p
about 1 document
14 bands of 8
about 1 document
<p>2 documents: 1 kept, 1 removed in 1 cluster; 1 bad line.
<p>1 document: 0 changed, 1 kept, 0 removed; 0 bytes of text taken out; 0 bad lines.
<p>2 documents: 0 kept, 2 dropped; 1 bad line.
1 document: 1 passes the rules, 0 do not
1 of 1 evaluation text was found; 0 have fewer than 3 words

# Case does not count, in any script.
$ printf '{"text": "ОДИН ДВА ТРИ"}\n{"text": "один, два, три"}\n' > case.jsonl; leat dedup exact case.jsonl -o case --normalize --json | jget kept
1

$ leat decontaminate case.jsonl -o clean2 --eval case.jsonl --eval-field text,nosuch --ngram 3 --json | jget kept
0
! leat decontaminate: warning: no line of the evaluation sets has a string "nosuch"

# --score-only drops nothing.
$ leat filter in.jsonl -o scored --score-only --set words.min=5 | head -n 1
4 documents: 3 pass the rules, 1 does not; 1 bad line
! leat filter: warning: 1 line could not be read: see scored/bad.jsonl

# Rules and an index of earlier documents together.
$ printf '{"id": "a", "text": "one two three"}\n' > old.jsonl
> printf '{"id": "b", "text": "four five six"}\n{"id": "c", "text": "one two three"}\n{"id": "d", "text": "few"}\n' > new.jsonl
> leat dedup exact old.jsonl -o ruled-old --index > /dev/null
> leat dedup exact new.jsonl -o ruled-new --against ruled-old --set words.min=2 --json | jget documents kept removed dropped
> cat ruled-new/kept-00000.jsonl
3
1
1
1
{"id": "b", "text": "four five six"}

# A run that keeps nothing has no file with documents.
$ for run in filter 'dedup exact' decontaminate; do leat $run case.jsonl -o none --force --json $([ "$run" = decontaminate ] && echo "--eval case.jsonl --ngram 3" || echo "--set words.min=50") | jget kept shards; done
0
0
0
0
0
0

# An output below an input folder is not read again.
$ mkdir nest; cp old.jsonl nest; for out in one two; do leat filter nest -o nest/$out --set words.min=1 --json | jget documents; done; leat dedup exact nest -o nest/three --json | jget documents
1
1
1
! leat filter: warning: nest/one: not read: the output of a run beside other documents (to read it, name its folder)
! leat dedup: warning: nest/one and 1 more folder: not read: the output of a run beside other documents (to read it, name its folder)

# The size of a long line is the same in all commands, without its newline. --plan counts the lines that it saw.
$ python3 -c 'print("{\"text\": \"short\"}\n" * 50 + "{\"text\": \"" + "word " * 520000 + "\"}")' > long.jsonl
> for memory in 50M 60M; do leat filter long.jsonl -o long --set words.min=1 --memory $memory; leat dedup exact long.jsonl -o long --memory 50M; leat decontaminate long.jsonl -o long --eval long.jsonl --memory $memory; done 2>&1 | grep -o 'line .* bytes' | sort | uniq -c | tr -s ' '
> leat dedup exact long.jsonl -o long --plan | grep -o 'about [0-9]* documents'
 6 line 51 of 2600012 bytes
about 50 documents
