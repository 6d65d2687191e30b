# Selections.

$ leat select $LEAT_TEST_DATA/images-1.1.leat -s random -n 5 -o some.leat --json | jget samples selected previous excluded
12
5
0
0

$ leat select $LEAT_TEST_DATA/images-1.1.leat -s random -n 5 -o some.leat
! leat select: some.leat: already exists
! --force replaces what is there
= 2

$ leat select $LEAT_TEST_DATA/images-1.1.leat -s random -n 4 -o more.leat --previous some.leat --json | jget selected previous round
4
5
1

$ leat load $LEAT_TEST_DATA/images-1.1.leat --select more.leat -s 8 --json | jget samples
9

$ leat pack $LEAT_TEST_DATA/images-1.1.leat --select some.leat -o few.leat --json | jget samples
5

$ leat export $LEAT_TEST_DATA/images-1.1.leat --select some.leat -o out --json | jget samples
5

$ leat select few.leat -s random -n 2 -o x.leat --previous some.leat
! leat select: some.leat has 12 rows, but few.leat has 5: it was made from another pack
= 2

$ leat select few.leat -o x.leat
! leat select: there is nothing to select by: give strategies or where
= 2

$ leat select few.leat -o x.leat --column label
! leat select: --column needs --strategy weights|balance (see leat select --help)
= 2

$ leat select few.leat -o x.leat -s random --column label
! leat select: --column has no effect with --strategy random (see leat select --help)
= 2

$ leat select few.leat -o x.leat -s diversity -n 3
! leat select: diversity needs embeddings: a pack of leat embed
= 2

$ leat select few.leat -o x.leat -s diversity -n 3 -e some.leat
! leat select: some.leat: has no field of vectors (leat embed writes them)
= 2

$ printf 'count: 2\nstrategies:\n- strategy: weights\n  colum: x\n' > bad.yaml; leat select few.leat -o x.leat -c bad.yaml
! leat select: bad.yaml:4: unknown key 'colum'; did you mean 'column'?
= 2

$ printf 'where: key != "nothing"\nstrategies:\n- strategy: random\n' > good.yaml; leat select few.leat -o x.leat -c good.yaml -n 3 --json | jget selected
3

$ leat select few.leat -o y.leat -s random -n 3 --memory 1
! leat select: 5 rows need * bytes of memory, more than the 1 given (glob)
= 3

$ leat select few.leat -o few.leat -s random -n 3 --force
! leat select: few.leat: is also an input: give the result another name
= 2

$ leat select few.leat -o ./some.leat -s random -n 3 --force --with some.leat
! leat select: ./some.leat: is also an input: give the result another name
= 2

$ leat dedup semantic few.leat -o ./few.leat --force
! leat dedup: ./few.leat: is also an input: give the result another name
= 2

$ leat check few.leat --labels -e some.leat -o few.leat --force
! leat check: few.leat: is also an input: give the result another name
= 2

$ leat check few.leat -o few.leat --force
! leat check: few.leat: is also an input: give the result another name
= 2

$ leat dedup images few.leat -o ./few.leat --force
! leat dedup: ./few.leat: is also an input: give the result another name
= 2

$ leat check few.leat -o new.leat --csv ./few.leat
! leat check: ./few.leat: is also an input: give the result another name
= 2

$ leat check few.leat --labels -e some.leat -o new.leat --csv some.leat
! leat check: some.leat: is also an input: give the result another name
= 2

$ leat dedup images few.leat -o new.leat --csv few.leat
! leat dedup: few.leat: is also an input: give the result another name
= 2
