/* SPDX-License-Identifier: Apache-2.0
 *
 * Distinguishes an outage of remote storage, which ends a run, from a record that cannot be read, which is
 * skipped. Reads overlap and are repeated, so neighbouring records do not explain a failure, and the outage
 * may be over when the failure is noticed. So the failed record is read again: if that works, storage had
 * failed. Otherwise the file of the last record read from the same host or bucket is opened again: if that
 * fails, storage fails for all. An object may be readable at its end, which is enough to open it, but not in
 * the middle: then only the records there are skipped. A host that has delivered nothing is a dead host in a
 * list. Only while nothing was read at all, many consecutive failures count as an outage. A file of many
 * records that was replaced or removed (LEAT_ECHANGED) and a bucket that was removed end the run at once.
 */
#ifndef LEAT_INGEST_OUTAGE_H
#define LEAT_INGEST_OUTAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define LEAT__OUTAGE_HOSTS 64   /* hosts and buckets that are remembered */
#define LEAT__OUTAGE_FAILURES 8 /* consecutive failures that are an outage while nothing was read */

typedef struct leat__outage {
    char *delivered[LEAT__OUTAGE_HOSTS]; /* the last path that was read, per host or bucket */
    uint32_t hosts;                      /* number of entries that are set */
    uint32_t failures;                   /* consecutive failures of storage, while nothing was read */
} leat__outage;                          /* all zeros at first */

void leat__outage_reset(leat__outage *o);

/* Notes a record that was read. `path` is NULL when it is not in remote storage. */
int leat__outage_delivered(leat__outage *o, const char *path, leat_error *err) LEAT_MUST_CHECK;

/* Returns the message when the record failed because of an outage; NULL when the record must be skipped.
 * `path` is NULL as above. `again` reads the record once more; NULL: its file is opened. */
typedef int (*leat__outage_read)(void *cookie);
const char *leat__outage_failed(leat__outage *o, const char *path, const leat_error *why,
                                leat__outage_read again, void *cookie);

#endif
