/* SPDX-License-Identifier: Apache-2.0 */
#include "tiny_loader.h"

#include <math.h>

#include "base/mem.h"
#include "base/num.h"
#include "op/mix.h"

#define SAMPLES 70
#define CLASSES 5
#define BATCH 16
#define SIDE 24
#define PIXELS (3 * SIDE * SIDE)
#define CROP "RandomResizedCrop(24); RandomHorizontalFlip()"

static const char *const pack_path = "mixing.leat";

static int make_pack(void **state)
{
    tiny_pack(pack_path, &(tiny_opts){.samples = SAMPLES, .classes = CLASSES});
    return 0;
}

static int drop_pack(void **state)
{
    return unlink(pack_path);
}

static leat_loader_opts mix_opts(const char *ops)
{
    leat_loader_opts o = base_opts();
    o.ops = ops;
    o.classes = CLASSES;
    return o;
}

/* All rows of an epoch. */
typedef struct rows {
    uint8_t pixels[SAMPLES][PIXELS];
    float soft[SAMPLES][CLASSES];
    int64_t label[SAMPLES], partner[SAMPLES];
    float lambda[SAMPLES];
    uint32_t samples, fields;
} rows;

static const leat_tensor *field_of(const leat_batch *b, const char *name)
{
    for (uint32_t f = 0; f < b->field_count; f++)
        if (strcmp(b->fields[f].name, name) == 0) return &b->fields[f];
    return NULL;
}

static void collect(rows *r, leat_loader *l)
{
    leat_batch *b;
    leat_error err;
    while (leat_loader_next(l, &b, -1, &err) == 0 && b != NULL) {
        memcpy(r->pixels[r->samples], field_of(b, "image")->data, (size_t)b->samples * PIXELS);
        const leat_tensor *label = field_of(b, "label"), *partner = field_of(b, "label_partner");
        if (label->dtype == LEAT_DTYPE_F32)
            memcpy(r->soft[r->samples], label->data, b->samples * sizeof r->soft[0]);
        else memcpy(&r->label[r->samples], label->data, b->samples * sizeof(int64_t));
        if (partner != NULL) {
            memcpy(&r->partner[r->samples], partner->data, b->samples * sizeof(int64_t));
            memcpy(&r->lambda[r->samples], field_of(b, "label_lambda")->data, b->samples * sizeof(float));
        }
        r->samples += b->samples;
        r->fields = b->field_count;
        leat_batch_release(&b);
    }
}

static rows *load(const leat_loader_opts *o)
{
    leat_loader *l;
    leat_error err = {0};
    rows *r = leat__zalloc(LEAT__MEM_MISC, sizeof *r);
    if (leat_loader_open(&l, pack_path, o, &err) != 0) fail_msg("%s", err.message);
    assert_ok(leat_loader_begin(l, 3, &err));
    collect(r, l);
    leat_loader_close(&l);
    assert_int_equal(r->samples, SAMPLES);
    return r;
}

