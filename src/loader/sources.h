/* SPDX-License-Identifier: Apache-2.0
 *
 * The packs of a loader: one, or several that read as one (pack/join.c). What each has of its own, tables of
 * the tile codec and digests, and what fields that some lack are filled with. Runs once, at open; then
 * constant.
 */
#ifndef LEAT_LOADER_SOURCES_H
#define LEAT_LOADER_SOURCES_H

#include "loader/setup.h"

/* Opens the pack of `path`, or opts->sources. */
int leat__sources_open(leat_loader *l, const char *path, const leat_loader_opts *given, leat_error *err)
    LEAT_MUST_CHECK;
void leat__sources_close(leat_loader *l);

/* Whether packs are mixed, not only put behind each other. */
bool leat__sources_mixed(const leat_loader_opts *given);

/* The shares of mixed packs. l->universe, l->indices and l->page_samples are set; sources are made in *list,
 * to be freed by the caller, also on failure. Adds to l->subset what the order depends on. */
int leat__sources_shares(leat_loader *l, const leat_loader_opts *given, uint64_t pages,
                         leat__source **list, leat__shares_opts *o, leat_error *err) LEAT_MUST_CHECK;

/* LEAT_EINVAL when a field that is delivered is missing in a pack, or has another type there, and has no
 * default; or when a default has no effect. */
int leat__sources_check(leat_loader *l, const leat__shape *shape, const leat_loader_opts *given,
                        leat_error *err) LEAT_MUST_CHECK;

/* Says in a line when class names of a field differ between packs: numbers are delivered as they are. */
bool leat__sources_classes(leat_loader *l, const leat__shape *shape, char text[LEAT__ADVICE_TEXT]);

#endif
