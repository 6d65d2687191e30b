/* SPDX-License-Identifier: Apache-2.0
 *
 * Recognises shards that leat has written, so that no other file is replaced. Headers of all
 * members of a tar file have the user and group name LEAT__SHARD_OWNER, Parquet files the key-value pair
 * LEAT__SHARD_OWNER = "export".
 */
#ifndef LEAT_INGEST_SHARD_MARK_H
#define LEAT_INGEST_SHARD_MARK_H

#include <stdbool.h>

#include "base/error.h"

#define LEAT__SHARD_OWNER "leat"

/* Sets *ours when the file has the mark. Fails when `path` is not a readable file. */
int leat__shard_ours(const char *path, bool tar, bool *ours, leat_error *err) LEAT_MUST_CHECK;
/* Fails with LEAT_EINVAL when `path` exists and is not a shard of leat. */
int leat__shard_replaceable(const char *path, bool tar, leat_error *err) LEAT_MUST_CHECK;
/* Fails with the error for a file without the mark. */
int leat__shard_foreign(const char *path, leat_error *err);

#endif
