# Packing, looking, checking and giving back, on the smallest images there are.

# a PNG of one pixel, written in octal
$ pixel() { printf '\211PNG\r\n\032\n\0\0\0\rIHDR\0\0\0\001\0\0\0\001\010\0\0\0\0:~\233U\0\0\0\nIDATx\234c`\0\0\0\002\0\001H\257\244q\0\0\0\0IEND\256B`\202'; }
> mkdir -p photos/cat photos/dog
> pixel > photos/cat/1.png
> pixel > photos/dog/2.png
> pixel > photos/dog/10.png

$ leat pack photos -o photos.leat --json | jget samples skipped bytes_in source images.png
3
0
201
folder
3

$ leat info photos.leat --json | jget samples fields.# fields.1.name fields.1.classes images.keep created_with
3
2
label
2
3
leat 0.1.0

$ leat info photos.leat | grep classes
> leat info photos.leat --json | jget fields.1.class_names.0 fields.1.class_names.1
  label                  int, 2 classes: cat, dog
cat
dog

$ leat verify photos.leat
photos.leat: intact, 3 samples, 1 page, 10[0-9][0-9][0-9] bytes (glob)

$ leat export photos.leat -o back --json | jget files changed
> diff -r photos back && echo same
3
0
same

# it is there already; -q keeps what helps against an error
$ leat pack photos -o photos.leat -q; leat pack photos -o photos.leat --resume
! leat pack: photos.leat: already exists
! --force replaces what is there
! leat pack: photos.leat: already exists
! --force replaces what is there
= 2

# advice that can be copied
$ mkdir 'my photos'; leat info 'my photos'; cd 'my photos'; leat info .; leat info ./; leat info /; cd ..; rmdir 'my photos'
! leat info: my photos: is a folder, not a pack; make one with: leat pack 'my photos' -o 'my photos.leat'
! leat info: .: is a folder, not a pack; make one with: leat pack . -o '../my photos.leat'
! leat info: .: is a folder, not a pack; make one with: leat pack . -o '../my photos.leat'
! leat info: /: is a folder, not a pack

# folders of other commands: which file is meant
$ mkdir -p curated run/checkpoints; touch curated/run.json curated/select.leat run/config.json
> leat export curated -o x; touch curated/pack.leat; leat export curated/ -o x; touch curated/selected.leat; leat info curated
> leat export run -o x; rm -r curated run
! leat export: curated: is a folder of leat curate, not a pack; give the pack that was curated, with --select curated/select.leat
! leat export: curated: is a folder of leat curate, not a pack; its images are in curated/pack.leat
! leat info: curated: is a folder of leat curate, not a pack; its images are in curated/selected.leat
! leat export: run: is a folder of leat train, not a pack; leat export with --checkpoint writes its model

# a state of other settings names the one that differs, with both values
$ leat load photos.leat --batch 2 --stop-after 2 --state s.json > /dev/null
> leat load photos.leat --batch 2 --resume s.json --seed 7; leat load photos.leat --batch 3 --resume s.json
> leat load photos.leat --batch 2 --resume s.json --order sequential; leat load photos.leat --batch 2 --resume s.json --drop-last
> leat load photos.leat --batch 2 --resume s.json --balance label
> leat load photos.leat --batch 2 --resume s.json --threads 1 --size 32 --json | jget samples; rm s.json
3
! leat load: s.json: loader state: its seed is 0, this loader's is 7
! leat load: s.json: loader state: its global batch (batch size x ranks) is 2, this loader's is 3
! leat load: s.json: loader state: its order is random, this loader's is sequential
! leat load: s.json: loader state: its --drop-last is false, this loader's is true
! leat load: s.json: loader state: it has all samples, this loader has balance "label" of all samples

