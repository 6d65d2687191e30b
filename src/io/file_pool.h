/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors that many files share: a set of 10,000 shards opens and loads under a limit of 64
 * open files (RLIMIT_NOFILE). Each file has a seat. Its descriptors are open while somebody uses
 * them, and afterwards until others need the room: the seat that was idle longest gives its own
 * back and opens the file anew when it is next used. Any thread.
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
    /* the rest is the pool's; `pool` NULL: the descriptors stay open, taking them does nothing */
    leat__file_pool *pool;
    leat__seat *older, *newer; /* idle ones with descriptors */
    uint32_t users;
    const char *path; /* the owner's */
    bool direct, known; /* known: was open before, and must be the same file again */
    dev_t device;
    ino_t inode;
    off_t bytes;
};

/* For `files` local files. *pool stays NULL where the limit on open files has room for all. */
int leat__file_pool_open(leat__file_pool **pool, uint64_t files, bool direct,
                         leat_error *err) LEAT_MUST_CHECK;
void leat__file_pool_close(leat__file_pool **pool); /* after its files */

/* Opens the descriptors if need be and keeps them open until `give`: 0 or an errno, ESTALE when
 * there is another file at the path now. Waits while all are in use; who cannot wait for others
 * (`waits` false, the same for `give`) gets EAGAIN, also when half of all are taken that way. */
int leat__seat_take(leat__seat *s, bool waits);
void leat__seat_give(leat__seat *s, bool waits);
void leat__seat_close(leat__seat *s);

#endif
