/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures decoding and augmenting alone. Threads loop over a set of samples in memory, each with its own
 * scratch memory, until the time is over; they share only the samples.
 */
#include "doctor/work.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/thread.h"
#include "codec/tile/tile.h"
#include "doctor/judge.h"
#include "doctor/sample_pack.h"
#include "doctor/variant.h"
#include "loader/defaults.h"
#include "op/pipeline.h"

#include <leat/op.h>

#define SET_SAMPLES 256u
#define SET_BYTES (UINT64_C(64) << 20)
#define THREADS_MAX 256u
#define PRICE_PART 0.03 /* share of the total time for each measurement of a cost */
#define PRICE_ROUNDS 5
#define PRICE_ROUNDS_MAX 11
/* spread of the middle half of the ratios: more rounds would not help */
#define PRICE_SPREAD 0.03
#define READ_PER_S 8e9 /* maximum bytes per second that one thread reads */
#define SMALL_BATCH 16u
#define COSTLY_SAMPLE_S 5e-3          /* above this, the cost of batches and copies is not visible */
#define PRICE_BATCHES 12              /* minimum batches of one measurement */
#define CHECK_NS (LEAT_NS_PER_S / 50) /* between checks of the time limit */
#define WORTH_MOVING 0.2 /* share of CPU time, of augmentation that is worth moving to a device */

/* ---- Pipeline texts ---- */

/* Returns the length of the op at the start of a text, up to ';', a comment or the end of the line.
 * Nested ops are in parentheses. */
static size_t op_len(const char *text)
{
    size_t n = 0;
    for (int depth = 0; text[n] != '\0'; n++) {
        if (strchr("([", text[n]) != NULL) depth++;
        if (strchr(")]", text[n]) != NULL) depth--;
        if (depth <= 0 && strchr(";\n#", text[n]) != NULL) break;
        if (text[n] == '#') n += strcspn(text + n, "\n") - 1;
    }
    return n;
}

static bool resizes(const char *text, size_t len)
{
    static const char *const words[] = {"Crop", "Resize", "ScaleJitter", "ShortestSize"};
    for (size_t i = 0; i < LEAT_COUNT(words); i++)
        if (memmem(text, len, words[i], strlen(words[i])) != NULL) return true;
    return false;
}

static bool op_kept(const char *name, size_t len, size_t op_bytes, leat__ops_part part)
{
    leat_op_info info;
    for (uint32_t i = 0; leat_op_info_at(i, &info) == 0; i++) {
        if (strlen(info.name) != len || strncmp(info.name, name, len) != 0) continue;
        if (part == LEAT__OPS_PLAIN_U8)
            return strcmp(info.name, "Normalize") != 0 && strcmp(info.name, "ToDtype") != 0;
        if (info.kind == LEAT_OP_OUTPUT) return true;
        return info.kind == LEAT_OP_COMBINE ? resizes(name, op_bytes) : resizes(name, len);
    }
    return true;
}

int leat__ops_strip(const char *ops, leat__ops_part part, leat__buf *out)
{
    while (*ops != '\0') {
        ops += strspn(ops, " \t\n;");
        if (*ops == '#') {
            ops += strcspn(ops, "\n");
            continue;
        }
        size_t len = op_len(ops), name = strspn(ops, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                     "abcdefghijklmnopqrstuvwxyz0123456789_");
        if (len > 0 && op_kept(ops, name, len, part)) {
            if (out->len > 0) leat__buf_puts(out, "; ");
            leat__buf_append(out, ops, len);
        }
        ops += len;
    }
    return leat__buf_status(out);
}

double leat__augment_share(double whole_s, double crop_s)
{
    if (whole_s <= 0 || crop_s < 0) return -1;
    return LEAT_MIN(1.0, LEAT_MAX(0.0, 1 - crop_s / whole_s));
}

/* ---- Running pipelines over a set ---- */

