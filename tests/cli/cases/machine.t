# The facts of the machine: of a fake one, whose files are below LEAT_SYSROOT, and of this one.

# a container of version 2: 1.5 CPUs in the parent group, 1 GiB in the own one
$ mkdir -p fake/proc/self fake/sys/fs/cgroup/pod/box fake/sys/devices/system/cpu
> echo '0::/pod/box' > fake/proc/self/cgroup
> echo '30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw' > fake/proc/self/mountinfo
> printf 'Name:\tleat\nCpus_allowed_list:\t0-7\n' > fake/proc/self/status
> echo 0-15 > fake/sys/devices/system/cpu/online
> printf 'MemTotal: 67108864 kB\nMemAvailable: 33554432 kB\nSwapFree: 0 kB\n' > fake/proc/meminfo
> echo '150000 100000' > fake/sys/fs/cgroup/pod/cpu.max
> printf 'usage_usec 5\nnr_periods 40\nnr_throttled 10\nthrottled_usec 2500000\n' > fake/sys/fs/cgroup/pod/cpu.stat
> echo 'max 100000' > fake/sys/fs/cgroup/pod/box/cpu.max
> echo max > fake/sys/fs/cgroup/pod/memory.max
> echo 1073741824 > fake/sys/fs/cgroup/pod/box/memory.max
> echo 536870912 > fake/sys/fs/cgroup/pod/box/memory.current
> printf 'anon 134217728\nfile 402653184\nshmem 0\ninactive_file 300000000\nactive_file 102653184\n' > fake/sys/fs/cgroup/pod/box/memory.stat

$ LEAT_SYSROOT=$PWD/fake leat machine --json | jget cpus_usable cpu_quota cpus_host cpus_affinity cgroup_version
2
1.5
16
8
2

$ LEAT_SYSROOT=$PWD/fake leat machine --json | jget memory_limit_bytes memory_cgroup_bytes memory_host_bytes memory_used_bytes
1073741824
1073741824
68719476736
134217728

$ LEAT_SYSROOT=$PWD/fake leat machine --json | jget periods throttled_periods throttled_us
40
10
2500000

$ LEAT_SYSROOT=$PWD/fake leat machine
CPU
...
  usable                 2 (host 16, affinity 8, quota 1.50)
  throttled              25.0% of periods, 2.5s in all
...
Memory
  limit                  1.00 GiB (cgroup)
  used                   128 MiB (file cache not counted)
...

# without the groups: the mask decides
$ rm fake/proc/self/cgroup
> LEAT_SYSROOT=$PWD/fake leat machine --json | jget cpus_usable cpu_quota memory_cgroup_bytes memory_limit_bytes
8
null
null
68719476736

# every documented key is there, and no other
$ leat machine --json . | jget '?' | tr ' ' '\n' > there
> leat help --json | python3 -c '
> import json, sys
> table = next(c for c in json.load(sys.stdin)["commands"] if c["name"] == "machine")
> print(*sorted(key.removesuffix("[]") for key in table["json_keys"]), sep="\n")' > documented
> diff documented there

# the real machine agrees with the system
$ python3 -c '
> import os
> os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
> os.execvp("leat", ["leat", "machine", "--json"])' | jget cpus_affinity cpus_usable
1
1

# masked instructions reach every family of kernels
$ LEAT_CPU_MASK=scalar leat machine --json > scalar.json
> jget isa < scalar.json
> python3 -c '
> import json
> kernels = json.load(open("scalar.json"))["kernels"]
> print(len(kernels) > 0, set(kernels.values()))'
scalar
True {'scalar'}

$ leat machine --json . | jget disks.0.path disks.#
.
1

# all is read before anything is printed
$ leat machine . nowhere
! leat machine: nowhere: No such file or directory
= 4
