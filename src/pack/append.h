/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a packer that add a generation to a pack. Private to the packer's files.
 */
#ifndef LEAT_PACK_APPEND_H
#define LEAT_PACK_APPEND_H

#include "base/json.h"
#include "pack/packer.h"

/* Fills options that are 0 from the existing pack. */
int leat__append_options(leat_packer *p, leat_packer_opts *o, leat_error *err) LEAT_MUST_CHECK;
/* Opens the pack; takes its blobs, dropped samples and provenance, and adds the names in `source`. The caller
 * holds the journal's lock. */
int leat__append_open(leat_packer *p, const char *source, leat_error *err) LEAT_MUST_CHECK;

/* Checks whether a blob of the pack may become `data`: only class names may grow. */
int leat__append_check_blob(const leat_packer *p, const leat__blob *old, const void *data, size_t size,
                            leat_error *err) LEAT_MUST_CHECK;

/* Before publishing: sorts the dropped samples. For a single pack, also records the shard name that it will
 * be linked to. */
int leat__append_note(leat_packer *p, leat_error *err) LEAT_MUST_CHECK;
/* Gives a single pack a second name: that of a shard. May be repeated. */
int leat__append_link(leat_packer *p, leat_error *err) LEAT_MUST_CHECK;
/* Returns the caller's own text inside a file's provenance, as a new string (leat__free); NULL: out of
 * memory. */
char *leat__provenance_source(const char *whole);

/* Writes the set file's description of the pack: its shards, provenance, dropped samples,
 * limits. */
int leat__append_list(const leat_packer *p, leat__json *j, leat_error *err) LEAT_MUST_CHECK;
void leat__append_set(const leat_packer *p, leat__indexer *x);
/* True when nothing was appended, dropped or named: the pack does not change. */
bool leat__append_nothing(const leat_packer *p);

#endif
