# A run, watched.

# a run that is over: its last view, once
$ cat > run.jsonl <<'END'
> {"run":"a","part":0,"version":1}
> {"frame":{"at_s":1,"samples_per_s":2500,"lost":0.5,"cpu_used":1.5,"budget_used":1048576,"budget_limit":4194304,"threads":2,"epoch":3,"samples":12000,"stages":{"decode":{"busy":1.9,"ready":1,"waiting":7}}}}
> {"facts":{"steps":200,"batch":256,"data_ms":50,"batch_ms":50,"samples_per_s":2560,"cpu_all":2600,"cpu_one":1300,"decode_ready":0.95,"blocked":0,"decode_share":0.93,"threads":2,"cpus":2,"cpu_used":1.9},"state":"ended"}
> END
> leat top run.jsonl
leat  epoch 3  12.0k samples  1.0s  now 2.50k samples/s, 0 B/s read
CPU-bound: decode takes 93 % of worker time; the trainer waits 50 % of each step
stage * (glob)
...
decode    ████████████████████████████████████████  100 %    1.90        7
...
memory    ██████████······························ 1.00 MiB of 4.00 MiB
...
best remedy: * (glob)

$ leat top run.jsonl --json | jget frame.epoch frame.stages.decode.waiting limit lost
3
7
cpu
0.5

$ leat top run.jsonl --once | sed 1q
leat  epoch 3  12.0k samples  1.0s  now 2.50k samples/s, 0 B/s read

# the folder of leat train has its record inside
$ mkdir out && cp run.jsonl out/ && leat top out --once | sed 1q
leat  epoch 3  12.0k samples  1.0s  now 2.50k samples/s, 0 B/s read

# what the doctor says of it
$ leat doctor --attach run.jsonl --json | jget limit grade
cpu
critical

# a run without a verdict yet, and what is no run
$ sed 2q run.jsonl > young.jsonl
> leat top young.jsonl --once
! leat top: young.jsonl: no verdict yet: try again in a second
= 4

$ echo hello > text
> leat top text
! leat top: text: line 1: not a run file: * (glob)
= 4

$ echo '{"path": 3}' > lines.jsonl
> leat top lines.jsonl
! leat top: lines.jsonl: line 1: not a run file: it has none of run, frame and facts
= 4

# a file that never comes: a pipe does not wait forever
$ leat top nowhere.jsonl --wait 300ms | cat; echo ${PIPESTATUS[0]}
4
! waiting for nowhere.jsonl
! leat top: nowhere.jsonl: no run file after 0.3 s (--wait TIME waits longer)

$ leat top nowhere.jsonl --wait 300ms --quiet
! leat top: nowhere.jsonl: no run file after 0.3 s (--wait TIME waits longer)
= 4

# the last record has the totals of the whole run
$ leat load $LEAT_TEST_DATA/images-1.1.leat -s 8 -b 4 --epochs 3 --run-file load.jsonl > /dev/null
> leat top load.jsonl --json | jget frame.samples
36
! wrote load.jsonl

$ leat top nowhere.jsonl --once
! leat top: nowhere.jsonl: *: No such file or directory (glob)
= 4

$ leat top
! leat top: RUN is missing: the run file (see leat top --help)
= 2

$ leat top $LEAT_TEST_DATA/images-1.1.leat --once
! leat top: *: a pack, not a run file (glob)
= 4
