# Checks of images.

$ leat check $LEAT_TEST_DATA/images-1.1.leat -o check.leat --json | jget samples ok ignored
12
12
0

$ leat check $LEAT_TEST_DATA/images-1.1.leat -o check.leat
! leat check: check.leat: already exists
! --force replaces what is there
= 2

$ leat check $LEAT_TEST_DATA/images-1.1.leat -o check.leat --force --limits drak=3
! leat check: --limits: "drak" is not an issue with a limit (did you mean dark?)
= 2

$ leat check $LEAT_TEST_DATA/images-1.1.leat -o check.leat --force --limits dark=off,dark=3
! leat check: --limits: dark appears twice
= 2

$ leat check nothing -o none.leat
! leat check: nothing: cannot open: No such file or directory
= 4

$ leat check $LEAT_TEST_DATA/images-1.1.leat -o s3://bucket/x.leat
! leat check: s3://bucket/x.leat: columns are written to a local file
= 2

$ mkdir p && printf 'no image' > p/a.jpg && leat check p -o p.leat --csv p.csv | tail -n 1; cut -d, -f1-6,23 p.csv
       1  not_an_image                              a.jpg
key,verdict,issues,width,height,bytes,reason
a.jpg,not_an_image,not_an_image,0,0,8,not an image format that leat reads

$ leat dedup images $LEAT_TEST_DATA/images-1.1.leat check.leat -o dup.leat --csv pairs.csv --across --json | jget samples exact kept
24
12
3

# help names each key of the JSON
$ leat dedup images check.leat -o keys.leat --json | tr ',{' '\n\n' | sed -n 's/^"\([a-z_]*\)":.*/\1/p' | while read k; do leat help dedup | grep -q "^  $k " || echo $k; done

$ head -n 2 pairs.csv | cut -d, -f6
verdict
duplicate

# a list takes the place of an earlier list only, and that with --force
$ leat check p -o q.leat --csv p.csv
! leat check: p.csv: already exists
! --force replaces what is there
= 2

$ leat check p -o p.leat --csv p/a.jpg --force; cat p/a.jpg; echo
> leat dedup images p -o q.leat --csv p/a.jpg --force; cat p/a.jpg; echo
> leat pack p -o q.leat --on-error skip --report p/a.jpg --force; cat p/a.jpg; echo
no image
no image
no image
! leat check: p/a.jpg: is not an earlier output of this kind, and only such a file may be replaced; give another name
! leat dedup: p/a.jpg: is not an earlier output of this kind, and only such a file may be replaced; give another name
! leat pack: p/a.jpg: is not an earlier output of this kind, and only such a file may be replaced; give another name

$ leat check p -o p.leat --csv p.csv --force > /dev/null; cut -d, -f1-2 p.csv; ls p.csv* q.leat*
key,verdict
a.jpg,not_an_image
p.csv
! ls: cannot access 'q.leat*': No such file or directory
= 2

$ leat dedup images check.leat -o dup.leat
! leat dedup: dup.leat: already exists
! --force replaces what is there
= 2

$ leat dedup images check.leat -o other.leat --words 3
! leat dedup: --words is for texts, not for images (see leat dedup --help)
= 2

$ leat dedup images check.leat -o other.leat --keep longest
! leat dedup: --keep longest is for texts (see leat dedup --help)
= 2

$ leat dedup fuzzy in.jsonl -o out --windows
! leat dedup: --windows is for images, not for texts (see leat dedup --help)
= 2

$ leat dedup images check.leat -o other.leat --across
! leat dedup: --across: needs two inputs or more
= 2

$ leat help dedup images | head -1
leat dedup - find duplicate images, remove duplicate documents

$ leat help dedup pictures
! leat help: leat dedup has no 'pictures' (see leat help --help)
= 2

$ leat help ops images
! leat help: unexpected argument 'images': 'ops' is not a command (see leat help --help)
= 2

$ leat dedup images check.leat -o other.leat --memory 1K
! leat dedup: 12 images do not fit the 1.00 KiB given (--memory): * is enough (glob)
= 3

$ leat check $LEAT_TEST_DATA/images-1.1.leat --labels -o labels.leat
! leat check: labels need embeddings: a pack of leat embed, or predictions
= 2

$ leat check $LEAT_TEST_DATA/images-1.1.leat --labels -e check.leat -o labels.leat
! leat check: check.leat: has no field of vectors (leat embed writes them)
= 2

$ leat check $LEAT_TEST_DATA/images-1.1.leat --labels -e check.leat -o labels.leat --limits dark=4
! leat check: --limits has no effect with --labels (see leat check --help)
= 2

$ leat check $LEAT_TEST_DATA/images-1.1.leat --neighbours 4 -o labels.leat
! leat check: --neighbours needs --labels (see leat check --help)
= 2

$ leat dedup semantic check.leat -o near.leat
! leat dedup: check.leat: has no field of vectors (leat embed writes them)
= 2

$ leat dedup semantic check.leat -o near.leat --windows
! leat dedup: --windows is for images, not for vectors (see leat dedup --help)
= 2

$ leat dedup semantic check.leat -o near.leat --level line
! leat dedup: --level is for texts, not for vectors (see leat dedup --help)
= 2

$ leat dedup semantic check.leat -o near.leat --keep largest
! leat dedup: --keep largest is for images (see leat dedup --help)
= 2

$ leat dedup images check.leat -o near.leat --keep-share 0.5
! leat dedup: --keep-share is for vectors, not for images (see leat dedup --help)
= 2

$ leat dedup semantic check.leat dup.leat -o near.leat
! leat dedup: semantic: give one pack of vectors (see leat dedup --help)
= 2

$ leat pack $LEAT_TEST_DATA/images-1.1.leat -o packed.leat --check packed.check.leat > /dev/null; leat check packed.leat -o again.leat > /dev/null; cmp packed.check.leat again.leat && echo equal
equal

$ leat pack $LEAT_TEST_DATA/images-1.1.leat -o packed.leat --check ./packed.leat -f
! leat pack: ./packed.leat: is the name of two results: give one another name
= 2

$ leat pack $LEAT_TEST_DATA/images-1.1.leat -o new.leat --check again.leat
! leat pack: again.leat: already exists
! --force replaces what is there
= 2
