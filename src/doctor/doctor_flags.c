/* SPDX-License-Identifier: Apache-2.0
 *
 * Load flags of remedies. Pure functions.
 */
#include "doctor/doctor_flags.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "loader/state.h"

static void set_flag(leat_loader_opts *o, const char *key, const char *value)
{
    uint64_t number = 0;
    bool counts = leat__str_to_u64(value, &number);
    if (strcmp(key, "threads") == 0 && counts) o->threads = (uint32_t)number;
    if (strcmp(key, "memory") == 0 && counts) {
        o->memory = number;
        o->budget = NULL;
    }
    if (strcmp(key, "prefetch") == 0 && counts) o->prefetch = (uint32_t)number;
    if (strcmp(key, "io-depth") == 0 && counts) o->io_depth = (uint32_t)number;
    if (strcmp(key, "cache") == 0)
        o->cache = strcmp(value, "process") == 0 ? LEAT_CACHE_PROCESS : LEAT_CACHE_OS;
    if (strcmp(key, "order") == 0) (void)leat__order_find(value, &o->order);
}

leat_loader_opts leat__doctor_apply(const leat_loader_opts *from, const char *set)
{
    leat_loader_opts o = *from;
    for (const char *at = set; *at != '\0';) {
        char key[32], value[64];
        size_t len = strcspn(at, ","), equals = strcspn(at, "=");
        if (equals < len && equals < sizeof key) {
            snprintf(key, sizeof key, "%.*s", (int)equals, at);
            snprintf(value, sizeof value, "%.*s", (int)(len - equals - 1), at + equals + 1);
            set_flag(&o, key, value);
        }
        at += len + (at[len] == ',');
    }
    return o;
}
