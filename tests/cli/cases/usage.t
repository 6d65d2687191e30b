# Wrong usage: exit 2, one line, and a hint of the nearest valid word.

$ leat hlep
! leat: unknown command 'hlep'; did you mean 'help'? (see leat --help)
= 2

$ leat xyzzy
! leat: unknown command 'xyzzy' (see leat --help)
= 2

# a unique beginning is a hint, not an abbreviation
$ leat compl
! leat: unknown command 'compl'; did you mean 'completions'? (see leat --help)
= 2

$ leat --vresion
! leat: unknown option --vresion; did you mean --version? (see leat --help)
= 2

$ leat --json help
! leat: options come after the command: leat help [OPTIONS] (see leat --help)
= 2

$ leat completions
! leat completions: SHELL is missing: the shell to write for (see leat completions --help)
= 2

$ leat completions fisch
! leat completions: SHELL: 'fisch' is not one of bash|zsh|fish; did you mean 'fish'? (see leat completions --help)
= 2

$ leat completions bash zsh
! leat completions: unexpected argument 'zsh' (see leat completions --help)
= 2

$ leat help hepl
! leat help: 'hepl' is neither a command nor an op; did you mean 'help'? (see leat help --help)
= 2

$ leat help NoSuchThing
! leat help: 'NoSuchThing' is neither a command nor an op: leat help lists the commands, leat help ops the ops (see leat help --help)
= 2

# nonsense: one line that names the argument
$ leat info ""
> leat load x.leat --batch 99999999999999999999
> mkdir folder; echo text > file; leat doctor --attach folder; leat export $LEAT_TEST_DATA/images-1.1.leat -o file; leat select x.leat -s random -n 1 -o folder
! leat info: PACK: is empty (see leat info --help)
! leat load: --batch: 99999999999999999999 is out of range (1 to 1048576) (see leat load --help)
! leat doctor: folder: is a folder, not a file
! leat export: file: is a file, not a folder
! leat select: folder: is a folder, not a file
= 2

# a file in the place of a folder is named
$ mkdir sub; echo '{"text":"a"}' > sub/docs.jsonl; leat filter sub/docs.jsonl -o sub/out --report sub/docs.jsonl/page.html
> leat filter sub/docs.jsonl -o sub/out --report sub/docs.jsonl/x/page.html
> leat load $LEAT_TEST_DATA/images-1.1.leat --report sub/docs.jsonl/page.html
> leat pack sub -o sub/docs.jsonl/x.leat
! leat filter: --report: sub/docs.jsonl: is a file, not a folder
! leat filter: --report: sub/docs.jsonl: is a file, not a folder
! leat load: sub/docs.jsonl: is a file, not a folder
! leat pack: sub/docs.jsonl: is a file, not a folder
= 2

$ leat help load --json | jget commands.# commands.0.name
1
load

$ leat help load --json --man
! leat help: --man and --json are two forms of a page: give one of them (see leat help --help)
= 2

$ leat help -json
! leat help: unknown option -json; did you mean --json? (see leat help --help)
= 2

# names from outside cannot move the cursor or forge lines
$ leat $'a\nb\033[31m' 2>&1 | tr -d '?' | cat -v
leat: unknown command 'ab[31m' (see leat --help)

# help wins over what is missing
$ leat completions --help | head -1
leat completions - write a shell's completion script

# words of other tools, and a pack where an option takes it
$ leat load x.leat --workers 4; leat plan x.leat
! leat load: unknown option --workers; did you mean --threads? (see leat load --help)
! leat plan: unexpected argument 'x.leat'; did you mean --dataset x.leat? (see leat plan --help)
= 2
