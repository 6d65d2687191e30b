# Several packs in one loader.

$ pixel() { printf '\211PNG\r\n\032\n\0\0\0\rIHDR\0\0\0\001\0\0\0\001\010\0\0\0\0:~\233U\0\0\0\nIDATx\234c`\0\0\0\002\0\001H\257\244q\0\0\0\0IEND\256B`\202'; }
> for i in 1 2 3 4 5 6; do pixel > $i.png; done
> printf 'path,label,score\n1.png,1,0.5\n2.png,2,0.5\n3.png,3,0.5\n4.png,4,0.5\n' > a.csv
> printf 'path,label\n5.png,10\n6.png,20\n' > b.csv
> leat pack a.csv -o a.leat >/dev/null
> leat pack b.csv -o b.leat >/dev/null
> leat load a.leat a.leat a.leat -s 4 --json | jget samples
12

# a field that one pack does not have
$ leat load a.leat b.leat
! leat load: b.leat has no field 'score': give it a default, or leave it out (fields)
= 2

$ leat load a.leat b.leat --default score=0 --json | jget samples
6

# proportions, repeat, choose
$ leat load a.leat b.leat --default score=0 --mix 3,1 --epoch-size 400 --mix-batches stratified -b 8 --json | jget samples batches
400
50

$ leat load a.leat b.leat --default score=0 --repeat 0.5,10 --json | jget samples
22

$ leat load a.leat b.leat --default score=0 --choose all,1 --replacement --json | jget samples
5

# batches of one pack each: what whole batches leave out is said
$ leat load a.leat b.leat --default score=0 --mix-batches single -b 4 --json | jget samples
! leat load: warning: batches of one pack each: 2 samples of an epoch are left out, with 1 of the packs unused, because an epoch has only whole batches of 4 samples. Smaller batches leave out fewer; stratified or shuffled batches leave out none
4

# from a file
$ printf 'mix: 1,3\nepoch_size: 40\nmix_batches: single\nbatch: 4\ndefault: score=0\n' > mix.yaml
> leat load a.leat b.leat --config mix.yaml --digest --json > whole.json
> jget samples < whole.json
40

# stopped and resumed
$ leat load a.leat b.leat --config mix.yaml --digest --stop-after 13 --state s.json --json | jget samples
> leat load a.leat b.leat --config mix.yaml --digest --resume s.json --json | jget digest > resumed
> jget digest < whole.json | cmp - resumed
13

# a state is for these packs in this mix only
$ leat load b.leat a.leat --config mix.yaml --resume s.json
! leat load: s.json: loader state: pack number 1 of 2 was a different pack (*, this one is *) (glob)
= 2

$ leat load a.leat b.leat --config mix.yaml --mix 1,2 --resume s.json
! leat load: s.json: loader state: it has a mix of 10, 30 samples per epoch, batches single, this loader has a mix of 13, 27 samples per epoch, batches single
= 2

# wrong usage
$ leat load a.leat b.leat --mix 1
! leat load: --mix: there must be one number for each of the 2 packs
= 2

$ leat load a.leat b.leat --mix 0,0
! leat load: --mix: all weights are 0
= 2

$ leat load a.leat b.leat --mix 1,nan
! leat load: --mix: 'nan' is not a list of numbers of 0 and more
= 2

$ leat load a.leat b.leat --mix 1,1 --repeat 1,1
! leat load: --mix: a.leat: give either weights, or --repeat or --choose
= 2

$ leat load a.leat b.leat --epoch-size 10
! leat load: --mix: --epoch-size needs weights: without them, the packs, --repeat and --choose set the number of samples
= 2

$ leat load a.leat b.leat --default score
! leat load: --default: 'score' is not FIELD=NUMBER,...
= 2

$ leat load a.leat gone.leat
! leat load: gone.leat: cannot open: No such file or directory
= 4
