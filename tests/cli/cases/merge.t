# Several packs as one: equal keys, fields, conditions.

$ pixel() { printf '\211PNG\r\n\032\n\0\0\0\rIHDR\0\0\0\001\0\0\0\001\010\0\0\0\0:~\233U\0\0\0\nIDATx\234c`\0\0\0\002\0\001H\257\244q\0\0\0\0IEND\256B`\202'; }
> mkdir -p a/cat a/dog b/ant b/dog
> for f in a/cat/1 a/cat/2 a/dog/1 b/ant/1 b/dog/1; do pixel > $f.png; done
> leat pack a -o a.leat > /dev/null && leat pack b -o b.leat > /dev/null

# classes of the first pack keep their numbers
$ leat merge a.leat b.leat -o m.leat --duplicates rename
5 samples, * (glob)
! 1 sample with the key of another one: renamed

$ leat info m.leat --json | jget samples fields.1.classes
5
3

$ leat export m.leat -o out > /dev/null && ls out/dog
1-2.png
1.png

$ leat merge a.leat b.leat -o m.leat
! leat merge: "dog/1.png" is the key of a sample in a.leat and of one in b.leat: choose what happens to such samples (--duplicates first, last or rename)
= 2

$ leat merge a.leat b.leat -o m.leat --duplicates first
! leat merge: m.leat: already exists
! --force replaces what is there
= 2

$ leat merge a.leat b.leat -o m.leat -f --duplicates first --json | jget samples duplicates recoded
4
1
0

$ leat merge a.leat b.leat -o m.leat -f --where "label == 'dog'" --duplicates last --json | jget samples duplicates filtered
1
1
3

# the same pack twice
$ leat merge a.leat a.leat -o n.leat
! leat merge: a.leat is given twice, so each of its keys would occur twice: give it once, or choose what happens to such samples (--duplicates first, last or rename)
= 2

$ leat merge a -o n.leat
! leat merge: a: only packs can be merged; pack it first
= 2

$ leat merge a.leat b.leat
! leat merge: --output is missing: write the pack here (see leat merge --help)
= 2

$ printf 'path,score\na/cat/1.png,0.5\n' > list.csv
> leat pack list.csv -o s.leat > /dev/null
> leat merge a.leat s.leat -o n.leat
! leat merge: s.leat has no field 'label', which a.leat has
= 2

$ ls n.leat* 2>/dev/null
= 2

# a pack is never merged into one of its inputs
$ leat merge a.leat b.leat -o a.leat --force
! leat merge: a.leat: is also an input: give the result another name
= 2
