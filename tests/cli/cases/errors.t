# One line for each failure, and its exit code.

$ $LEAT_FIXTURE fail EDATA
! leat fail: a?file?[31m: damaged or malformed data
= 4

$ for code in EINVAL EEXIST ENOTSUP; do $LEAT_FIXTURE fail $code 2>/dev/null; echo $?; done | uniq
2

$ for code in ENOMEM ELIMIT EBUDGET ETHREAD; do $LEAT_FIXTURE fail $code 2>/dev/null; echo $?; done | uniq
3

$ for code in EIO ENOENT ENOSPC EDATA EFORMAT EOVERFLOW EPERM EINTERNAL; do
>     $LEAT_FIXTURE fail $code 2>/dev/null; echo $?
> done | uniq
4

$ $LEAT_FIXTURE fail other
! leat fail: warning: about to fail
! leat fail: a finding?in two lines
= 1

# a full disk behind stdout is told, a closed pipe is not
$ $LEAT_FIXTURE echo > /dev/full
! leat echo: cannot write the output: No space left on device
= 4

$ $LEAT_FIXTURE echo >&-
! leat echo: cannot write the output: Bad file descriptor
= 4

$ $LEAT_FIXTURE fail EDATA 2>&-
= 4

$ $LEAT_FIXTURE lines | head -1; echo ${PIPESTATUS[0]}
line 0
141
! stopped early

# without a terminal there is no progress and no colour
$ $LEAT_FIXTURE wait --time 300ms --talk
started
finished
! half way

$ $LEAT_FIXTURE wait --time 300ms --talk --quiet
started
finished

# hidden commands work and are not listed
$ $LEAT_FIXTURE help --json | grep -c '"sleep"'
0
= 1
