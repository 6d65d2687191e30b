#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# loader_memory.sh LEAT PACK [MEMORY_MIB] [BATCH]: the byte budget, measured and enforced. Each order and cache runs
# freely (peak RSS must stay within the budget and 48 MiB), and then where the kernel holds it to that: in a memory
# cgroup when one can be made, and under RLIMIT_DATA, which counts every private writable mapping. The pack should
# be several times larger than the budget. One line per run; exit 1 when one was killed, failed or went over.
set -euo pipefail
leat=$1 pack=$2 memory=${3:-128} batch=${4:-256}
allowed=$(((memory + 48) << 20)) bad=0
group=/sys/fs/cgroup/memory/leat-memory-$$
limit=memory.limit_in_bytes
[ -d /sys/fs/cgroup/memory ] || { group=/sys/fs/cgroup/leat-memory-$$ limit=memory.max; }
mkdir "$group" 2>/dev/null && echo $allowed >"$group/$limit" 2>/dev/null || group=""
trap '[ -z "$group" ] || rmdir "$group"' EXIT

freely() { "$@"; }
in_cgroup() { (echo "$BASHPID" >"$group/cgroup.procs" && exec "$@"); }
in_rlimit() { prlimit --data=$allowed "$@"; }

for order in random quasi_random; do
    for cache in os process; do
        for how in freely in_cgroup in_rlimit; do
            [ $how != in_cgroup ] || [ -n "$group" ] || { echo "in_cgroup: no memory cgroup can be made here"; continue; }
            if line=$($how "$leat" load "$pack" --memory "${memory}M" --batch "$batch" --order $order --cache $cache --threads 2 --json | tail -1); then
                rss=$(sed -n 's/.*"peak_rss_bytes":\([0-9]*\).*/\1/p' <<<"$line")
                samples=$(sed -n 's/.*"samples":\([0-9]*\),.*/\1/p' <<<"$line")
                rate=$(sed -n 's/.*"samples_per_s":\([0-9]*\).*/\1/p' <<<"$line")
                said=ok
                [ "$rss" -le $allowed ] || { said="OVER"; bad=1; }
                echo "$order $cache $how: $said, peak RSS $((rss >> 20)) MiB of $memory + 48, $samples samples, $rate/s"
            else
                echo "$order $cache $how: FAILED"
                bad=1
            fi
        done
    done
done
exit $bad
