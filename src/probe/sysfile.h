/* SPDX-License-Identifier: Apache-2.0
 *
 * Small text files of the kernel (/proc, /sys) and the numbers in them. All paths are below a
 * root, "" on a real machine. LEAT_SYSROOT, or leat__sysroot_set in tests, selects a fake tree.
 * No function reports an error: a missing or malformed file counts as absent.
 */
#ifndef LEAT_PROBE_SYSFILE_H
#define LEAT_PROBE_SYSFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <leat/export.h>

const char *leat__sysroot(void);         /* "" when there is none */
void leat__sysroot_set(const char *dir); /* NULL: use the environment again. Before threads
                                          * start. */

/* Joins root and path; false when too long. */
bool leat__sysfile_path(char out[PATH_MAX], const char *fmt, ...) LEAT_PRINTF(2, 3);

/* Reads the file into out, truncated to size - 1 and ended with NUL. False, and "", when it
 * cannot be read. */
bool leat__sysfile_read(char *out, size_t size, const char *fmt, ...) LEAT_PRINTF(3, 4);
/* Reads the whole file, up to 16 MiB; free with leat__free. NULL when it cannot be read. */
char *leat__sysfile_load(const char *fmt, ...) LEAT_PRINTF(1, 2);
/* Reads a file that holds one number; "max" is LEAT_UNLIMITED. */
bool leat__sysfile_u64(uint64_t *value, const char *fmt, ...) LEAT_PRINTF(2, 3);

/* Finds the number in text's line "key 123" or "key:   123 kB" (unit not applied). */
bool leat__text_key_u64(const char *text, const char *key, uint64_t *value);
/* Parses the number at the start of s; false when a letter follows it directly. */
bool leat__text_u64(const char *s, uint64_t *value);

/* A set of CPU (or node) numbers. */
#define LEAT__CPUS_MAX 8192u
typedef struct leat__cpuset {
    uint64_t words[LEAT__CPUS_MAX / 64];
} leat__cpuset;
/* Parses "0-3,8,10-12" up to the end of the line; false, and an empty set, when malformed or empty. */
bool leat__cpuset_parse(leat__cpuset *set, const char *text);
void leat__cpuset_and(leat__cpuset *set, const leat__cpuset *other);
uint32_t leat__cpuset_count(const leat__cpuset *set);
bool leat__cpuset_has(const leat__cpuset *set, uint32_t number);

#endif