/* What the two forms of a mixed batch must be, from the batch without. */
static void mixed_batches_equal_their_reference(void **state)
{
    static const char *const texts[] = {CROP "; MixUp(0.8)", CROP "; CutMix(1)", CROP "; MixUp(1, p=0.5)"};
    leat_loader_opts plain_opts = base_opts();
    plain_opts.ops = CROP;
    rows *plain = load(&plain_opts);

    for (size_t t = 0; t < LEAT_COUNT(texts); t++) {
        leat_loader_opts o = mix_opts(texts[t]);
        rows *soft = load(&o);
        o.mix_labels = LEAT_MIX_LABELS_PAIRS;
        o.classes = 0;
        rows *pairs = load(&o);
        assert_int_equal(soft->fields, 2);
        assert_int_equal(pairs->fields, 4);
        assert_memory_equal(soft->pixels, pairs->pixels, sizeof soft->pixels);
        assert_memory_equal(pairs->label, plain->label, sizeof plain->label);
        uint32_t changed = 0, quiet = 0;
        for (uint32_t i = 0; i < SAMPLES; i++) {
            uint32_t first = i / BATCH * BATCH, n = LEAT_MIN(BATCH, SAMPLES - first);
            uint32_t p = i > first ? i - 1 : first + n - 1;
            float lambda = pairs->lambda[i], want[CLASSES] = {0};
            bool active = lambda != 1;
            quiet += !active;
            assert_int_equal(pairs->partner[i], plain->label[active ? p : i]);
            if (i > first) assert_true(lambda == pairs->lambda[i - 1]);
            want[plain->label[p]] += 1 - lambda;
            want[plain->label[i]] += lambda;
            for (int c = 0; c < CLASSES; c++) assert_true(fabsf(soft->soft[i][c] - want[c]) < 1e-6f);
            uint32_t pasted = 0, differ = 0;
            for (uint32_t k = 0; k < PIXELS; k++) {
                uint8_t a = plain->pixels[i][k], b = plain->pixels[p][k], got = soft->pixels[i][k];
                if (t == 1) assert_true(got == a || got == b);
                else assert_int_equal(got, (int)(lambda * a + (1 - lambda) * b + 0.5f));
                differ += a != b;
                pasted += a != b && got == b;
            }
            changed += memcmp(plain->pixels[i], soft->pixels[i], PIXELS) != 0;
            if (t == 1 && differ == PIXELS)
                assert_true(fabs(pasted / (double)PIXELS - (1 - (double)lambda)) < 1e-4);
        }
        assert_true(t == 2 ? quiet > 0 && changed > 0 && quiet < SAMPLES : changed > SAMPLES * 3 / 4);
        leat__free(soft);
        leat__free(pairs);
    }
    leat__free(plain);
}

/* Batches of two: the pixels of each are blended, or all are of one of the two, or as they were. */
static void one_op_of_two_mixes_a_batch(void **state)
{
    leat_loader_opts o = mix_opts(CROP "; MixUp(1, p=0.5); CutMix(1, unmixed=true)");
    leat_loader_opts plain_opts = base_opts();
    plain_opts.ops = CROP;
    o.batch_size = plain_opts.batch_size = 2;
    rows *plain = load(&plain_opts), *mixed = load(&o);
    uint32_t blended = 0, pasted = 0;

    for (uint32_t i = 0; i < SAMPLES; i++) {
        const uint8_t *a = plain->pixels[i], *b = plain->pixels[i ^ 1], *got = mixed->pixels[i];
        bool whole = true;
        for (uint32_t k = 0; k < PIXELS; k++) whole &= got[k] == a[k] || got[k] == b[k];
        const float own = mixed->soft[i][plain->label[i]];
        if (plain->label[i] != plain->label[i ^ 1]) assert_true(own < 1 && own >= 0);
        *(whole ? &pasted : &blended) += 1;
    }
    assert_true(blended > SAMPLES / 4 && pasted > SAMPLES / 4);
    leat__free(plain);
    leat__free(mixed);
}

static void threads_do_not_matter_and_the_digest_covers_it(void **state)
{
    leat_loader_opts o = mix_opts(CROP "; MixUp()");
    outcome one = run_with(pack_path, &o, 0), other;
    assert_ok(one.rc);
    o.threads = 7;
    other = run_with(pack_path, &o, 0);
    assert_true(one.digest == other.digest);
    o.cache = LEAT_CACHE_PROCESS;
    other = run_with(pack_path, &o, 0);
    assert_true(one.digest == other.digest);
    o.ops = CROP "; CutMix()";
    other = run_with(pack_path, &o, 0);
    assert_true(one.digest != other.digest);
    o = base_opts();
    o.ops = CROP;
    other = run_with(pack_path, &o, 0);
    assert_true(one.digest != other.digest);
    o = mix_opts(CROP "; MixUp()");
    o.seed++;
    other = run_with(pack_path, &o, 0);
    assert_true(one.digest != other.digest);
}