# --epochs counts all epochs, so that a resumed run ends as the uninterrupted one does
$ leat load photos.leat --batch 1 --size 32 --epochs 2 --digest --json | tail -n 1 | jget digest > whole
> leat load photos.leat --batch 1 --size 32 --epochs 2 --digest --stop-after 2 --state s.json > /dev/null
> leat load photos.leat --batch 1 --size 32 --epochs 2 --digest --resume s.json --json > resumed; wc -l < resumed
> tail -n 1 resumed | jget digest | cmp - whole
> leat load photos.leat --batch 1 --size 32 --epochs 2 --stop-after 5 --state s.json > /dev/null
> leat load photos.leat --batch 1 --size 32 --resume s.json; rm s.json whole resumed
2
! leat load: s.json: is in epoch 1, and --epochs 1 ends with epoch 0: give the number of all epochs, 2 or more

# totals are those of a rank: another one counts what it delivers itself
$ leat load photos.leat --keep-last --batch 1 --rank 0 --world 2 --size 32 --stop-after 1 --state s.json > /dev/null
> leat load photos.leat --keep-last --batch 1 --rank 0 --world 2 --size 32 --resume s.json --json | jget samples
> leat load photos.leat --keep-last --batch 1 --rank 1 --world 2 --size 32 --resume s.json --json | jget samples
> leat load photos.leat --keep-last --batch 2 --size 32 --resume s.json --json | jget samples; rm s.json
2
0
1
! leat load: warning: 1 of 2 ranks gets an empty last batch in every epoch (3 samples, batches of 1): a mean over it is NaN. Skip batches without samples, or set drop_last
! leat load: warning: 1 of 2 ranks gets an empty last batch in every epoch (3 samples, batches of 1): a mean over it is NaN. Skip batches without samples, or set drop_last
! leat load: warning: 1 of 2 ranks gets an empty last batch in every epoch (3 samples, batches of 1): a mean over it is NaN. Skip batches without samples, or set drop_last
! leat load: warning: s.json is of rank 0 of 2: samples and digest count what this run delivers
! leat load: warning: s.json is of rank 0 of 2: samples and digest count what this run delivers

$ leat load photos.leat --batch 2 --stop-after 2 --state s.json > /dev/null
> leat load photos.leat --batch 2 --resume s.json --bucket aspect --buckets 1; rm s.json
! leat load: s.json: loader state: it has no mix and no buckets, this loader has 1 bucket by aspect

$ leat pack photos -o photos.leat --force --json | jget samples
3

# where --force would be refused, no message names it
$ echo mine > o.txt; cp o.txt photos-o.leat; mkdir o
> for out in o.txt o; do leat pack photos -o $out; leat merge photos.leat -o $out; leat check photos.leat -o $out; leat dedup images photos.leat -o $out; done
> leat compact photos.leat -o o.txt
> leat split photos.leat --parts o=1
> leat pack photos -o n.leat --check o.txt; echo $?
> cat o.txt photos-o.leat; rm -r o o.txt photos-o.leat; find . -name 'n.leat*'
2
mine
mine
! leat pack: o.txt: is not a pack, and only a pack may be replaced; give another name
! leat merge: o.txt: is not a pack, and only a pack may be replaced; give another name
! leat check: o.txt: is not a pack, and only a pack may be replaced; give another name
! leat dedup: o.txt: is not a pack, and only a pack may be replaced; give another name
! leat pack: o: is a folder, not a file
! leat merge: o: is a folder, not a file
! leat check: o: is a folder, not a file
! leat dedup: o: is a folder, not a file
! leat compact: o.txt: is not a pack, and only a pack may be replaced; give another name
! leat split: photos-o.leat: is not a pack, and only a pack may be replaced; give another name
! leat pack: o.txt: is not a pack, and only a pack may be replaced; give another name

# --force replaces packs, and nothing else
$ leat pack photos -o photos/cat/1.png -f -q
> leat compact photos.leat -o photos/cat/1.png -f
> cp photos/cat/1.png photos-one.leat
> leat split photos.leat --parts one=1 -f
> leat check photos.leat -o photos/cat/1.png -f -q
> leat dedup images photos.leat -o photos/cat/1.png -f -q
! leat pack: photos/cat/1.png: is not a pack, and only a pack may be replaced; give another name
! leat compact: photos/cat/1.png: is not a pack, and only a pack may be replaced; give another name
! leat split: photos-one.leat: is not a pack, and only a pack may be replaced; give another name
! leat check: photos/cat/1.png: is not a pack, and only a pack may be replaced; give another name
! leat dedup: photos/cat/1.png: is not a pack, and only a pack may be replaced; give another name
= 2

