/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of kernel families. A new family adds a function and a line. Each function calls the family's own
 * selection instead of repeating it, so the report cannot differ from what runs.
 */
#include "dsp/kernel.h"

#include "base/num.h"
#include "base/str.h"
#include "dsp/color.h"
#include "dsp/copy.h"
#include "dsp/distance.h"
#include "dsp/energy.h"
#include "dsp/idct.h"
#include "dsp/idct_small.h"
#include "dsp/pixel.h"
#include "dsp/resize.h"
#include "dsp/tile_entropy.h"
#include "dsp/tile_pack.h"
#include "dsp/warp.h"
#include "dsp/ycc.h"
#include "dsp/ycc_resize.h"

static const char *color_isa(uint32_t cpu_flags)
{
    return leat__color_dsp_for(cpu_flags)->isa;
}

static const char *copy_isa(uint32_t cpu_flags)
{
    return leat__copy_dsp_for(cpu_flags)->isa;
}

static const char *distance_isa(uint32_t cpu_flags)
{
    return leat__distance_dsp_for(cpu_flags)->isa;
}

static const char *energy_isa(uint32_t cpu_flags)
{
    return leat__energy_dsp_for(cpu_flags)->isa;
}

static const char *idct_isa(uint32_t cpu_flags)
{
    leat__idct_dsp dsp;
    leat__idct_init(&dsp, cpu_flags);
    return dsp.isa;
}

static const char *idct_small_isa(uint32_t cpu_flags)
{
    leat__idct_small_dsp dsp;
    leat__idct_small_init(&dsp, cpu_flags);
    return dsp.isa;
}

static const char *pixel_isa(uint32_t cpu_flags)
{
    return leat__pixel_dsp_for(cpu_flags)->isa;
}

static const char *resize_isa(uint32_t cpu_flags)
{
    return leat__resize_dsp_for(cpu_flags)->isa;
}

static const char *tile_entropy_isa(uint32_t cpu_flags)
{
    leat__tile_entropy_dsp dsp;
    leat__tile_entropy_init(&dsp, cpu_flags);
    return dsp.isa;
}

static const char *tile_pack_isa(uint32_t cpu_flags)
{
    leat__tile_pack_dsp dsp;
    leat__tile_pack_init(&dsp, cpu_flags);
    return dsp.isa;
}

static const char *warp_isa(uint32_t cpu_flags)
{
    return leat__warp_dsp_for(cpu_flags)->isa;
}

static const char *ycc_isa(uint32_t cpu_flags)
{
    leat__ycc_dsp dsp;
    leat__ycc_init(&dsp, cpu_flags);
    return dsp.isa;
}

static const char *ycc_resize_isa(uint32_t cpu_flags)
{
    return leat__ycc_resize_dsp_for(cpu_flags)->isa;
}

static const struct {
    const char *name;
    const char *(*isa)(uint32_t cpu_flags);
} families[] = {
    {"tile_entropy", tile_entropy_isa},
    {"tile_pack", tile_pack_isa},
    {"idct", idct_isa},
    {"idct_small", idct_small_isa},
    {"ycc", ycc_isa},
    {"ycc_resize", ycc_resize_isa},
    {"resize", resize_isa},
    {"pixel", pixel_isa},
    {"color", color_isa},
    {"warp", warp_isa},
    {"distance", distance_isa},
    {"energy", energy_isa},
    {"copy", copy_isa},
};

bool leat__kernel_report(size_t i, uint32_t cpu_flags, const char **family, const char **isa)
{
    if (i >= LEAT_COUNT(families)) return false;
    *family = families[i].name;
    *isa = families[i].isa(cpu_flags);
    if (leat__str_eq(*isa, "c")) *isa = "scalar"; /* one name, the same as in leat__cpu_level() */
    return true;
}
