/* SPDX-License-Identifier: Apache-2.0
 *
 * Help pages about augmentations: see op_page.h.
 */
#include "op_page.h"

#include <string.h>
#include <strings.h>

#include <leat/op.h>

#include "base/str.h"

#define TEXT_MAX ((size_t)8192)
#define OPS_MAX 128

static const struct {
    leat_op_kind kind;
    const char *title;
} kinds[] = {
    {LEAT_OP_GEOMETRY, "Geometry: moves pixels, and masks, boxes and points with them"},
    {LEAT_OP_COLOR, "Colour: changes values"},
    {LEAT_OP_POLICY, "Policies: draw other ops"},
    {LEAT_OP_COMBINE, "Combinators: apply the ops inside"},
    {LEAT_OP_ERASE, "Erasing: blanks a part"},
    {LEAT_OP_OUTPUT, "Output: numbers and their layout, after all pixels"},
    {LEAT_OP_BATCH, "Batch: mixes finished samples and their labels, last of all"},
    {LEAT_OP_ROLE, "Roles of fields that follow an image: not ops"},
};

/* Writes a call such as "RandomResizedCrop(size, scale=(0.08, 1), …)". */
static void put_call(leat__buf *out, uint32_t op, const leat_op_info *info)
{
    leat__buf_printf(out, "%s(", info->name);
    for (uint32_t i = 0; i < info->params; i++) {
        leat_op_param p;
        if (leat_op_param_at(op, i, &p) != 0) break;
        leat__buf_printf(out, "%s%s", i ? ", " : "", p.name);
        if (p.def == NULL) continue;
        const bool list = strchr(p.def, ',') != NULL;
        leat__buf_printf(out, list ? "=(%s)" : "=%s", *p.def ? p.def : "''");
    }
    leat__buf_puts(out, ")");
}

void op_page_all(cli_writer *w)
{
    leat__buf term;
    leat_op_info info;

    leat__buf_init(&term, LEAT__MEM_MISC, TEXT_MAX);
    w->title(w, "leat help ops", "augmentations of --ops and of leat.ops in Python");
    w->section(w, "Example");
    w->example(w, "leat load train.leat --ops \"RandomResizedCrop(224); ColorJitter(0.4); ToDtype(f16)\"",
               "ops in order, parameters by position or name");
    w->example(w, "leat load train.leat --ops \"RandomResizedCrop(64); RandomApply(ColorJitter(0.4))\"",
               "a combinator applies the ops inside");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        w->section(w, kinds[k].title);
        for (uint32_t i = 0; leat_op_info_at(i, &info) == 0; i++) {
            if (info.kind != (int32_t)kinds[k].kind) continue;
            leat__buf_clear(&term);
            put_call(&term, i, &info);
            w->item(w, leat__buf_str(&term), info.help);
        }
    }
    w->section(w, "More");
    w->paragraphs(w, "`leat help OP` explains the parameters of one op.");
    leat__buf_reset(&term);
}

static void put_parameter(leat__buf *text, const leat_op_param *p)
{
    leat__buf_puts(text, p->help);
    if (p->choices != NULL) leat__buf_printf(text, ": %s", p->choices);
    const bool number =
        strcmp(p->kind, "flag") != 0 && strcmp(p->kind, "string") != 0 && strcmp(p->kind, "ops") != 0;
    if (p->choices == NULL && number && p->min <= p->max)
        leat__buf_printf(text, "; %g to %g", p->min, p->max);
    if (p->def == NULL) leat__buf_puts(text, " (required)");
    else if (*p->def) leat__buf_printf(text, " [%s]", p->def);
}

bool op_page_one(cli_writer *w, const char *name)
{
    leat_op_info info;
    leat__buf text;
    uint32_t op = 0;

    while (leat_op_info_at(op, &info) == 0 && strcasecmp(info.name, name) != 0) op++;
    if (leat_op_info_at(op, &info) != 0) return false;
    leat__buf_init(&text, LEAT__MEM_MISC, TEXT_MAX);
    w->title(w, info.name, info.help);
    w->section(w, "Usage");
    put_call(&text, op, &info);
    w->synopsis(w, leat__buf_str(&text));
    if (info.params > 0) w->section(w, "Parameters");
    for (uint32_t i = 0; i < info.params; i++) {
        leat_op_param p;
        if (leat_op_param_at(op, i, &p) != 0) break;
        leat__buf_clear(&text);
        put_parameter(&text, &p);
        w->item(w, p.name, leat__buf_str(&text));
    }
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (info.kind != (int32_t)kinds[k].kind) continue;
        w->section(w, "Kind");
        w->paragraphs(w, kinds[k].title);
    }
    leat__buf_reset(&text);
    return true;
}

const char *op_page_nearest(const char *name)
{
    const char *names[OPS_MAX];
    leat_op_info info;
    uint32_t n = 0;

    while (n < OPS_MAX && leat_op_info_at(n, &info) == 0) names[n++] = info.name;
    return leat__str_nearest(name, names, n);
}