$ for copy in photos/cat/1.png photos-one.leat; do cmp $copy photos/dog/2.png; done
> rm photos-one.leat; find photos/cat | sort
photos/cat
photos/cat/1.png

$ : > empty.txt; leat load photos.leat --keys empty.txt
! leat load: --keys empty.txt: the file has no keys
= 2

# the columns of --check are refused before anything is packed
$ echo mine > notes.txt
> leat pack photos -o n.leat --check notes.txt -f
> cat notes.txt; find . -name 'n.leat*'
mine
! leat pack: notes.txt: is not a pack, and only a pack may be replaced; give another name

$ leat check photos.leat -o strict.leat --strict
! leat check: photos.leat: not a folder of images, so --strict has no effect
= 2

# shards that exist, and files that are none
$ leat export photos.leat -o tars --to webdataset -q > /dev/null
> leat export photos.leat -o tars --to webdataset
! leat export: warning: tar shards have no class names: 1 field has only the numbers of the classes
! leat export: tars/00000.tar: already exists
! --force replaces what is there
= 2

$ leat export photos.leat -o tars --to webdataset -f --json | jget samples files members unnamed
> tar cf tars/00001.tar photos; cp tars/00001.tar other.tar; : > tars/00002.tar
> leat export photos.leat -o tars --to webdataset -f --json | jget files removed; cmp tars/00001.tar other.tar; ls tars
> leat export photos.leat -o tars --to webdataset; echo $?
> mv tars/00001.tar tars/00000.tar; leat export photos.leat -o tars --to webdataset -f; echo $?; cmp tars/00000.tar other.tar
> : > tars/00000.tar; leat export photos.leat -o tars --to webdataset -f; echo $?; leat export photos.leat -o tars --to webdataset; echo $?
> mkdir tables; echo PAR1mine > tables/00000.parquet; leat export photos.leat -o tables --to parquet -f; echo $?; cat tables/00000.parquet
3
1
6
1
1
0
00000.tar
00001.tar
00002.tar
2
2
2
2
2
PAR1mine
! leat export: warning: tar shards have no class names: 1 field has only the numbers of the classes
! leat export: warning: 2 files stay, numbered after the last shard written (tars/00001.tar): changed, not from leat export, or after a gap
! leat export: warning: tar shards have no class names: 1 field has only the numbers of the classes
! leat export: tars/00000.tar: already exists
! --force replaces what is there
! leat export: tars/00000.tar: is not an unchanged shard of leat export, so it is not replaced; move it away or give another folder
! leat export: tars/00000.tar: is not an unchanged shard of leat export, so it is not replaced; move it away or give another folder
! leat export: tars/00000.tar: is not an unchanged shard of leat export, so it is not replaced; move it away or give another folder
! leat export: tables/00000.parquet: is not an unchanged shard of leat export, so it is not replaced; move it away or give another folder

# a demo draws into no folder of a user
$ mkdir -p own/photos/class-000; cp photos/cat/1.png own/photos/class-000/cat.jpg
> leat demo -d own -n 16; echo $?; find own -type f
> mkdir -p other/photos/cats; leat demo -d other -n 16
> mkdir third; cp photos.leat third; leat demo -d third -n 16; ls third
2
own/photos/class-000/cat.jpg
photos.leat
! leat demo: own/photos/class-000/cat.jpg: is not from a demo, and the demo draws into this folder; give another --dir
! leat demo: other/photos/cats: is not from a demo, and the demo draws into this folder; give another --dir
! leat demo: third/photos.leat: already exists; give another --dir

# the same for the journal's name; an empty file is nothing to lose
$ echo diary > fresh.leat.journal; : > fresh.leat
> leat pack photos -o fresh.leat -f -q > log; echo $?; cat fresh.leat.journal; rm fresh.leat.journal
> leat pack photos -o fresh.leat -f -q > log && leat verify -q fresh.leat > log && echo whole
2
diary
whole
! leat pack: fresh.leat.journal: is not a journal of leat; move it away

