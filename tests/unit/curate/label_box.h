/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs for tests of labels: four classes whose vectors are near each other, some labels
 * wrong.
 */
#ifndef LEAT_TEST_LABEL_BOX_H
#define LEAT_TEST_LABEL_BOX_H

#include "curate/select_box.h"

#include "curate/label_check.h"

enum { LABEL_ROWS = 200, LABEL_CLASSES = 4 };

static inline bool is_wrong(uint32_t row)
{
    return row % 40 == 13;
}

static inline void fill_label(uint32_t row, leat_pack_value *v, void *cookie)
{
    v[0].i = (row + is_wrong(row)) % LABEL_CLASSES;
    v[1].f = 0;
    if (row == 5) v[0].i = -1;
}

static inline void fill_logits(uint32_t row, leat_pack_value *v, void *cookie)
{
    static float score[LABEL_CLASSES];
    for (uint32_t c = 0; c < LABEL_CLASSES; c++) score[c] = c == row % LABEL_CLASSES ? 3 : 0;
    if (cookie && row == 9) score[1] = NAN;
    v[0].data = score;
    v[0].size = sizeof score;
}

static inline void put_logits(const char *name, void *bad)
{
    const leat_field f = {.name = "logits",
                          .type = LEAT_FIELD_ARRAY,
                          .dtype = LEAT_DTYPE_F32,
                          .ndim = 1,
                          .shape = {LABEL_CLASSES}};
    put_pack(in_box(name), &f, 1, LABEL_ROWS, fill_logits, bad);
}

static inline leat_check_labels_opts label_opts(const char *output)
{
    static const leat_field fields[] = {{.name = "label", .type = LEAT_FIELD_INT},
                                        {.name = "other", .type = LEAT_FIELD_FLOAT}};
    leat_check_labels_opts o;
    put_pack(in_box("labels.leat"), fields, 2, LABEL_ROWS, fill_label, NULL);
    leat_check_labels_opts_init(&o);
    o.pack = in_box("labels.leat");
    o.vectors = put_vectors("v.leat", LABEL_ROWS,
                            (vector_kind){.dim = 12, .clusters = LABEL_CLASSES, .seed = 6, .spread = 0.3f});
    o.output = in_box(output);
    o.replace = o.no_sync = 1;
    return o;
}

static inline leat_check_labels_stats labels_ok(const leat_check_labels_opts *o)
{
    leat_check_labels_stats st = {.struct_size = sizeof st};
    leat_error err = {0};
    if (leat_check_labels(o, &st, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(leat__mem_blocks(), test_blocks);
    return st;
}

#endif
