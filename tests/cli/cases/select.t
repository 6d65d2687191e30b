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
! leat select: some.leat has 12 rows, but few.leat has 5: it was made from images-1.1.leat; make it again
= 2

$ leat select few.leat -o x.leat
! leat select: there is nothing to select by: give --strategy or --where
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
! leat select: 5 rows need * of memory, more than the 1 B given (--memory) (glob)
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

$ leat pack few.leat -o few.leat --select some.leat -f
! leat pack: few.leat: is also an input: give the result another name
= 2

$ leat pack few.leat -o ./some.leat --select some.leat -f
! leat pack: ./some.leat: is also an input: give the result another name
= 2

$ leat pack few.leat -o few.leat --where 'label < 1' --resume
! leat pack: few.leat: is also an input: give the result another name
= 2

$ leat merge few.leat few.leat -o m.leat --duplicates first --report ./few.leat
! leat merge: ./few.leat: is also an input: give the result another name
= 2

$ leat append few.leat -o ./few.leat --if-exists update
! leat append: ./few.leat: is also an input: give the result another name
= 2

$ printf 'path\na.jpg\n' > list.csv; leat pack list.csv -o l.leat --on-error skip --report list.csv
! leat pack: list.csv: is also an input: give the result another name
= 2

$ leat pack few.leat -o l.leat --report ./l.leat
! leat pack: ./l.leat: is the name of two results: give one another name
= 2

$ leat check few.leat -o c.leat --csv ./c.leat
! leat check: ./c.leat: is the name of two results: give one another name
= 2

$ leat dedup images few.leat -o c.leat --csv c.leat
! leat dedup: c.leat: is the name of two results: give one another name
= 2

$ leat select few.leat -s random -n 2 -o p.leat > /dev/null; leat select few.leat -s random -n 2 -o p.leat --previous p.leat -f
! leat select: p.leat: is also an input: give the result another name
= 2

$ leat select few.leat -s random -n 0 -o x.leat
! leat select: -n: 0 is out of range (1 to 4000000000) (see leat select --help)
= 2

$ leat select few.leat --where 'key == "nothing"' -o x.leat -f
! leat select: few.leat: no sample is selected: none of 5 meets the conditions
= 4

$ leat select few.leat -s random --share 0 -o x.leat
! leat select: --share: 0 is not allowed; leave it out for the default (see leat select --help)
= 2

$ leat dedup semantic few.leat --keep-share 0 -o x.leat
! leat dedup: --keep-share: 0 is not allowed; leave it out for the default (see leat dedup --help)
= 2

$ leat dedup images few.leat --threshold 0 -o x.leat
! leat dedup: --threshold: 0 is not allowed; leave it out for the default (see leat dedup --help)
= 2

$ leat select few.leat --where 'label >= 0' --with , -o x.leat
! leat select: --with: a name in the list is empty (see leat select --help)
= 2

$ leat select few.leat --where 'label >= 0' --with p.leat,./p.leat -o x.leat
! leat select: ./p.leat: these columns are named twice
= 2

$ leat select few.leat -s random -n 2 -e p.leat -o x.leat
! leat select: p.leat: no strategy uses these embeddings
= 2

$ leat select few.leat -s random -n 2 --with p.leat -o x.leat
! leat select: p.leat: no strategy and no condition uses columns
= 2

$ leat pack few.leat -o again.leat --quiet > /dev/null; leat pack again.leat --select p.leat -o x.leat
! leat pack: p.leat: its columns were not made from again.leat as it is now (its fingerprint is not in them), but from few.leat; make them again
= 2

# fewer samples than asked for
$ leat select $LEAT_TEST_DATA/images-1.1.leat -s random -n 1000 -o all.leat | sed 1q
12 of 12 samples selected
! leat select: warning: 1000 samples were asked for: only 12 of 12 were selected

$ leat select $LEAT_TEST_DATA/images-1.1.leat --share 0.75 --where 'label == 1' -o half.leat --json | grep -o '"asked": *[0-9]*'
"asked":9
! leat select: warning: 9 samples were asked for: only 6 of 12 were selected

# a name that several packs have
$ leat check few.leat -o a.leat --json | jget samples; leat dedup images a.leat -o b.leat --json | jget samples; leat select few.leat -s random -n 2 -o c.leat; leat select few.leat -s random -n 2 --seed 1 -o d-2.leat >/dev/null
5
5
2 of 5 samples selected
* CPU-seconds (glob)

$ leat select few.leat --with a.leat,b.leat --where 'orientation == 1' -o x.leat --force
! leat select: column 'orientation' is in a.leat and b.leat; write 'a.orientation' or 'b.orientation'
= 2

$ leat select few.leat --with b.leat,a.leat -s weights --column orientation -o x.leat --force
! leat select: column 'orientation' is in b.leat and a.leat; write 'b.orientation' or 'a.orientation'
= 2

$ leat select few.leat --with b.leat,a.leat -s weights --column a.orientation --where 'a.blur >= 0 and keep == 1' -o x.leat --force --json | jget selected
3

$ leat select few.leat --with c.leat,d-2.leat --where 'selected == 1' -o x.leat --force
! leat select: column 'selected' is in c.leat and d-2.leat; write 'c.selected' or `d-2.selected`
= 2

$ leat select few.leat --with c.leat,d-2.leat --where 'c.selected == 1 or `d-2.selected` == 1' -o x.leat --force --json | jget excluded asked
2
0

$ mkdir other; cp c.leat other; leat select few.leat --with c.leat,other/c.leat --where 'c.selected == 1' -o x.leat --force
! leat select: column 'selected' is in c.leat and other/c.leat: two files have the same name, so rename one of them
= 2

# an unknown column, and an unknown class
$ leat select few.leat -s balance --column colour -n 2 -o z.leat
! leat select: there is no int or float column 'colour' (there are label)
= 2

$ leat select few.leat --where "label == 'zebra'" -o z.leat
! leat select: --where: column 10: no class of the name 'zebra' (there are a, b) in "label == 'zebra'"
= 2

# a selection without samples
$ leat export $LEAT_TEST_DATA/images-1.1.leat -o files > /dev/null
> (cd files; echo path,selected; ls */*.jpg | sed s/$/,0/) > none.list; mv none.list files/none.csv; leat pack files/none.csv -o none.leat --quiet > /dev/null
> leat select $LEAT_TEST_DATA/images-1.1.leat -s random -n 5 -o v.leat --previous none.leat > /dev/null
! leat select: warning: none.leat: no sample is selected: there is nothing to keep

$ timeout -s INT 3 leat view $LEAT_TEST_DATA/images-1.1.leat --selection none.leat > /dev/null; test $? = 124
! leat view: warning: none.leat: no sample is selected: the view begins without a selection
! 12 images, 5 columns; Ctrl-C ends the view
