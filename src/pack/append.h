/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a packer that add a generation to a pack. Private to the packer's files.
 */
#ifndef LEAT_PACK_APPEND_H
#define LEAT_PACK_APPEND_H

#include "base/json.h"
#include "pack/packer.h"

/* Fills options that are 0 from the pack that is appended to. */
int leat__append_options(leat_packer *p, leat_packer_opts *o, leat_error *err) LEAT_MUST_CHECK;
/* Opens the pack; takes its blobs, dropped samples and provenance, to which what `source` names is added. The
 * journal is held. */
int leat__append_open(leat_packer *p, const char *source, leat_error *err) LEAT_MUST_CHECK;

/* Whether a blob of the pack may become `data`: only class names may grow. */
int leat__append_check_blob(const leat_packer *p, const leat__blob *old, const void *data, size_t size,
                            leat_error *err) LEAT_MUST_CHECK;

/* Before publishing: puts dropped samples in order, writes down which file a single pack is linked to. */
int leat__append_note(leat_packer *p, leat_error *err) LEAT_MUST_CHECK;
/* A single pack gets a second name, that of a shard. May be repeated. */
int leat__append_link(leat_packer *p, leat_error *err) LEAT_MUST_CHECK;
/* What a file says about its source: the caller's own words inside its provenance, new (leat__free); NULL:
 * out of memory. */
char *leat__provenance_source(const char *whole);

/* What the set file says about the pack: its shards, and provenance, dropped samples, limits. */
int leat__append_list(const leat_packer *p, leat__json *j, leat_error *err) LEAT_MUST_CHECK;
void leat__append_set(const leat_packer *p, leat__indexer *x);
/* Whether nothing was appended, dropped or named: the pack stays as it is. */
bool leat__append_nothing(const leat_packer *p);

#endif