typedef struct crew {
    const leat__set *set;
    leat__pipeline *const *pipelines; /* one per image of a sample */
    uint32_t pipeline_count;
    uint64_t until_ns;
    uint64_t out_bytes;
    const atomic_bool *stop;
    atomic_bool done;
    leat__thread thread;
    uint32_t first;   /* first sample */
    uint64_t samples; /* samples done */
    uint64_t cpu_ns;
    int rc;
    leat_error err;
} crew;

static int do_sample(const crew *c, const leat__set_sample *s, leat__pipeline_worker *w, void *out,
                     leat_error *err)
{
    /* like the loader: verify every sample */
    if (leat__hash64(s->data, s->len, 0) == 1) return 0;
    for (uint32_t p = 0; p < c->pipeline_count; p++) {
        leat__encoded image = {.info = &s->info,
                               .data = s->data,
                               .len = s->len,
                               .tables = c->set->tables,
                               .orientation = s->info.orientation,
                               .entries = s->entries,
                               .entries_len = s->entries_len};
        leat__draw_key key = {.seed = p, .epoch = c->samples, .sample = s->id};
        LEAT_TRY(leat__pipeline_run(c->pipelines[p], w, &image, &key, out, err));
    }
    return 0;
}

static void crew_main(void *arg)
{
    crew *c = arg;
    leat__pipeline_worker *w = NULL;
    void *out = leat__alloc_aligned(LEAT__MEM_DOCTOR, c->out_bytes + 64, 64);
    uint64_t cpu = leat__clock_thread_ns();

    c->rc = out == NULL ? leat__fail_nomem(&c->err, c->out_bytes, "a sample")
                        : leat__pipeline_worker_open(&w, &c->err);
    for (uint32_t i = c->first; c->rc == 0 && (c->samples == 0 || leat__clock_ns() < c->until_ns); i++) {
        if (atomic_load(c->stop)) break;
        const leat__set_sample *s = &c->set->sample[i % c->set->count];
        int rc = do_sample(c, s, w, out, &c->err);
        if (rc == LEAT_ENOMEM) c->rc = rc; /* the cost of a damaged sample counts too */
        c->samples++;
    }
    c->cpu_ns = leat__clock_thread_ns() - cpu;
    leat__pipeline_worker_close(&w);
    leat__free(out);
    atomic_store(&c->done, true);
}

typedef struct pace {
    double per_s;
    double cpu_s; /* CPU seconds per sample */
} pace;

/* Waits for all threads; checks the time limit meanwhile and stops them when it ends. */
static int watch_crew(const crew *c, uint32_t threads, const leat__time_limit *limit, atomic_bool *stop,
                      leat_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < threads;) {
        if (atomic_load(&c[i].done)) {
            i++;
            continue;
        }
        if (rc == 0 && (rc = leat__time_check(limit, err)) != 0) atomic_store(stop, true);
        leat__sleep_ns(CHECK_NS);
    }
    return rc == LEAT_ETIMEDOUT ? 0 : rc; /* a shorter measurement is also valid */
}

/* Returns the bytes that the pipeline makes of a sample: the maximum, and *mean. If that depends on
 * the image, uses the largest possible size, rotated or not. */
static uint64_t output_bytes(const leat__set *set, const leat__pipeline *p, double *mean)
{
    uint64_t most = leat__pipeline_output(p)->bytes;
    double sum = 0;

    *mean = (double)most;
    if (most > 0) return most;
    for (uint32_t i = 0; i < set->count; i++) {
        const leat__image_info *info = &set->sample[i].info;
        uint32_t width, height;
        leat__pipeline_reach(p, info->width, info->height, &width, &height);
        uint64_t bytes = leat__pipeline_output_of(p, width, height).bytes;
        sum += (double)bytes;
        leat__pipeline_reach(p, info->height, info->width, &width, &height);
        bytes = LEAT_MAX(bytes, leat__pipeline_output_of(p, width, height).bytes);
        most = LEAT_MAX(most, bytes);
    }
    *mean = sum / LEAT_MAX(set->count, 1u);
    return most;
}