# files that are not images by their names are skipped and counted
$ echo text > photos/cat/notes.txt
> leat pack photos -o stray.leat --json | jget samples ignored skipped; leat check photos -o stray-check.leat > /dev/null
3
1
0
! leat pack: warning: skipped 1 file that is hidden or has no image suffix (notes.txt); --strict takes every file
! leat check: warning: skipped 1 file that is hidden or has no image suffix; --strict takes every file
= 1

# images beside the class folders have no label, and that is said
$ mkdir -p beside/cat
> cp photos/cat/1.png beside/cat
> cp photos/cat/1.png beside/other.png
> leat pack beside -o beside.leat --json | jget unlabelled ignored
1
0
! leat pack: warning: 1 image is in no class folder (other.png): the label is -1

# files that are left out are not counted
$ echo text > beside/readme.txt
> leat pack beside -o beside.leat -f --strict --on-error skip --json | jget unlabelled skipped; rm beside/readme.txt
1
1
! leat pack: warning: 1 sample was left out (--report FILE lists them)
! leat pack: warning: 1 image is in no class folder (other.png): the label is -1

$ printf ',path,label\n0,beside/other.png,cat\n' > unnamed.csv
> leat pack unnamed.csv -o unnamed.leat
! leat pack: unnamed.csv: column 1 has no name in the first line
= 4

# class names that begin or end with a blank
$ printf 'path, label\nbeside/other.png,cat\nbeside/cat/1.png, cat\n' > blanks.csv
> leat pack blanks.csv -o blanks.leat --json | jget blank_labels
1
! leat pack: warning: 1 label begins or ends with a blank, the first in line 3: "cat" and " cat" are two classes

# with --strict they stop the run by name, or are left out, counted and listed: a finding
$ leat pack photos -o bad.leat --strict
! leat pack: cat/notes.txt: not an image format that leat reads
! to leave out such samples: --resume --on-error skip; after repairing or removing the file: --resume
= 4

# what is written so far is valid, whatever --on-error is
$ leat pack photos -o bad.leat --strict --resume --on-error skip; leat pack photos -o whole.leat --strict --on-error skip > /dev/null 2>&1
> cmp bad.leat whole.leat && rm bad.leat whole.leat
3 samples, * (glob)
! leat pack: warning: 1 sample was left out (--report FILE lists them)

$ leat pack photos -o bad.leat --strict 2> /dev/null; mv photos/cat/notes.txt notes; leat pack photos -o bad.leat --strict --resume; mv notes photos/cat/notes.txt
3 samples, * (glob)

$ leat pack photos -o bad.leat --strict --force --on-error skip --report bad.jsonl
> jget key code < bad.jsonl
3 samples, * (glob)
cat/notes.txt
LEAT_EFORMAT
! leat pack: warning: 1 sample was left out: see bad.jsonl

$ leat pack photos -o bad2.leat --strict --on-error skip --quiet
3 samples, * (glob)
! leat pack: warning: 1 sample was left out (--report FILE lists them)
= 1

# nothing to pack
$ mkdir nothing_in
> leat pack nothing_in -o none.leat
! leat pack: nothing_in: nothing to pack: no samples were found
= 4

$ echo text > nothing_in/a.jpg
> leat pack nothing_in -o none.leat --on-error skip
! leat pack: nothing_in: nothing to pack: the only sample was left out
= 4

$ ls none*
! ls: cannot access 'none*': No such file or directory
= 2

# a name with a backslash comes back; a file that is there already is counted, the rest follows
$ cp photos/cat/1.png 'photos/cat/1\x.png'
> leat pack photos -o back.leat > log && mkdir -p back3/cat && touch back3/cat/1.png
> leat export back.leat -o back3 --json > log; echo $?
> jget files failed < log; ls back3/cat
4
3
1
1.png
1\x.png
! leat pack: warning: skipped 1 file that is hidden or has no image suffix (notes.txt); --strict takes every file
! leat export: back3/cat/1.png: already exists
! --force replaces files that were there before this run

