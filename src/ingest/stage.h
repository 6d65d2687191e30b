/* SPDX-License-Identifier: Apache-2.0
 *
 * A pack on its way into a bucket: it is written to a folder of this machine first, as any other
 * pack (so that it can be resumed), and then uploaded file by file. The file that readers open,
 * the pack itself or its set, comes last, in one conditional request: they see all of it or
 * nothing. The folder's name follows from the bucket path, so that `resume` finds it again.
 */
#ifndef LEAT_INGEST_STAGE_H
#define LEAT_INGEST_STAGE_H

#include <stdbool.h>

#include "io/store.h"

typedef struct leat__stage {
    const char *remote; /* where it goes */
    leat__store *store;
    char *folder, *path; /* of this machine; path: the pack in it */
    bool replace;
    bool published; /* an earlier run was killed behind the last request: only cleaning is left */
} leat__stage;

/* Finds the folder and asks the bucket whether the name is free: LEAT_EEXIST unless `replace`, or,
 * with `resume`, unless it is the pack that waits here. */
int leat__stage_open(leat__stage *s, const char *remote, bool replace, bool resume,
                     leat_error *err) LEAT_MUST_CHECK;
void leat__stage_close(leat__stage *s);

/* Aborts what earlier runs had begun to upload: the pack is written anew. */
void leat__stage_forget(leat__stage *s);
/* True when a finished pack waits there for its upload. */
bool leat__stage_ready(const leat__stage *s);
/* Uploads all files of the pack and removes them here. `progress` as in leat__upload_opts. */
int leat__stage_publish(leat__stage *s, int (*progress)(void *cookie, uint64_t done, uint64_t total),
                        void *cookie, leat_error *err) LEAT_MUST_CHECK;

#endif
