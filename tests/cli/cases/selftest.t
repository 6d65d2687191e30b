# The engine on data it makes itself: the result is checked inside, the budget is kept.

$ leat selftest engine -n 300 --task-bytes 4KiB --read-time 0s --work-time 0s --json | jget ok tasks stages.# stages.0.name stages.3.items stages.4.items
true
300
5
list
19
19

# a budget that lets only a few tasks in; batch mode; one thread
$ leat selftest engine -n 300 --task-bytes 4KiB --read-time 0s --work-time 0s --memory 200KiB --mode batch -t 1 --json > out.json
> jget ok budget_bytes threads < out.json
> test "$(jget budget_peak_bytes < out.json)" -le 204800
true
204800
1

# less than one group needs is refused, and by how much
$ leat selftest engine --task-bytes 4KiB --memory 100KiB
! leat selftest: selftest needs at least 129 KiB, 28.2 KiB more than the budget of 100 KiB has left (0 B for other flows, 0 B kept outside flows)
= 3

$ leat selftest
! leat selftest: WHAT is missing: what to test (see leat selftest --help)
= 2