# links that lie in the folder are not followed; --force replaces a link, not what it points to
$ mkdir -p back4 elsewhere && ln -s ../elsewhere back4/cat
> echo mine > elsewhere/file && mkdir -p back4/dog && ln -s ../../elsewhere/file back4/dog/10.png
> leat export photos.leat -o back4 -f > log; echo $?
> cat elsewhere/file; ls elsewhere; cmp photos/dog/10.png back4/dog/10.png && echo replaced
4
mine
file
replaced
! leat export: back4/cat/1.png: the folder "cat" on the way is a symbolic link, which is not followed

# a part of a pack, by key
$ printf 'dog/10.png\ncat/1.png\n' > keys
> leat pack photos.leat -o part.leat --keys keys --json | jget samples source
2
pack

# a manifest
$ printf 'path,label,score\ncat/1.png,kitty,0.5\ndog/2.png,puppy,1\n' > photos/list.csv
> leat pack photos/list.csv -o list.leat --json | jget samples source
> leat info list.leat --json | jget fields.1.name fields.1.classes fields.2.type
2
manifest
label
2
float

# a mix of nothing raw, of everything, and of the default share
$ for p in 0 1; do leat pack photos.leat -o mix$p.leat --images mix --mix-raw $p --json >log; done
> leat pack photos.leat -o mix.leat --images mix --json >log
> for f in mix0 mix1 mix; do leat info $f.leat --json | jget provenance.source.settings.mix_raw; done
> leat info mix0.leat --json | jget images.keep
> leat info mix1.leat --json | jget images.raw
0
1
0.5
3
3

# loading: a pipeline as text is the whole pipeline, and goes before a file
$ printf 'size: 64\ndtype: f32\n' > load.yaml
> leat load photos.leat --config load.yaml --ops 'Resize((8, 8))' --json | jget samples
3

$ leat load photos.leat --ops 'Resize((8, 8))' --dtype f16
! leat load: --ops is the whole pipeline, so --dtype has no effect: put it into --ops
= 2

$ printf 'ops: Resize((8, 8))\nsize: 64\n' > load.yaml
> leat load photos.leat --config load.yaml
! leat load: --ops is the whole pipeline, so --size has no effect: put it into --ops
= 2

# --config is read as for every command: a key once, with its line, with a hint
$ printf 'batch: 2\nbatch: 3\n' > load.yaml; leat load photos.leat -c load.yaml
! leat load: load.yaml:2: 'batch' appears twice
= 2

$ leat doctor photos.leat -c load.yaml
! leat doctor: load.yaml:2: 'batch' appears twice
= 2

$ printf 'batch: 2\nepohcs: 2\n' > load.yaml; leat load photos.leat -c load.yaml
! leat load: load.yaml:2: unknown key 'epohcs'; did you mean 'epochs'?
= 2

$ printf 'batch: 2\nepochs: two\n' > load.yaml; leat load photos.leat -c load.yaml
! leat load: load.yaml:2: epochs: 'two' is not a whole number
= 2

$ printf -- '- batch: 2\n' > load.yaml; leat load photos.leat -c load.yaml
! leat load: load.yaml: must be 'option: value' lines
= 2

$ printf 'batch: 2\nepochs: 3\norder: quasi_random\nstreams: 2\n' > load.yaml
> leat load photos.leat -c load.yaml --order sequential --epochs 1 --json | jget samples batches
3
2

# outputs are checked before the work
$ leat load photos.leat --state nodir/s.json
! leat load: nodir: no such folder
= 4

$ leat load photos.leat --report nodir/x.html
! leat load: nodir: no such folder
= 4

$ leat load photos.leat --trace nodir/x.json
! leat load: nodir: no such folder
= 4

$ leat load photos.leat --report photos
! leat load: photos: is a folder; give the name of a file to write
= 2

$ leat doctor photos.leat --apply nodir/x.yaml
! leat doctor: nodir: no such folder
= 4

# one file for two outputs, or for an input and an output
$ leat load photos.leat --report x.html --trace x.html
! leat load: x.html: --report and --trace name the same file
= 2