static int run_crew(const leat__set *set, leat__pipeline *const *pipelines, uint32_t n, uint32_t threads,
                    double seconds, pace *out, leat_error *err)
{
    atomic_bool stop = false;
    uint32_t started = 0;
    crew *c = LEAT_NEW_ARRAY(DOCTOR, crew, threads);
    uint64_t begin = leat__clock_ns(), samples = 0, cpu = 0, bytes = 0;
    int rc = c == NULL ? leat__fail_nomem(err, threads * sizeof *c, "threads") : 0;

    for (uint32_t p = 0; p < n; p++) {
        double mean;
        bytes = LEAT_MAX(bytes, output_bytes(set, pipelines[p], &mean));
    }
    for (uint32_t i = 0; i < threads && rc == 0; i++) {
        c[i] = (crew){.set = set,
                      .pipelines = pipelines,
                      .pipeline_count = n,
                      .until_ns = begin + (uint64_t)(seconds * 1e9),
                      .out_bytes = bytes,
                      .first = set->count * i / threads,
                      .stop = &stop};
        rc = leat__thread_start(&c[i].thread, "leat-doctor", crew_main, &c[i], err);
        started += rc == 0;
    }
    if (rc == 0) rc = watch_crew(c, started, set->limit, &stop, err);
    if (rc != 0) atomic_store(&stop, true);
    for (uint32_t i = 0; c != NULL && i < threads; i++) {
        leat__thread_join(&c[i].thread);
        samples += c[i].samples;
        cpu += c[i].cpu_ns;
        if (rc == 0 && c[i].rc != 0) {
            rc = c[i].rc;
            *err = c[i].err;
        }
    }
    double passed = (double)(leat__clock_ns() - begin) / 1e9;
    leat__free(c);
    /* stopped before a sample was finished */
    out->per_s = passed > 0 && samples > 0 ? (double)samples / passed : -1;
    out->cpu_s = samples > 0 ? (double)cpu / 1e9 / (double)samples : -1;
    return rc;
}

/* ---- The user's pipelines ---- */

typedef struct pipes {
    leat__pipeline **at;
    char **text; /* their source texts */
    uint32_t count;
} pipes;

static void pipes_close(pipes *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        leat__pipeline_close(&p->at[i]);
        leat__free(p->text[i]);
    }
    leat__free(p->at);
    leat__free(p->text);
    *p = (pipes){0};
}

/* Copies the text of one image; with `strip`, only `part` of it. */
static int text_of(const leat_loader_opts *opts, uint32_t i, bool strip, leat__ops_part part, char **text,
                   leat_error *err)
{
    const char *ops = opts->image_count > 0 ? opts->images[i].ops : opts->ops;
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_DOCTOR, 65536);
    if (ops == NULL) ops = LEAT__DEFAULT_OPS;
    if (strip) (void)leat__ops_strip(ops, part, &out); /* the buffer records the failure */
    else leat__buf_puts(&out, ops);
    int rc = leat__buf_status(&out);
    *text = leat__buf_take(&out, NULL);
    return rc != 0 || *text == NULL ? leat__fail_nomem(err, strlen(ops), "a pipeline") : 0;
}

/* Returns the kind of pixels of a set, whose images are all of one kind. */
static leat__pixel_kind kind_of(const leat__set *set)
{
    const leat__image_info *const info = &set->sample[0].info;
    return leat__image_wide(info) ? (leat__pixel_kind){info->type, info->channels} : (leat__pixel_kind){0};
}

