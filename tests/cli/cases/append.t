# Generations of a pack: append, delete, compact; and conditions.

$ pixel() { printf '\211PNG\r\n\032\n\0\0\0\rIHDR\0\0\0\001\0\0\0\001\010\0\0\0\0:~\233U\0\0\0\nIDATx\234c`\0\0\0\002\0\001H\257\244q\0\0\0\0IEND\256B`\202'; }
> mkdir -p a/cat a/dog b/ant b/dog
> for f in a/cat/1 a/cat/2 a/dog/1 b/ant/1 b/dog/9; do pixel > $f.png; done

$ leat pack a -o p.leat --json | jget samples
3

# classes that are there keep their numbers, new ones follow
$ leat append b -o p.leat --json | jget samples existing
2
0
! p.leat is now a set: its samples are in the files p-*.leat beside it; copy them along, or make one file again with leat compact

$ leat info p.leat --json | jget samples fields.1.classes
5
3

$ leat verify p.leat
p.leat: intact, 5 samples, 2 pages, * (glob)

# the same once more: an error that leaves the pack alone, or an answer to give
$ leat append b -o p.leat
! leat append: p.leat: already has a sample with the key "ant/1.png" (choose --if-exists update or skip)
= 2

$ leat append b -o p.leat --if-exists skip
0 samples appended, * (glob)
! 2 samples were in the pack already: kept

$ leat append b -o p.leat --if-exists update --json | jget samples existing
2
2
! 2 samples were in the pack already: replaced

$ leat info p.leat --json | jget samples dropped
5
2

$ leat delete p.leat cat/2.png nobody
1 sample deleted
! leat delete: warning: 1 key was not in the pack ("nobody")
= 1

$ printf 'cat/1.png\ncat/2.png\n' > keys.txt
> leat delete p.leat --keys keys.txt --missing-ok --json | jget samples missing
1
1

# a key that is named twice counts once
$ leat delete p.leat nobody nobody --json | jget samples missing
0
1
! leat delete: warning: 1 key was not in the pack ("nobody")

# only the file of the set is copied
$ mkdir alone && cp p.leat alone
> leat info alone/p.leat
! leat info: alone/p.leat: is a set, and its file p-*.leat is not there: copy it along (leat compact makes one file of a set) (glob)
= 4

$ leat delete p.leat
! leat delete: no key: give KEY... or --keys FILE (see leat delete --help)
= 2

$ leat compact p.leat --json | jget samples shards
3
1

$ leat info p.leat --json | jget samples dropped
3
0

$ leat export p.leat -o back > /dev/null
> find back -name '*.png' | sort
back/ant/1.png
back/dog/1.png
back/dog/9.png

$ ls *.leat* | sort
p.leat

$ leat append a -o none.leat
! leat append: none.leat: * (glob)
= 4

# the key is named once
$ echo nobody > nobody.txt
> leat export p.leat -o nobody --keys nobody.txt
0 files, 0 B, in nobody
! leat export: p.leat: no sample has the key "nobody"
= 4

# conditions
$ leat pack a -o w.leat --where "label == 'cat' and key != 'cat/2.png'" --json | jget samples filtered
1
2

$ leat pack a -o x.leat --where 'label < 1 or'
! leat pack: --where: column 13: something is missing in "label < 1 or"
= 2

$ leat pack a -o x.leat --where 'lable < 1'
! leat pack: --where: column 1: no field 'lable' (there are key, label) in "lable < 1"
= 2

$ leat pack a -o x.leat --where 'label > 100'
! leat pack: a: nothing to pack: none of 3 samples meets the condition
= 4

# parts by hash of key
$ leat split p.leat --parts one=0.5,two=0.5 --json | jget parts.0.name parts.1.path
one
p-two.leat
! leat split: warning: part two has no samples: samples are drawn by chance, and there are few; --stratify gives exact shares of each class

$ leat split --help | tr -s ' \n' ' ' | grep -o "a share of 0.8 of 10 samples may be 7 of them"
a share of 0.8 of 10 samples may be 7 of them

$ leat split p.leat --parts one=0.5,two=0.5
! leat split: p-one.leat: already exists
! --force replaces what is there
= 2

$ leat compact p.leat -o p-one.leat
! leat compact: p-one.leat: already exists
! --force replaces what is there
= 2

$ leat split p.leat --parts all=1 -o new/folder > /dev/null
> leat verify -q new/folder/p-all.leat > /dev/null && echo whole
whole

$ leat split p.leat --parts one=0.9,two=0.5
! leat split: --parts: the shares add up to 1.4, more than 1
= 2

$ leat split p.leat --parts ../one=0.5,two=0.5
! leat split: --parts: "../one=0.5": a name cannot have a "/"; --output sets the folder
= 2

$ leat split p.leat --parts ..=0.5,two=0.5
! leat split: --parts: ".." is not a name of a part
= 2

$ leat split p.leat --parts one=0
! leat split: --parts: the share of part 1 is 0, not above 0 and up to 1
= 2

$ leat split p.leat --parts one
! leat split: --parts: "one" is not NAME=SHARE
= 2