$ leat doctor --attach run.jsonl --report run.jsonl
! leat doctor: run.jsonl: --attach and --report name the same file
= 2

$ leat load photos.leat --on-error skip --quarantine nodir/x.jsonl
! leat load: nodir: no such folder
= 4

# the folder in place of the pack
$ leat load photos/
! leat load: photos: is a folder, not a pack; make one with: leat pack photos -o photos.leat
= 2

$ leat doctor photos
! leat doctor: photos: is a folder, not a pack; make one with: leat pack photos -o photos.leat
= 2

# a loader without a batch says so
$ leat load photos.leat --batch 100 --drop-last --json | jget batches
! leat load: warning: no batch is delivered: 3 samples do not fill one of 100 (1 rank), which takes 100, and drop_last leaves out the last, smaller one
0

$ leat load photos.leat --resume photos.leat
! leat load: photos.leat: not a file of --state
= 4

# a run that packed nothing leaves nothing behind
$ leat pack photos -o none.leat --memory 1K 2> /dev/null; echo $?; ls none.leat*
3
! ls: cannot access 'none.leat*': No such file or directory
= 2

# wrong usage
$ leat pack photos
! leat pack: --output is missing: write the pack here (see leat pack --help)
= 2

$ leat pack nothing -o x.leat
! leat pack: nothing: cannot open: No such file or directory
= 4

$ leat pack photos.leat -o fast.leat --tiles fast --json >log
> leat info fast.leat --json | jget provenance.source.settings.tiles
fast

$ leat pack photos -o x.leat --images keep --tiles fast
! leat pack: --tiles needs --images tiled (see leat pack --help)
= 2

$ leat pack photos.leat -o auto.leat --images auto --tiles fast --json | jget samples
3

$ leat pack photos -o x.leat --mix-raw 0.5
! leat pack: --mix-raw needs --images mix (see leat pack --help)
= 2

$ leat pack photos -o x.leat --images jpeg
! leat pack: --images: 'jpeg' is not one of auto|keep|tiled|raw|mix (see leat pack --help)
= 2

$ leat verify photos/cat/1.png
-	page -	offset -	photos/cat/1.png	not a leat pack; leat pack makes one
! leat verify: photos/cat/1.png: not a leat pack; leat pack makes one
= 4

$ leat export part.leat -o back2 --keys nothing
! leat export: nothing: cannot open: No such file or directory
= 4

# names of classes are text; a manifest's, too
$ mkdir -p odd/$(printf 'caf\351') odd/caf && cp photos/cat/1.png odd/$(printf 'caf\351')/ && cp photos/cat/1.png odd/caf/
> leat pack odd -o odd.leat; echo $?; ls odd.leat* 2>/dev/null
> printf 'path,label\nphotos/cat/1.png,caf\351\n' > odd.csv; leat pack odd.csv -o odd.leat; echo $?
4
4
! leat pack: the class name "caf\xe9" is not UTF-8: rename it
! leat pack: odd.csv:2: the class name "caf\xe9" is not UTF-8: rename it

$ printf 'path,image\nphotos/cat/1.png,x\n' > twice.csv; leat pack twice.csv -o twice.leat
! leat pack: twice.csv: two fields have the name "image"
= 4

# a folder that is not there is named, not the temporary file in it
$ mkdir src && printf x > src/a.txt && leat pack src -o nodir/x.leat
> leat check src -o nodir/c.leat
> leat check src -o c.leat --csv nodir/c.csv
> leat pack src -o x.leat --on-error skip --report nodir/r.jsonl
> leat pack src -o x.leat --check nodir/c.leat
> ls c.leat* x.leat* 2>/dev/null
! leat pack: nodir: no such folder
! leat check: nodir: no such folder
! leat check: nodir: no such folder
! leat pack: nodir: no such folder
! leat pack: nodir: no such folder
= 2

# a finding about the whole pack has no key and no page
$ printf '\211LEAT\r\n\032' > head.leat; head -c 4000 /dev/zero >> head.leat; leat verify head.leat
-	page -	offset 0	head.leat	header checksum does not match (byte 0)
! leat verify: head.leat: 1 finding, and no sample could be read
= 4