/* Opens the pipelines of all images of the options. */
static int pipes_open(pipes *p, const leat__set *set, const leat_loader_opts *opts, bool strip,
                      leat__ops_part part, leat_error *err)
{
    uint32_t n = opts->image_count > 0 ? opts->image_count : 1;
    int rc = 0;

    *p =
        (pipes){.at = LEAT_NEW_ARRAY(DOCTOR, leat__pipeline *, n), .text = LEAT_NEW_ARRAY(DOCTOR, char *, n)};
    if (p->at == NULL || p->text == NULL) rc = leat__fail_nomem(err, n * sizeof *p->at, "pipelines");
    for (uint32_t i = 0; i < n && rc == 0; i++, p->count++) {
        rc = text_of(opts, i, strip, part, &p->text[i], err);
        leat__pipeline_opts o = {
            .ops = p->text[i], .view = i, .any_size = opts->collate != 0, .kind = kind_of(set)};
        if (rc == 0) rc = leat__pipeline_open(&p->at[i], &o, err);
    }
    if (rc != 0) pipes_close(p);
    return rc;
}

/* ---- Options ---- */

static void add_option(leat_doctor_facts *f, const char *action, const char *set, double cpu_all,
                       double sample_bytes, double out_bytes, double spread)
{
    if (f->option_count == LEAT_DOCTOR_OPTIONS) return;
    leat_doctor_option *o = &f->options[f->option_count++];
    *o = (leat_doctor_option){.cpu_all = cpu_all,
                              .sample_bytes = sample_bytes,
                              .out_bytes = out_bytes,
                              .whole = 1,
                              .spread = spread};
    snprintf(o->action, sizeof o->action, "%s", action);
    snprintf(o->set, sizeof o->set, "%s", set);
}

/* Each option changes one thing and is compared with the same samples unchanged. Its gain is the CPU
 * time that it saves. */
typedef struct pricing {
    leat_loader_opts *opts; /* the user's options, with batches small enough to be measured */
    uint32_t threads;
    double seconds;  /* seconds per measurement */
    double sample_s; /* CPU seconds of one sample */
    const leat__sample_pack *now;
    leat_doctor_facts *f;
} pricing;

/* Skips and counts a cost that cannot be measured in the time left. */
static int or_skipped(const pricing *p, int rc)
{
    if (rc != LEAT_ETIMEDOUT) return rc;
    p->f->skipped = or_else(p->f->skipped, 0) + 1;
    return 0;
}

