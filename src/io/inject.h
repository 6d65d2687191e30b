/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulates a bad disk, for tests of loaders and the doctor. Reads that touch a given range of a given file
 * fail or take longer, with every kind of read (pread, direct, io_uring, threads). When off it costs one load
 * and one branch per read. Rules are process-wide. They are also read once from the environment:
 * LEAT_IO_INJECT="delay=5ms" or "path=SUBSTRING,offset=4096,length=4096,errno=5,delay=2ms,times=3;…".
 */
#ifndef LEAT_IO_INJECT_H
#define LEAT_IO_INJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct leat__inject_rule {
    const char *path;  /* part of the path; NULL or "" = every file */
    uint64_t offset;   /* of the range */
    uint64_t length;   /* 0 = to the end of the file */
    int sys_errno;     /* fail with this errno (EIO …); 0 = only the delay */
    uint64_t delay_ns; /* added to each read that touches the range */
    uint64_t times;    /* how often the rule applies; 0 = always */
} leat__inject_rule;

/* Adds a rule (copied). At most 64. */
int leat__io_inject(const leat__inject_rule *rule, leat_error *err) LEAT_MUST_CHECK;
int leat__io_inject_parse(const char *text, leat_error *err) LEAT_MUST_CHECK;
void leat__io_inject_clear(void);
uint64_t leat__io_inject_hits(void); /* how often any rule applied since the last clear */

bool leat__inject_active(void); /* true if there is a rule; then no read counts as cached */
/* Called before each read: returns the errno to fail with (0 = continue) and the delay to add. */
int leat__inject_ask(const char *path, uint64_t offset, uint64_t len, uint64_t *delay_ns);

#endif