/* A state in the middle of a batch: the rest of it is what it would have been. */
static void resumes_in_the_middle_of_a_batch(void **state)
{
    leat_loader_opts o = mix_opts(CROP "; MixUp()");
    leat_error err = {0};
    rows *whole = load(&o);

    for (uint64_t cut = 1; cut < SAMPLES; cut += 11) {
        leat_loader *l;
        leat_batch *b;
        char text[1024];
        size_t size;
        assert_ok(leat_loader_open(&l, pack_path, &o, &err));
        assert_ok(leat_loader_begin(l, 3, &err));
        for (uint64_t got = 0; got < cut; got += BATCH) {
            assert_ok(leat_loader_next(l, &b, -1, &err));
            leat_batch_release(&b);
        }
        assert_ok(leat_loader_state(l, cut, text, sizeof text, &size, &err));
        leat_loader_close(&l);
        assert_ok(leat_loader_open(&l, pack_path, &o, &err));
        assert_ok(leat_loader_restore(l, text, &err));
        assert_ok(leat_loader_next(l, &b, -1, &err));
        assert_int_equal(b->position, cut);
        assert_int_equal(b->rows, LEAT_MIN(SAMPLES, (cut / BATCH + 1) * BATCH) - cut);
        assert_memory_equal(field_of(b, "image")->data, whole->pixels[cut], (size_t)b->samples * PIXELS);
        leat_batch_release(&b);
        rows *rest = leat__zalloc(LEAT__MEM_MISC, sizeof *rest);
        collect(rest, l);
        assert_memory_equal(rest->pixels, whole->pixels[SAMPLES - rest->samples],
                            (size_t)rest->samples * PIXELS);
        assert_memory_equal(rest->soft, whole->soft[SAMPLES - rest->samples],
                            rest->samples * sizeof rest->soft[0]);
        leat__free(rest);
        leat_loader_close(&l);
    }
    leat__free(whole);
}

/* Skipped rows are not mixed in, and resuming past them counts them once. */
static void skipped_samples_are_left_out_before_mixing(void **state)
{
    const char *path = "mixing_bad.leat";
    tiny_pack(path, &(tiny_opts){.samples = SAMPLES, .classes = CLASSES, .bad_every = 9});
    leat_loader_opts o = mix_opts(CROP "; MixUp()");
    leat_loader *l;
    leat_batch *b;
    leat_error err = {0};
    char text[1024];
    size_t size;
    o.on_error = LEAT_ON_ERROR_SKIP;
    outcome a = run_with(path, &o, 0);
    assert_ok(a.rc);
    assert_true(a.bad > 0 && a.samples == SAMPLES - a.bad);
    outcome again = {0};
    assert_ok(leat_loader_open(&l, path, &o, &err));
    assert_ok(leat_loader_next(l, &b, -1, &err));
    const uint32_t first = 7;
    for (uint32_t i = 0, row = 0; row < first; row++) {
        bool bad = i >= b->samples; /* rows of the order that came, by their ids */
        uint64_t id;
        assert_ok(leat_loader_sample_at(l, 0, row, &id, &err));
        bad |= b->sample_ids[i] != id;
        if (bad) {
            again.bad++;
            continue;
        }
        uint64_t pair[2] = {again.digest, b->sample_hash[i++]};
        again.digest = leat__hash64(pair, sizeof pair, 0);
        again.samples++;
    }
    leat_batch_release(&b);
    assert_ok(leat_loader_state(l, first, text, sizeof text, &size, &err));
    leat_loader_close(&l);
    assert_ok(leat_loader_open(&l, path, &o, &err));
    assert_ok(leat_loader_restore(l, text, &err));
    drain(l, &again);
    assert_ok(again.rc);
    assert_true(again.digest == a.digest && again.samples == a.samples && again.bad == a.bad);
    leat_loader_close(&l);
    unlink(path);
}