/* Returns the maximum bytes that one measurement reads: repeating samples beyond that is useless. */
static double bytes_read(const pricing *p)
{
    if (p->sample_s > COSTLY_SAMPLE_S) return 0; /* caches do not matter for costly samples: read each once */
    return READ_PER_S * p->seconds * p->threads;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Compares the CPU seconds of two variants of a sample, measured alternately, until half of the
 * comparisons agree. The second is from another pack, or made with other options or texts. A short
 * disturbance spoils one comparison; a longer one slows both variants. */
typedef struct comparison {
    double ratio;  /* was / is, median */
    double is;     /* CPU seconds of the second variant */
    double spread; /* of the middle half; or the difference to wall-clock time, if waits that cost no CPU time
                      make it larger */
    double ratios[PRICE_ROUNDS_MAX], by_clock[PRICE_ROUNDS_MAX];
    uint32_t rounds;
} comparison;

static bool settled(comparison *c)
{
    uint32_t n = c->rounds;
    qsort(c->ratios, n, sizeof c->ratios[0], by_value);
    qsort(c->by_clock, n, sizeof c->by_clock[0], by_value);
    c->ratio = c->ratios[n / 2];
    double spread = (c->ratios[n - 1 - n / 4] - c->ratios[n / 4]) / c->ratio;
    c->spread = LEAT_MAX(spread, leat__doctor_apart(c->ratio, c->by_clock[n / 2]));
    return n == PRICE_ROUNDS_MAX || (n >= PRICE_ROUNDS && spread < PRICE_SPREAD);
}

static int compare(const pricing *p, const leat__sample_pack *then, const leat_loader_opts *opts,
                   const char *const *ops, comparison *c, leat_error *err)
{
    leat__sample_load *a = NULL, *b = NULL;
    double was, is, was_clock, is_clock;
    int rc;

    *c = (comparison){0};
    LEAT_GO(rc, out, leat__sample_load_open(&a, p->now, p->opts, NULL, p->threads, err));
    LEAT_GO(rc, out, leat__sample_load_open(&b, then, opts, ops, p->threads, err));
    LEAT_GO(rc, out, leat__sample_load_cost(a, p->seconds, &was, &was_clock, err)); /* warm-up */
    LEAT_GO(rc, out, leat__sample_load_cost(b, p->seconds, &is, &is_clock, err));
    do {
        LEAT_GO(rc, out, leat__sample_load_cost(a, p->seconds, &was, &was_clock, err));
        LEAT_GO(rc, out, leat__sample_load_cost(b, p->seconds, &is, &is_clock, err));
        c->is = c->rounds == 0 ? is : LEAT_MIN(c->is, is);
        c->by_clock[c->rounds] = was_clock / is_clock;
        c->ratios[c->rounds++] = was / is;
    } while (!settled(c));
out:
    leat__sample_load_close(&b);
    leat__sample_load_close(&a);
    return rc;
}

static int price(const pricing *p, const leat__sample_pack *then, const char *const *ops, const char *action,
                 const char *set, double sample_bytes, double out_bytes, leat_error *err)
{
    comparison c;
    LEAT_TRY(compare(p, then, p->opts, ops, &c, err));
    add_option(p->f, action, set, p->f->cpu_all * c.ratio, sample_bytes, out_bytes, c.spread);
    return 0;
}

/* Compares small batches with larger ones: the fixed cost of a batch. */
static int price_batch(const pricing *p, leat_error *err)
{
    leat_loader_opts opts = *p->opts;
    double batch = opts.batch_size, larger = leat__larger_batch(batch);
    comparison c;

    if (batch > SMALL_BATCH || !known(p->f->loader) || p->sample_s > COSTLY_SAMPLE_S) return 0;
    opts.batch_size = (uint32_t)larger;
    LEAT_TRY(compare(p, p->now, &opts, NULL, &c, err));
    p->f->larger = p->f->loader * c.ratio;
    p->f->handover_us = 1e6 * LEAT_MAX(0.0, c.ratio - 1) * c.is / (1 / batch - 1 / larger);
    return 0;
}

/* Measures the same samples stored in other ways. */
static int price_variants(const pricing *p, const leat__set *set, leat_error *err)
{
    /* the most useful variants first, in case the time ends: large images gain most from shrinking */
    static const uint32_t turns[LEAT__VARIANTS] = {LEAT__VARIANT_SMALLER, LEAT__VARIANT_TILED,
                                                   LEAT__VARIANT_RAW, LEAT__VARIANT_MIX,
                                                   LEAT__VARIANT_QUALITY};
    double before = leat__set_bytes(set);
    for (uint32_t i = 0; i < LEAT__VARIANTS; i++) {
        uint32_t v = turns[i];
        leat__set other = {0};
        leat__sample_pack *then = NULL;
        char action[128];
        int rc = leat__variant_make(v, set, or_else(p->f->out_pixels, 0), &other, action, sizeof action, err);
        if (rc == 0 && other.count > 0) {
            double after = or_else(p->f->sample_bytes, before) * leat__set_bytes(&other) / before;
            rc = leat__sample_pack_open(&then, &other, bytes_read(p), err);
            if (rc == 0) rc = price(p, then, NULL, action, "", after, -1, err);
        }
        leat__sample_pack_close(&then);
        leat__set_reset(&other);
        LEAT_TRY(or_skipped(p, rc));
    }
    return 0;
}

/* Writes the pipeline's text with `dtype` instead of f32; returns false when it has no f32. */
static bool with_dtype(const char *ops, const char *dtype, leat__buf *out)
{
    static const char *const names[] = {"ToDtype(f32)", "ToDtype(float32)"};
    for (size_t i = 0; i < LEAT_COUNT(names); i++) {
        const char *at = strstr(ops, names[i]);
        if (at == NULL) continue;
        leat__buf_printf(out, "%.*sToDtype(%s)%s", (int)(at - ops), ops, dtype, at + strlen(names[i]));
        return leat__buf_status(out) == 0;
    }
    return false;
}

/* Measures the same samples delivered in fewer bytes. */
static int price_bytes_out(const pricing *p, leat_error *err)
{
    const char *ops = p->opts->image_count > 0 ? p->opts->images[0].ops : p->opts->ops, *text;
    leat__pipeline *plain = NULL;
    leat__buf u8, f16;
    int rc = 0;

    leat__buf_init(&u8, LEAT__MEM_DOCTOR, 65536);
    leat__buf_init(&f16, LEAT__MEM_DOCTOR, 65536);
    if (ops == NULL || p->opts->image_count > 1) goto out;
    if (leat__ops_strip(ops, LEAT__OPS_PLAIN_U8, &u8) != 0) goto out;
    text = leat__buf_str(&u8);
    leat__pipeline_opts o = {.ops = text};
    if (leat__pipeline_open(&plain, &o, NULL) != 0) goto out;
    double bytes = (double)leat__pipeline_output(plain)->bytes;
    if (bytes >= p->f->out_bytes) goto out;
    LEAT_GO(rc, out,
            price(p, p->now, &text, "deliver u8 and normalise on the GPU", "dtype=u8", -1, bytes, err));
    if (!with_dtype(ops, "f16", &f16)) goto out;
    text = leat__buf_str(&f16);
    rc = price(p, p->now, &text, "deliver f16, the type that mixed precision computes with", "dtype=f16", -1,
               p->f->out_bytes / 2, err);
out:
    leat__pipeline_close(&plain);
    leat__buf_reset(&f16);
    leat__buf_reset(&u8);
    return rc;
}

/* Measures the same samples with crops and resizes only, without the augmentation after them. */
static int price_crop(const pricing *p, const pipes *crop, leat_error *err)
{
    char action[128];
    double share = or_else(p->f->augment_share, 0);
    if (share < WORTH_MOVING) return 0;
    snprintf(action, sizeof action,
             "move the augmentation after the crop to the GPU, or drop it: it is %.0f %% of the CPU time",
             100 * share);
    return price(p, p->now, (const char *const *)crop->text, action, "", -1, -1, err);
}

/* Measures all options on a leading part of the samples. */
static int price_all(pricing *p, const leat__set *set, const pipes *crop, leat_error *err)
{
    leat__sample_pack *now = NULL;
    leat__set part = *set;
    int rc;

    part.count = leat__variant_part(set);
    rc = leat__sample_pack_open(&now, &part, bytes_read(p), err);
    if (rc != 0 && rc != LEAT_ENOMEM && rc != LEAT_ECANCELED && rc != LEAT_ETIMEDOUT) p->f->no_files = 1;
    if (rc != 0) goto out;
    p->now = now;
    LEAT_GO(rc, out, or_skipped(p, price_batch(p, err)));
    LEAT_GO(rc, out, or_skipped(p, price_crop(p, crop, err)));
    LEAT_GO(rc, out, or_skipped(p, price_bytes_out(p, err)));
    rc = price_variants(p, &part, err);
out:
    leat__sample_pack_close(&now);
    return rc;
}

static void describe(const leat__set *set, const pipes *p, leat_doctor_facts *f)
{
    double *const share[LEAT__CODEC_COUNT] = {NULL, &f->jpeg, &f->png, &f->webp, &f->raw, &f->tiled};
    double pixels = 0;
    for (uint32_t c = 1; c < LEAT__CODEC_COUNT; c++)
        if (share[c] != NULL) *share[c] = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const leat__image_info *info = &set->sample[i].info;
        pixels += (double)info->width * info->height;
        if (info->codec < LEAT__CODEC_COUNT && share[info->codec] != NULL)
            *share[info->codec] += 1.0 / set->count;
    }
    for (uint32_t c = 1; c < LEAT__CODEC_COUNT; c++)
        if (share[c] != NULL) *share[c] = LEAT_MIN(1.0, *share[c]);
    f->pixels = pixels / set->count;
    const leat__output_spec *out = leat__pipeline_output(p->at[0]);
    (void)output_bytes(set, p->at[0], &f->out_bytes);
    f->out_pixels = f->out_bytes / (out->channels * leat_dtype_size(out->dtype));
    f->nhwc = out->layout == LEAT__LAYOUT_NHWC;
}

