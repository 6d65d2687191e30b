/* SPDX-License-Identifier: Apache-2.0
 *
 * The packs of a loader: one, or several that are read as one (pack/join.c). Also their tile tables and
 * digests, and the default values of fields that some packs lack. Set up once, at open; then constant.
 */
#ifndef LEAT_LOADER_SOURCES_H
#define LEAT_LOADER_SOURCES_H

#include "loader/setup.h"

/* Opens the pack at `path`, or given->sources. */
int leat__sources_open(leat_loader *l, const char *path, const leat_loader_opts *given,
                       leat_error *err) LEAT_MUST_CHECK;
void leat__sources_close(leat_loader *l);

/* True when packs are mixed, not only concatenated. */
bool leat__sources_mixed(const leat_loader_opts *given);

/* Computes the shares of mixed packs. l->universe, l->indices and l->page_samples must be set. *list gets the
 * sources; the caller frees it, even on failure. Adds everything the order depends on to l->subset. */
int leat__sources_shares(leat_loader *l, const leat_loader_opts *given, uint64_t pages,
                         leat__share_source **list, leat__shares_opts *o, leat_error *err) LEAT_MUST_CHECK;

/* Returns LEAT_EINVAL when a delivered field is missing in a pack or has another type there and has no
 * default, or when a default has no effect. */
int leat__sources_check(leat_loader *l, const leat__shape *shape, const leat_loader_opts *given,
                        leat_error *err) LEAT_MUST_CHECK;

/* Writes a line of advice when class names of a field differ between packs, because numbers are delivered
 * unchanged. */
bool leat__sources_classes(leat_loader *l, const leat__shape *shape, char text[LEAT__ADVICE_TEXT]);

#endif