# options of other sources and outputs
$ leat export p.leat -o files --shard-bytes 2M
> leat pack p.leat -o again.leat --strict
> ls files again.leat 2> /dev/null
! leat export: --shard-bytes has no effect: --to folder writes a file per image
! leat pack: p.leat: not a folder of images, so --strict has no effect
= 2

# pictures
$ leat show p.leat
! leat show: stdout is not a terminal: give -o FILE.png, or say how with --as (see leat show --help)
= 2

$ leat show nope.leat
! leat show: nope.leat: cannot open: No such file or directory
= 4

$ leat show p.leat -n 2 -o sheet.png
> head -c 4 sheet.png | tail -c 3; echo
dog/1.png  1x1 png
ant/1.png  1x1 png
PNG

$ leat show p.leat dog/1.png --as blocks | tail -n 1
dog/1.png  1x1 png

$ leat show p.leat dog/1.png --json | jget images.0.key images.0.width images.0.codec
dog/1.png
1
png

# a sheet is replaced on request only, and other files never
$ leat show p.leat -n 1 -o sheet.png
> leat show p.leat -n 1 -o sheet.png --force
> echo mine > mine.png; leat show p.leat -n 1 -o mine.png --force; cat mine.png
> leat show p.leat dog/1.png --count 3 --as blocks
> leat show p.leat --force --as blocks
> leat show p.leat -o new.png --as sixel
dog/1.png  1x1 png
mine
! leat show: sheet.png: already exists
! --force replaces what is there
! leat show: mine.png: is not an earlier output of this kind, and only such a file may be replaced; give another name
! leat show: --count has no effect: all samples of the given keys are shown (see leat show --help)
! leat show: --force needs --output (see leat show --help)
! leat show: --as has no effect with --output: a contact sheet is written as PNG (see leat show --help)
= 2

$ leat show p.leat nobody -o sheet.png -f
! leat show: p.leat: no sample has the key "nobody"
= 4

$ leat show p.leat -o sheet.jpg
> ls sheet.jpg 2> /dev/null
! leat show: sheet.jpg: a contact sheet is written as PNG; give a name that ends in .png
= 2

$ leat show p.leat -n 1 -o SHEET.PNG && leat show p.leat -n 1 -o sheet
> cmp SHEET.PNG sheet
dog/1.png  1x1 png
dog/1.png  1x1 png

# images are not enlarged, and neither is the sheet: 2 x 2 cells of 1 pixel and a gap of 4
$ leat show p.leat -n 3 --size 4096 -o large.png > /dev/null
> od -A n -t u1 -j 16 -N 8 large.png
   0   0   0  10   0   0   0  10

# what is written about a pack does not take its place
$ leat show p.leat -o p.leat
! leat show: p.leat: is a pack; give another name to write to
= 2

$ echo mine > mine.txt
> for flag in --state --report --trace --run-file --quarantine; do
>     leat load p.leat -q -s 16 $flag mine.txt
> done
> leat doctor p.leat --apply mine.txt; leat doctor p.leat --quarantine mine.txt; cat mine.txt
mine
! leat load: --state: mine.txt: is not an earlier output of this kind, and only such a file may be replaced; give another name
! leat load: --report: mine.txt: is not an earlier output of this kind, and only such a file may be replaced; give another name
! leat load: --trace: mine.txt: is not an earlier output of this kind, and only such a file may be replaced; give another name
! leat load: --run-file: mine.txt: is not an earlier output of this kind, and only such a file may be replaced; give another name
! leat load: --quarantine: mine.txt: is not an earlier output of this kind, and only such a file may be replaced; give another name
! leat doctor: --apply: mine.txt: is not an earlier output of this kind, and only such a file may be replaced; give another name
! leat doctor: --quarantine: mine.txt: is not an earlier output of this kind, and only such a file may be replaced; give another name

# earlier outputs are replaced
$ for flag in --state --report --trace --run-file; do
>     leat load p.leat -q -s 16 $flag again > /dev/null && leat load p.leat -q -s 16 $flag again > /dev/null && rm again && echo replaced
> done
replaced
replaced
replaced
replaced

# the verdict is a result: --quiet keeps it
$ leat load p.leat -q -s 16 --doctor 2>&1 > /dev/null | sed -n 1p | grep -c :
1

$ for flag in --state --report --trace --run-file; do
>     leat load p.leat -q -s 16 $flag p.leat
> done
! leat load: p.leat: is a pack; give another name to write to
! leat load: p.leat: is a pack; give another name to write to
! leat load: p.leat: is a pack; give another name to write to
! leat load: p.leat: is a pack; give another name to write to
= 2

$ leat doctor p.leat --seconds 1 --report p.leat
! leat doctor: p.leat: is a pack; give another name to write to
= 2

$ leat pack p.leat -o q.leat --report p.leat
! leat pack: p.leat: is also an input: give the result another name
= 2

$ leat verify -q p.leat > /dev/null && echo whole
whole

# one image per class: the small part stays empty
$ leat split p.leat --parts some=0.8,few=0.2 --stratify label
p-some.leat: 3 samples
p-few.leat: 0 samples
! leat split: warning: part few has no samples: each value of label has too few for a share of 0.2

# an empty folder has no samples
$ mkdir empty
> leat append empty -o p.leat
! leat append: empty: nothing to append: no samples were found
= 4
