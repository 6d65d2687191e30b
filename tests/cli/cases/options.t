# All ways of writing options, through a real process.

$ $LEAT_FIXTURE echo
{"count":1,"ratio":0.5,"memory":1073741824,"every":0.25,"mode":"keep","name":null,"output":null,"mean1":0,"resume":false,"count_given":false,"args":[]}

$ $LEAT_FIXTURE echo a --count 3 b --ratio=1 -m1.5K -n x --mean 0,-0.5,1 -- --count - | jget count ratio memory name mean1 args
3
1
1536
x
-0.5
["a", "b", "--count", "-"]

$ $LEAT_FIXTURE echo --count -5 -7 -.5 - | jget count args count_given
-5
["-7", "-.5", "-"]
true

$ $LEAT_FIXTURE echo -rqc9 -ofile --no-resume | jget resume count output
false
9
file

$ $LEAT_FIXTURE echo --count=1 --count=2 --mode raw --every 2m --resume=no -r | jget count mode every resume
2
raw
120
true

$ $LEAT_FIXTURE echo --output=--strange --name= x
! leat echo: --name: is empty (see leat echo --help)
= 2

$ $LEAT_FIXTURE echo --output --json
! leat echo: --output needs a value (--output=--json if '--json' is meant) (see leat echo --help)
= 2

$ $LEAT_FIXTURE echo -o
! leat echo: -o needs a value (see leat echo --help)
= 2

$ $LEAT_FIXTURE echo --count 1001
! leat echo: --count: 1001 is out of range (-10 to 1000) (see leat echo --help)
= 2

$ $LEAT_FIXTURE echo -c 1.5
! leat echo: -c: '1.5' is not a whole number (see leat echo --help)
= 2

$ $LEAT_FIXTURE echo --mode tield
! leat echo: --mode: 'tield' is not one of keep|tiled|raw; did you mean 'tiled'? (see leat echo --help)
= 2

$ $LEAT_FIXTURE echo --no-resum
! leat echo: unknown option --no-resum; did you mean --no-resume? (see leat echo --help)
= 2

$ $LEAT_FIXTURE echo --no-count
! leat echo: unknown option --no-count; did you mean --count? (see leat echo --help)
= 2

$ $LEAT_FIXTURE echo --resume=maybe
! leat echo: --resume: 'maybe' is not yes or no (see leat echo --help)
= 2

$ $LEAT_FIXTURE echo -x
! leat echo: unknown option -x (see leat echo --help)
= 2

$ $LEAT_FIXTURE echo --mean 1,2
! leat echo: --mean: 2 is out of range (-1 to 1) (see leat echo --help)
= 2

$ $LEAT_FIXTURE echo --mean 1,1
! leat echo: --mean: '1,1' has 2 numbers, 3 are needed (see leat echo --help)
= 2