/* ---- Together ---- */

static int measure(const leat__set *set, const leat_loader_opts *opts, const pipes *p, uint32_t threads,
                   double seconds, leat_doctor_facts *f, double *cpu_s, leat_error *err)
{
    pipes crop = {0};
    pace one, all, bare;
    int rc = 0;

    describe(set, p, f);
    LEAT_TRY(run_crew(set, p->at, p->count, threads, seconds * 0.3, &all, err));
    LEAT_TRY(run_crew(set, p->at, p->count, 1, seconds * 0.15, &one, err));
    f->cpu_all = all.per_s;
    f->cpu_one = one.per_s;
    *cpu_s = all.cpu_s;
    if (pipes_open(&crop, set, opts, true, LEAT__OPS_CROP_ONLY, NULL) == 0) {
        LEAT_GO(rc, out, run_crew(set, crop.at, crop.count, 1, seconds * 0.1, &bare, err));
        f->augment_share = leat__augment_share(one.cpu_s, bare.cpu_s);
    }
    if (kind_of(set).channels > 0) goto out; /* remedies are for 8-bit images */
    leat_loader_opts small = *opts;
    double part = seconds * PRICE_PART, fits = part * threads / (PRICE_BATCHES * LEAT_MAX(one.cpu_s, 1e-9));
    small.batch_size = LEAT_MAX(1u, LEAT_MIN(opts->batch_size, (uint32_t)LEAT_MIN(fits, 1e6)));
    pricing how = {.opts = &small, .threads = threads, .seconds = part, .sample_s = one.cpu_s, .f = f};
    rc = or_skipped(&how, price_all(&how, set, &crop, err));
    /* without space for temporary files nothing was measured, which is not an error */
    if (rc != LEAT_ENOMEM && rc != LEAT_ECANCELED) rc = 0;
out:
    pipes_close(&crop);
    return rc;
}

