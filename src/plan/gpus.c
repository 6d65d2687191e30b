/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of GPUs: maps the spellings of drivers, clouds and people to a row of data/plan/gpus.txt.
 * A name is split into words; words for the vendor, the form factor and the amount of memory are
 * removed; the rest must match an alias exactly. So "NVIDIA A100-SXM4-80GB" is an A100 of 80 GB,
 * and "A1000" is not.
 */
#include "plan/parts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "base/str.h"

#define NAME_MAX_LEN 96
#define MEMORY_SLACK 0.12 /* "80 GB" may be 81,559 or 81,920 MiB */

typedef struct gpu_name {
    char model[NAME_MAX_LEN];  /* remaining words, joined */
    char formed[NAME_MAX_LEN]; /* the same with the form factor */
    double memory_gb;          /* 0 = not in the name */
} gpu_name;

static bool among(const char *word, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, words[i]) == 0) return true;
    return false;
}

/* Returns the number in "80gb" or "24g"; 0 for other words. */
static double memory_of(const char *word)
{
    char *end;
    double gb = isdigit((unsigned char)word[0]) ? strtod(word, &end) : 0;
    if (gb <= 0) return 0;
    return strcmp(end, "gb") == 0 || strcmp(end, "g") == 0 || strcmp(end, "gib") == 0 ? gb : 0;
}

static void join(char *to, const char *word)
{
    size_t used = strlen(to);
    snprintf(to + used, NAME_MAX_LEN - used, "%s", word);
}

static gpu_name parse(const char *name)
{
    static const char *const vendor[] = {"nvidia",     "amd",  "geforce", "tesla", "instinct",
                                         "generation", "hbm2", "hbm2e",   "hbm3",  "hbm3e",
                                         "gpu",        "oam",  "tensor",  "core"};
    static const char *const form[] = {"pcie", "sxm", "sxm2", "sxm3", "sxm4", "sxm5", "sxm6", "nvl"};
    gpu_name out = {0};
    while (*name != '\0') {
        char word[NAME_MAX_LEN];
        size_t n = 0;
        for (; isalnum((unsigned char)*name); name++)
            if (n + 1 < sizeof word) word[n++] = (char)tolower((unsigned char)*name);
        word[n] = '\0';
        if (*name != '\0') name++;
        if (n == 0 || among(word, vendor, LEAT_COUNT(vendor))) continue;
        if (memory_of(word) > 0) {
            out.memory_gb = memory_of(word);
            continue;
        }
        join(out.formed, word);
        if (!among(word, form, LEAT_COUNT(form))) join(out.model, word);
    }
    return out;
}

static bool is_alias(const char *aliases, const char *word)
{
    size_t length = strlen(word);
    while (length > 0 && *aliases != '\0') {
        size_t n = strcspn(aliases, ",");
        if (n == length && memcmp(aliases, word, n) == 0) return true;
        aliases += n + (aliases[n] == ',');
    }
    return false;
}

static bool memory_fits(const plan_gpu *gpu, double gb)
{
    double mib = gb * 1024;
    return gb == 0 || ((double)gpu->vram_mib > mib * (1 - MEMORY_SLACK) &&
                       (double)gpu->vram_mib < mib * (1 + MEMORY_SLACK));
}

static const plan_gpu *find_word(const char *word, double memory_gb)
{
    for (size_t i = 0; i < LEAT_COUNT(plan_gpu_rows); i++) {
        const plan_gpu *gpu = &plan_gpu_rows[i];
        if (is_alias(gpu->aliases, word) && memory_fits(gpu, memory_gb)) return gpu;
    }
    return NULL;
}

const plan_gpu *leat__plan_gpu_find(const char *name)
{
    gpu_name n = parse(name);
    double own = strcmp(n.model, "gh200") == 0 ? 0 : n.memory_gb; /* "GH200 480GB" names the CPU's memory */
    const plan_gpu *gpu = find_word(n.formed, own);
    return gpu != NULL ? gpu : find_word(n.model, own);
}

/* Returns the distance of an alias from a word: 0 when one is a prefix of the other. */
static size_t distance(const char *aliases, const char *word)
{
    size_t best = SIZE_MAX;
    while (*aliases != '\0') {
        char alias[NAME_MAX_LEN];
        size_t n = strcspn(aliases, ",");
        snprintf(alias, sizeof alias, "%.*s", (int)n, aliases);
        bool begins = strncmp(alias, word, LEAT_MIN(n, strlen(word))) == 0;
        best = LEAT_MIN(best, begins ? 0 : leat__str_distance(alias, word));
        aliases += n + (aliases[n] == ',');
    }
    return best;
}

/* Lists up to five known names similar to an unknown one, separated by commas; empty when none is similar. */
static void suggest(const char *name, leat__buf *out)
{
    gpu_name n = parse(name);
    uint32_t given = 0;
    for (size_t near = 0; near <= 2 && n.model[0] != '\0'; near++) {
        for (size_t i = 0; i < LEAT_COUNT(plan_gpu_rows) && given < 5; i++) {
            if (distance(plan_gpu_rows[i].aliases, n.model) != near) continue;
            leat__buf_printf(out, "%s%s", given++ > 0 ? ", " : "", plan_gpu_rows[i].name);
        }
        if (given > 0) return;
    }
}

static void list_all(leat__buf *out)
{
    for (size_t i = 0; i < LEAT_COUNT(plan_gpu_rows); i++)
        leat__buf_printf(out, "%s%s", i > 0 ? ", " : "", plan_gpu_rows[i].name);
}

int leat__plan_gpu_unknown(const char *name, const char *others, leat_error *err)
{
    leat__buf near, all;
    leat__buf_init(&near, LEAT__MEM_PLAN, 4096);
    leat__buf_init(&all, LEAT__MEM_PLAN, 4096);
    suggest(name, &near);
    list_all(&all);
    if (near.len > 0)
        leat__fail(err, LEAT_EINVAL, "unknown GPU '%s' (did you mean %s?); for others give %s", name,
                   leat__buf_str(&near), others);
    else
        leat__fail(err, LEAT_EINVAL, "unknown GPU '%s'; for GPUs other than these give %s: %s", name, others,
                   leat__buf_str(&all));
    leat__buf_reset(&near);
    leat__buf_reset(&all);
    return LEAT_EINVAL;
}
