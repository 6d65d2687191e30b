/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of model families and their measurement: see arch.h. Pure functions.
 */
#include "plan/arch.h"

#include <ctype.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "base/str.h"

#define R LEAT__ARCH_RESNET
#define V LEAT__ARCH_VIT
#define C LEAT__ARCH_CONVNEXT

static const leat__arch families[] = {
    {"resnet18", "ResNet-18", R, {2, 2, 2, 2}, {0}, false, false},
    {"resnet34", "ResNet-34", R, {3, 4, 6, 3}, {0}, false, false},
    {"resnet50", "ResNet-50", R, {3, 4, 6, 3}, {0}, true, false},
    {"resnet101", "ResNet-101", R, {3, 4, 23, 3}, {0}, true, false},
    {"resnet152", "ResNet-152", R, {3, 8, 36, 3}, {0}, true, false},
    {"vit_s", "ViT-S/16", V, {12}, {384, 6, 16}, false, true},
    {"vit_s_32", "ViT-S/32", V, {12}, {384, 6, 32}, false, true},
    {"vit_b", "ViT-B/16", V, {12}, {768, 12, 16}, false, true},
    {"vit_b_32", "ViT-B/32", V, {12}, {768, 12, 32}, false, true},
    {"vit_l", "ViT-L/16", V, {24}, {1024, 16, 16}, false, true},
    {"vit_l_32", "ViT-L/32", V, {24}, {1024, 16, 32}, false, true},
    {"convnext_t", "ConvNeXt-T", C, {3, 3, 9, 3}, {96, 192, 384, 768}, false, true},
    {"convnext_s", "ConvNeXt-S", C, {3, 3, 27, 3}, {96, 192, 384, 768}, false, true},
    {"convnext_b", "ConvNeXt-B", C, {3, 3, 27, 3}, {128, 256, 512, 1024}, false, true},
    {"generic", "generic", LEAT__ARCH_GENERIC, {0}, {0}, false, true},
};

/* Writes the canonical form of a name: letters and digits in lower case, without the default patch
 * 16, and "small|base|large|tiny" shortened. */
static void canonical(const char *name, char *out, size_t size)
{
    static const struct {
        const char *word, *letter;
    } spelled[] = {{"tiny", "t"}, {"small", "s"}, {"base", "b"}, {"large", "l"}};
    size_t n = 0;
    for (; *name != '\0' && n + 1 < size; name++)
        if (isalnum((unsigned char)*name)) out[n++] = (char)tolower((unsigned char)*name);
    out[n] = '\0';
    for (size_t i = 0; i < LEAT_COUNT(spelled); i++) {
        char *at = strstr(out, spelled[i].word);
        if (at == NULL) continue;
        *at = spelled[i].letter[0];
        memmove(at + 1, at + strlen(spelled[i].word), strlen(at + strlen(spelled[i].word)) + 1);
    }
    n = strlen(out);
    if (leat__str_starts(out, "vit") && leat__str_ends(out, "16")) out[n - 2] = '\0';
}

const leat__arch *leat__arch_at(uint32_t index)
{
    return index < LEAT_COUNT(families) ? &families[index] : NULL;
}

const leat__arch *leat__arch_find(const char *name)
{
    char wanted[48], have[48];
    canonical(name, wanted, sizeof wanted);
    for (size_t i = 0; i < LEAT_COUNT(families); i++) {
        canonical(families[i].name, have, sizeof have);
        if (strcmp(wanted, have) == 0) return &families[i];
    }
    return NULL;
}

const char *leat__arch_nearest(const char *name)
{
    const char *names[LEAT_COUNT(families)];
    for (size_t i = 0; i < LEAT_COUNT(families); i++) names[i] = families[i].name;
    return leat__str_nearest(name, names, LEAT_COUNT(families));
}

static int measure_generic(const leat__arch_shape *shape, leat__tape_sum *sum, leat_error *err)
{
    uint64_t bytes, grads;
    if (!leat__mul_u64(shape->batch, shape->activation_bytes, &bytes) ||
        !leat__mul_u64(shape->params, 4, &grads) || bytes > UINT64_MAX / 4)
        return leat__fail(err, LEAT_EOVERFLOW, "model of %llu parameters is out of range",
                          (unsigned long long)shape->params);
    *sum = (leat__tape_sum){.params = shape->params,
                            .saved_bytes = bytes,
                            .peak_bytes = bytes + grads,
                            .peak_grads_bytes = grads,
                            .macs = shape->macs * (double)shape->batch,
                            /* each saved byte is written once and read by the next layer and by
                             * backward; its gradient is written and read */
                            .traffic_bytes = 5.0 * (double)bytes};
    return 0;
}

int leat__arch_measure(const leat__arch *arch, const leat__arch_shape *shape, leat__tape_sum *sum,
                       leat_error *err)
{
    if (arch->kind == LEAT__ARCH_GENERIC) return measure_generic(shape, sum, err);
    uint32_t least = arch->kind == LEAT__ARCH_VIT ? arch->dims[2] : 32;
    if (shape->image < least || shape->image > LEAT__PLAN_IMAGE_MOST)
        return leat__fail(err, LEAT_EINVAL,
                          "%s needs images of %u to %d pixels a side, "
                          "not %llu",
                          arch->title, least, LEAT__PLAN_IMAGE_MOST, (unsigned long long)shape->image);
    leat__tape t;
    leat__tape_init(&t, shape->batch, shape->size, shape->mixed);
    t.keep_grads = shape->keep_grads;
    if (!shape->mixed) t.param_bytes = shape->size;
    if (arch->kind == LEAT__ARCH_RESNET) leat__arch_resnet(&t, arch, shape);
    if (arch->kind == LEAT__ARCH_VIT) leat__arch_vit(&t, arch, shape);
    if (arch->kind == LEAT__ARCH_CONVNEXT) leat__arch_convnext(&t, arch, shape);
    int rc = leat__tape_run(&t, sum);
    leat__tape_reset(&t);
    if (rc != 0)
        return leat__fail(err, rc, "%s at batch %llu and %llu pixels: %s", arch->title,
                          (unsigned long long)shape->batch, (unsigned long long)shape->image,
                          leat_code_text(rc));
    return 0;
}
