# Finding the bottleneck of a run.

# a run that is over, judged from its facts: decoding limits, half of the step is lost
$ cat > run.json <<'END'
> {"facts": {"steps": 200, "batch": 256, "data_ms": 50, "batch_ms": 50, "samples_per_s": 2560,
>  "io_cold": 20000, "io_warm": 80000, "cached": 0, "cpu_all": 2600, "cpu_one": 165,
>  "delivery": 90000, "decode_ready": 0.95, "blocked": 0, "decode_share": 0.93, "threads": 16,
>  "cpus": 16, "cpus_host": 16, "cpu_used": 15.7, "sample_bytes": 110000}}
> END
> leat doctor --attach run.json
CPU-bound: decode takes 93 % of worker time; the trainer waits 50 % of each step
critical; confidence * %; next limit: trainer (glob)
...
*decode + augment*2.60k  <- the limit (glob)
...
Remedies, by predicted gain
   2.00x  a machine with 32 CPUs instead of 16
          5.12k samples/s, then trainer limits (estimated from the rates above, not tried)
= 1

$ leat doctor --attach run.json --json | jget limit cause grade complete shares.wait rates.gpu remedies.0.gain
cpu
decode
critical
true
0.5
5120
2

# a remedy that was tried is not called untried when its runs disagree
$ sed 's/"cpus": 16/"cpus": 32, "trials": [{"set": "threads=32", "samples_per_s": 4000, "gain": 1.5, "spread": 0.3}]/' run.json > tried.json
> leat doctor --attach tried.json | grep 'trainer limits'
          3.84k samples/s, then trainer limits (an estimate: its trials differ by 30 %); load flags: threads=32

# from a pipe; few steps are a first impression and at most a warning
$ sed 's/"steps": 200/"steps": 5/' run.json | leat doctor --attach - --json | jget grade verdict
warning
CPU-bound (few steps, a first impression): decode takes 93 % of worker time; the trainer waits 50 % of each step

# what is not known makes it incomplete, never fine
$ echo '{"data_ms": 1, "steps": 100}' | leat doctor --attach - --json | jget limit complete missing.0
none
false
the trainer's step time (--step-ms, or batch_ms of a run)

# the flags that help, as a file that load reads
$ sed 's/"threads": 16/"threads": 4/; s/"cpu_used": 15.7/"cpu_used": 4/' run.json > slow.json
> leat doctor --attach slow.json --apply fast.yaml >/dev/null
> grep -v '^#' fast.yaml
! wrote fast.yaml
threads: 16

# wrong usage and bad data
$ leat doctor
! leat doctor: give a PACK, the folder of a run, or a run with --attach (see leat doctor --help)
= 2

# what has no effect, or cannot be written, is said before anything is measured
$ leat doctor nowhere.leat --attach run.json
> leat doctor --attach run.json --seconds 4
! leat doctor: --attach diagnoses a recorded run, PACK is measured: give one of them (see leat doctor --help)
! leat doctor: --seconds has no effect on a recorded run (see leat doctor --help)
= 2

$ leat doctor --attach run.json --batch 4
> leat doctor --attach run.json --trace trace.json
> leat doctor nowhere.leat --epochs 2
! leat doctor: --batch has no effect on a recorded run (see leat doctor --help)
! leat doctor: --trace has no effect on a recorded run (see leat doctor --help)
! leat doctor: --epochs has no effect: leat doctor measures for --seconds (see leat doctor --help)
= 2

# a description without facts
$ echo '{}' > empty.json; leat doctor --attach empty.json
! leat doctor: empty.json: describes no run: it has no facts (give the file of a run, or the output of leat doctor --json)
= 4

# JSON of other programs
$ echo '{"name": "model", "layers": 3}' > model.json; leat doctor --attach model.json
> echo '[1, 2]' > list.json; leat doctor --attach list.json
> echo 'words' > words.txt; leat doctor --attach words.txt
! leat doctor: model.json: not a run file: it has no facts about a run
! leat doctor: list.json: not a run file: neither JSON lines nor a JSON object
! leat doctor: words.txt: not a run file: line 1: '[' or '{' expected near 'words'
= 4

$ leat doctor --attach run.json --apply nowhere/fast.yaml
! leat doctor: nowhere: no such folder
= 4

# a run file that ends before its first verdict
$ printf '%s\n%s' '{"run":"09713f672beecc6e","part":0,"version":1,"pid":1}' '{"frame":{"at_s":0.25' > cut.jsonl; leat doctor --attach cut.jsonl
! leat doctor: cut.jsonl: the run has no verdict yet: try again in a second
= 4

# and one with a damaged line, or one of another program
$ run='{"run":"09713f672beecc6e","part":0,"version":1,"pid":1}'; facts='{"facts":{"steps":100,"data_ms":1,"batch_ms":9},"state":"ended"}'
> printf '%s\n' "$run" "$facts" '{"frame":{"at_s":' "$facts" > damaged.jsonl; leat doctor --attach damaged.jsonl
> printf '%s\n' "$run" "$facts" "$facts" '{"path": 3}' > other.jsonl; leat doctor --attach other.jsonl
> printf '%s\n' "$run" '{"facts":{"steps":"many"}}' > words.jsonl; leat doctor --attach words.jsonl
! leat doctor: damaged.jsonl: line 3: not a run file: * (glob)
! leat doctor: other.jsonl: line 4: not a run file: it has none of run, frame and facts
! leat doctor: words.jsonl: line 2: steps is not a number
= 4

$ leat doctor --attach run.json --verify
! leat doctor: --verify needs a pack: a recorded run cannot be run again (see leat doctor --help)
= 2

$ echo '{"steps": "many"}' | leat doctor --attach -
! leat doctor: -: steps is not a number
= 4

$ leat doctor nowhere.leat
! leat doctor: nowhere.leat: *: No such file or directory (glob)
= 4

# folders of runs: of leat train, which has its loader's record, and of leat curate
$ mkdir trained && echo '{"facts": {"steps": 200, "batch": 256, "data_ms": 50, "batch_ms": 50, "samples_per_s": 2560, "io_cold": 20000, "io_warm": 80000, "cached": 0, "cpu_all": 2600, "cpu_one": 165, "delivery": 90000, "decode_ready": 0.95, "blocked": 0, "decode_share": 0.93, "threads": 16, "cpus": 16, "cpus_host": 16, "cpu_used": 15.7, "sample_bytes": 110000}}' > trained/run.jsonl
> leat doctor trained --json | jget limit cause grade
cpu
decode
critical

$ leat doctor trained --verify
! leat doctor: --verify needs a pack: a recorded run cannot be run again (see leat doctor --help)
= 2

$ mkdir curated
> echo '{"version": 1, "steps": {"pack": {"state": "done", "seconds": 30, "cpu_seconds": 4, "limit": "I/O", "why": "7 % of 2 CPUs, 900 MB read", "advice": "a faster disk"}, "select": {"state": "running"}}}' > curated/run.json
> leat doctor curated
pack took 100 % of 30.0 s; its limit: I/O (7 % of 2 CPUs, 900 MB read).
  pack         30.0 s  I/O                   a faster disk
  select   not done
= 1

$ leat doctor curated --json | jget limit grade steps.0.action steps.1.done
I/O
warning
a faster disk
false

$ leat doctor curated --step-ms 5
! leat doctor: --step-ms has no effect on curated/run.json: it is the report of a finished run (see leat doctor --help)
= 2
