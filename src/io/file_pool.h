/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors shared by many files, so that a set of 10,000 shards can be read with a limit of 64 open files
 * (RLIMIT_NOFILE). Each file has a seat. Its descriptors are open while in use, and stay open until others
 * need them. Then the seat that was idle longest closes its descriptors and reopens the file at the next use.
 * Any thread may call.
 */
#ifndef LEAT_IO_FILE_POOL_H
#define LEAT_IO_FILE_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

typedef struct leat__file_pool leat__file_pool;

typedef struct leat__seat leat__seat;
struct leat__seat {
    int fd, direct_fd; /* -1: not open; read them only while the seat is taken */
    /* used by the pool. `pool` NULL: the descriptors stay open, and take and give do nothing */
    leat__file_pool *pool;
    leat__seat *older, *newer; /* list of idle seats with descriptors */
    uint32_t users;
    const char *path;   /* owned by the file */
    bool direct, known; /* known: the file was open before, and the path must still name the same file */
    dev_t device;
    ino_t inode;
    off_t bytes;
};

/* Opens a pool for `files` local files. *pool stays NULL when the limit on open files is high enough. */
int leat__file_pool_open(leat__file_pool **pool, uint64_t files, bool direct,
                         leat_error *err) LEAT_MUST_CHECK;
void leat__file_pool_close(leat__file_pool **pool); /* after its files */

/* Opens the descriptors if needed and keeps them open until `give`. Returns 0 or an errno; ESTALE when the
 * path now names another file. Waits while all descriptors are in use. With `waits` false (pass the same
 * value to `give`) it returns EAGAIN instead, and also when such callers already have half of the seats. */
int leat__seat_take(leat__seat *s, bool waits);
void leat__seat_give(leat__seat *s, bool waits);
void leat__seat_close(leat__seat *s);

#endif