# names of the file and the line stand there once
$ echo '{"path": 3}' > m.jsonl; leat pack m.jsonl -o m.leat
! leat pack: m.jsonl:1: no path
! --on-error skip leaves out samples that cannot be packed
= 4

# a member that is not JSON is a bad sample, as one that is not UTF-8
$ python3 -c "
> import io, tarfile
> with tarfile.open('j.tar', 'w') as t:
>     for name, data in (('a.json', b'{}'), ('a.txt', b'a'), ('b.json', b'{bad'), ('b.txt', b'b'), ('c.json', b'[1]'), ('c.txt', b'c')):
>         i = tarfile.TarInfo(name); i.size = len(data); t.addfile(i, io.BytesIO(data))"
> leat pack j.tar -o j.leat --on-error skip > /dev/null; leat info j.leat --json | jget samples
2
! leat pack: warning: 1 sample was left out (--report FILE lists them)

# members of a sample that are not side by side would become several samples; a whole sample again is a duplicate
$ mkdir torn && for i in 0 1; do cp photos/dog/2.png torn/$i.png; echo $i > torn/$i.txt; done; cd torn
> tar cf ../torn.tar 0.png 1.png 0.txt 1.txt; tar --hard-dereference -cf ../again.tar 0.png 0.txt 1.png 1.txt 0.png 0.txt; cd ..
> leat pack torn.tar -o torn.leat; echo $?; leat pack torn.tar -o torn.leat --on-error skip -f; echo $?
> leat pack torn.tar -o torn.leat --members png,txt --default '*=-1' -f; echo $?
> leat pack again.tar -o again.leat --json | jget samples duplicate_keys missing
4
4
4
3
1
0
! leat pack: torn.tar: the members of "0" are not side by side; make it with tar --sort=name, or pack the folder
! leat pack: torn.tar: the members of "0" are not side by side; make it with tar --sort=name, or pack the folder
! leat pack: torn.tar: the members of "0" are not side by side; make it with tar --sort=name, or pack the folder

# members of other kinds than the list are part of no sample, wherever they are
$ touch torn/README torn/LICENSE.md; tar cf others.tar -C torn README LICENSE.md 0.png 0.txt 1.png 1.txt
> leat pack others.tar -o others.leat --members png,txt --json | jget samples missing
> leat pack torn.tar -o torn.leat --members png -f --json | jget samples missing; leat pack others.tar -o others.leat -f
2
0
2
0
! leat pack: others.tar: member README: its name has no extension that names a field; a list of kinds (members) skips it
! --on-error skip leaves out samples that cannot be packed
= 4

# a folder without class folders gives a pack without labels, and that is said
$ leat pack photos/dog -o flat.leat; leat pack photos/dog -o flat.leat -f -q
2 samples, * (glob)
2 samples, * (glob)
! no class folders: the pack has no field "label"

# a tar of class folders has no labels, and that is said; not if they are given, or if all are in one folder
$ tar --sort=name -cf folders.tar photos/cat/1.png photos/dog; tar --sort=name -cf one.tar photos/dog
> leat pack folders.tar -o folders.leat --json | jget in_folders; leat pack one.tar -o one.leat --json | jget in_folders
3
0
! leat pack: warning: the members are in folders, and labels are not taken from them: unpack the tar and pack the folder

# a sample of a tar shard without a label: another setting, which --resume refuses; a check needs no label
$ mkdir shard && for i in 1 2 3; do cp photos/dog/2.png shard/$i.png; done
> printf 1 > shard/1.cls && printf 1 > shard/3.cls
> (cd shard && tar --format=ustar --sort=name -cf ../shard.tar *)
> leat pack shard.tar -o shard.leat
! leat pack: 2.png: sample 2 has no "label", which other samples have; --default label=-1 sets it to -1
! add that option and --force to start over
= 4

$ leat pack shard.tar -o shard.leat --default '*=-1' -f --json | jget samples
3

$ leat check shard.tar -o check-shard.leat | head -n 1
3 images, 3 decoded, * (glob)
