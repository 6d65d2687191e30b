#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# sanitize.sh BUILD: the C tests of a sanitizer build. Every finding is fatal.
set -euo pipefail
cd "$(dirname "$0")/.."
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1:detect_stack_use_after_return=1:allocator_may_return_null=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# One test forks a child that opens its own pool.
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:allocator_may_return_null=1
# For tests that limit the memory of the process: sanitizers need extra memory.
export LEAT_SANITIZED=1
exec meson test -C "$1" --no-rebuild --print-errorlogs --num-processes "$(nproc)" --timeout-multiplier 8
