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
! leat check: limits: "drak" is not an issue with a limit (did you mean dark?)
= 2

$ leat check nothing -o none.leat
! leat check: cannot open nothing: No such file or directory
= 4

$ leat check $LEAT_TEST_DATA/images-1.1.leat -o s3://bucket/x.leat
! leat check: s3://bucket/x.leat: columns are written to a local file
= 2

$ mkdir p && printf 'no image' > p/a.jpg && leat check p -o p.leat --csv p.csv | tail -n 1; cut -d, -f1-6,22 p.csv
       1  not_an_image                              a.jpg
key,verdict,issues,width,height,bytes,reason
a.jpg,not_an_image,not_an_image,0,0,8,not an image format that leat reads
