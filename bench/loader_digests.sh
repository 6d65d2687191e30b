#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# loader_digests.sh LEAT PACK…: the digest of an epoch must not depend on threads, cache, memory or the
# I/O backend, nor on where a run was stopped and resumed. Several packs of the same samples (keep,
# tiled) must agree too. Prints one line per order.
set -euo pipefail
leat=$1
shift
stops=${STOPS:-50}
digest() { "$leat" load "$@" --digest --json | sed -n 's/.*"digest":"\([0-9a-f]*\)".*/\1/p' | tail -1; }
for order in sequential random quasi_random; do
    want="" runs=0
    for pack in "$@"; do
        # the pages of a pack are part of a quasi-random order: packs differ, runs do not
        [ $order != quasi_random ] || want=""
        for threads in 1 2 3 8; do
            for cache in os process; do
                for memory in 128M 2G; do
                    for io in uring threads; do
                        got=$(LEAT_IO=$io digest "$pack" --order $order --threads $threads --cache $cache --memory $memory)
                        want=${want:-$got}
                        runs=$((runs + 1))
                        [ "$got" = "$want" ] || { echo "DIFFERS: $pack $order $threads $cache $memory $io: $got, not $want"; exit 1; }
                    done
                done
            done
        done
    done
    echo "$order: $runs runs, all $want"
    state=$(mktemp)
    want=$(digest "$1" --order $order)
    samples=$("$leat" info "$1" --json | sed -n 's/.*"samples":\([0-9]*\).*/\1/p' | head -1)
    for ((i = 0; i < stops; i++)); do
        n=$((1 + RANDOM % (samples - 1)))
        "$leat" load "$1" --order $order --digest --stop-after $n --state "$state" --quiet >/dev/null
        got=$(digest "$1" --order $order --resume "$state" --threads $((1 + i % 3)))
        [ "$got" = "$want" ] || { echo "DIFFERS: $order stopped after $n: $got, not $want"; exit 1; }
    done
    rm -f "$state"
    echo "$order: stopped at $stops random samples and resumed, all $want"
done
