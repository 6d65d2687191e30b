# Images of different size in one batch.

$ pixel() { printf '\211PNG\r\n\032\n\0\0\0\rIHDR\0\0\0\001\0\0\0\001\010\0\0\0\0:~\233U\0\0\0\nIDATx\234c`\0\0\0\002\0\001H\257\244q\0\0\0\0IEND\256B`\202'; }
> for i in 1 2 3 4 5 6; do pixel > $i.png; done
> leat pack . -o a.leat -q >/dev/null
> leat load a.leat --ops 'ToDtype(u8)' 2>&1 | grep -c 'collate pad, list or ragged'
1

$ leat load a.leat --ops 'RandomRotation(40, expand=true)' --collate ragged --digest --json > ragged.json
> jget samples < ragged.json
> leat load a.leat --ops 'RandomRotation(40, expand=true)' --collate list -b 2 --threads 1 --digest --json | jget digest > list
> jget digest < ragged.json | cmp - list
6

$ leat load a.leat --ops 'Pad(3)' --collate pad --pad-multiple 32 --pad-value 7 --pad-mask --json | jget samples
6

$ leat load a.leat --ops 'Pad(3)' --collate pad --pad-value 256
! leat load: --pad-value 256: 'image' has whole numbers from 0 to 255
= 2

$ leat load a.leat --ops 'Pad(3)' --pad-mask
! leat load: --pad-mask has no effect: --collate is not pad
= 2

# batches of similar shape
$ leat load a.leat --ops 'Pad(3)' --collate pad --bucket aspect --bucket-edges 0.5,2 -b 4 --json | jget samples
> leat load a.leat -s 4 --bucket size --buckets 2 -b 2 --json | jget samples batches
6
6
3

$ leat load a.leat --buckets 2
! leat load: --buckets has no effect: --bucket is not given
= 2

$ leat load a.leat --bucket size --order sequential
! leat load: --bucket needs --order random, without weights, --balance or mixed packs
= 2

$ leat load a.leat --bucket size --bucket-edges 1,x
! leat load: --bucket-edges: '1,x' is not a list of numbers
= 2