static void refused(leat_loader_opts o, const char *why)
{
    leat_loader *l;
    leat_error err = {0};
    assert_code(LEAT_EINVAL, leat_loader_open(&l, pack_path, &o, &err));
    assert_contains(err.message, why);
}

static void what_cannot_be_mixed_is_refused(void **state)
{
    leat_loader_opts o = mix_opts(CROP "; MixUp()");
    o.classes = 0; /* the pack has no class names */
    refused(o, "number of classes");
    o.label = "nothing";
    refused(o, "'nothing' is not an int field");
    o = mix_opts(CROP "; MixUp()");
    o.fields = (const char *const[]){"image"};
    o.field_count = 1;
    refused(o, "must be among fields");
    o = mix_opts(CROP "; MixUp(); CutMix()");
    o.mix_labels = LEAT_MIX_LABELS_PAIRS;
    refused(o, "classes has no effect");
    o.classes = 0;
    refused(o, "one partner");
    o = mix_opts(CROP "; MixUp(unmixed=true); CutMix()");
    refused(o, "MixUp: unmixed has no effect");
    o = mix_opts(CROP);
    refused(o, "classes has no effect");
    o.classes = 0;
    o.label = "label";
    refused(o, "label has no effect");
    o.label = NULL;
    o.mix_labels = LEAT_MIX_LABELS_SOFT;
    refused(o, "mix_labels has no effect");
    o.mix_labels = (leat_mix_labels)9;
    refused(o, "not a valid form");
    o = mix_opts(NULL);
    o.images =
        (const leat_loader_image[]){{.name = "a", .ops = CROP "; MixUp()"}, {.name = "b", .ops = CROP}};
    o.image_count = 2;
    refused(o, "must end with the same");
    o.images = (const leat_loader_image[]){{.name = "a", .ops = CROP "; CutMix()"},
                                           {.name = "b", .ops = "Resize((8, 8)); CutMix()"}};
    refused(o, "must end with the same");
}

static void a_label_out_of_range_is_a_bad_sample(void **state)
{
    leat_loader_opts o = mix_opts(CROP "; MixUp()");
    o.classes = CLASSES - 1;
    outcome a = run_with(pack_path, &o, 0);
    assert_int_equal(a.rc, LEAT_EDATA);
    assert_contains(a.err.message, "label 4 is not one of 4 classes");
    o.on_error = LEAT_ON_ERROR_SKIP;
    a = run_with(pack_path, &o, 0);
    assert_ok(a.rc);
    assert_int_equal(a.bad, SAMPLES / CLASSES);
}

static void views_are_mixed_alike(void **state)
{
    leat_loader_opts o = mix_opts(NULL);
    leat_loader *l;
    leat_batch *b;
    leat_error err = {0};
    o.images = (const leat_loader_image[]){{.name = "a", .ops = "Resize((24, 24)); MixUp()"},
                                           {.name = "b", .ops = "Resize((24, 24)); MixUp()"}};
    o.image_count = 2;
    assert_ok(leat_loader_open(&l, pack_path, &o, &err));
    assert_ok(leat_loader_next(l, &b, -1, &err));
    assert_memory_equal(b->fields[0].data, b->fields[1].data, (size_t)b->samples * PIXELS);
    leat_batch_release(&b);
    leat_loader_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixed_batches_equal_their_reference),
        cmocka_unit_test(one_op_of_two_mixes_a_batch),
        cmocka_unit_test(one_op_of_two_mixes_a_batch),
        cmocka_unit_test(threads_do_not_matter_and_the_digest_covers_it),
        cmocka_unit_test(resumes_in_the_middle_of_a_batch),
        cmocka_unit_test(skipped_samples_are_left_out_before_mixing),
        cmocka_unit_test(what_cannot_be_mixed_is_refused),
        cmocka_unit_test(a_label_out_of_range_is_a_bad_sample),
        cmocka_unit_test(views_are_mixed_alike),
    };
    return cmocka_run_group_tests(tests, make_pack, drop_pack);
}
