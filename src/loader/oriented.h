/* SPDX-License-Identifier: Apache-2.0
 *
 * Returns the size of an image as pipelines get it, after its orientation is applied. A pure function.
 */
#ifndef LEAT_LOADER_ORIENTED_H
#define LEAT_LOADER_ORIENTED_H

#include <stdbool.h>

#include <leat/pack.h>

static inline void leat__oriented(const leat_pack_image *im, bool as_stored, uint32_t *width,
                                  uint32_t *height)
{
    const bool turned = !as_stored && im->orientation >= 5 && im->orientation <= 8;
    *width = turned ? im->height : im->width;
    *height = turned ? im->width : im->height;
}

#endif