int leat__work_measure(const char *path, const uint64_t *ids, uint64_t count, const leat_loader_opts *opts,
                       uint32_t threads, double seconds, const leat__time_limit *limit, leat_doctor_facts *f,
                       double *cpu_s, leat_error *err)
{
    leat__set set = {0};
    pipes p = {0};
    int rc;

    *cpu_s = -1;
    LEAT_GO(rc, out, leat__set_load(&set, path, ids, count, SET_SAMPLES, SET_BYTES, limit, err));
    if (set.count == 0) goto out; /* no images: nothing to decode */
    LEAT_GO(rc, out, pipes_open(&p, &set, opts, false, 0, err));
    threads = LEAT_MIN(LEAT_MAX(threads, 1u), THREADS_MAX);
    rc = measure(&set, opts, &p, threads, seconds, f, cpu_s, err);
out:
    pipes_close(&p);
    leat__set_reset(&set);
    return rc;
}

int leat__work_estimate(const char *path, const uint64_t *ids, uint64_t count, const leat_loader_opts *opts,
                        const leat__time_limit *limit, double *cpu_s, leat_error *err)
{
    leat__set set = {0};
    pipes p = {0};
    pace one = {-1, -1};
    int rc;

    *cpu_s = -1;
    LEAT_GO(rc, out, leat__set_load(&set, path, ids, count, 1, SET_BYTES, limit, err));
    if (set.count == 0) goto out;
    LEAT_GO(rc, out, pipes_open(&p, &set, opts, false, 0, err));
    LEAT_GO(rc, out, run_crew(&set, p.at, p.count, 1, 0, &one, err));
    *cpu_s = one.cpu_s;
out:
    pipes_close(&p);
    leat__set_reset(&set);
    return rc;
}
