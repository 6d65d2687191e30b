/* SPDX-License-Identifier: Apache-2.0
 *
 * Thread numbers. Owns a bit map of the numbers in use; any thread may call, without locks.
 * Release order when returning a number and acquire order when taking it make the last owner's
 * plain writes visible to the next.
 */
#include "probe/slot.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/check.h"
#include "base/thread.h"

_Thread_local uint32_t leat__slot_plus_one __attribute__((tls_model("initial-exec")));

static _Atomic uint64_t taken[LEAT__SLOTS / 64];
static leat__once once = LEAT__ONCE_INIT;
static pthread_key_t exit_key;
static bool exit_key_made;

static void give_back(void *value)
{
    LEAT_ASSERT((uintptr_t)value >= 1 && (uintptr_t)value <= LEAT__SLOTS);
    uint32_t slot = (uint32_t)(uintptr_t)value - 1;
    leat__slot_plus_one = 0; /* a later destructor that writes takes a new number */
    atomic_fetch_and_explicit(&taken[slot / 64], ~(UINT64_C(1) << (slot % 64)), memory_order_release);
}

static void make_key(void)
{
    exit_key_made = pthread_key_create(&exit_key, give_back) == 0;
}

static uint32_t take_lowest(void)
{
    for (uint32_t word = 0; word < LEAT__SLOTS / 64; word++) {
        uint64_t seen = atomic_load_explicit(&taken[word], memory_order_relaxed);
        while (seen != UINT64_MAX) {
            uint32_t bit = (uint32_t)__builtin_ctzll(~seen);
            if (atomic_compare_exchange_weak_explicit(&taken[word], &seen, seen | UINT64_C(1) << bit,
                                                      memory_order_acquire, memory_order_relaxed)) {
                return word * 64 + bit;
            }
        }
    }
    return LEAT__SLOTS;
}

uint32_t leat__slot_take(void)
{
    leat__once_run(&once, make_key);
    /* Take no number that could not be returned when the thread ends. */
    uint32_t slot = exit_key_made ? take_lowest() : LEAT__SLOTS;
    leat__slot_plus_one = slot + 1;
    if (slot < LEAT__SLOTS && pthread_setspecific(exit_key, (void *)(uintptr_t)(slot + 1)) != 0) {
        give_back((void *)(uintptr_t)(slot + 1));
        slot = LEAT__SLOTS;
        leat__slot_plus_one = slot + 1;
    }
    return slot;
}
