/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs pipelines for check_ops.py, which compares them with Pillow and torchvision. Requests are
 * read from standard input, results written to standard output:
 *
 *   in:  "W H C seed epoch sample orientation cpu_mask text_bytes\n", text, W*H*C interleaved
 *        (C = 0: an encoded file of W bytes follows instead)
 *   out: "rc bytes json_bytes\n", output, JSON of the recipe (or of the error message)
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "codec/planes.h"
#include "codec/raw.h"
#include "op/op.h"
#include "op/pipeline.h"
#include "probe/cpu.h"

typedef struct request {
    uint32_t width, height, channels, orientation, cpu_mask;
    leat__draw_key key;
    char text[4096];
    uint8_t *pixels;
} request;

static bool read_request(request *q)
{
    unsigned long text;
    if (scanf("%" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNx32
              " %lu",
              &q->width, &q->height, &q->channels, &q->key.seed, &q->key.epoch, &q->key.sample,
              &q->orientation, &q->cpu_mask, &text) != 9)
        return false;
    if (getchar() != '\n' || text >= sizeof q->text) return false;
    if (fread(q->text, 1, text, stdin) != text) return false;
    q->text[text] = '\0';
    const size_t bytes = q->channels ? (size_t)q->width * q->height * q->channels : q->width;
    q->pixels = leat__zalloc(LEAT__MEM_MISC, bytes + LEAT__CODEC_PADDING);
    return q->pixels && fread(q->pixels, 1, bytes, stdin) == bytes;
}

static void write_recipe(const leat__recipe *r, leat__buf *out)
{
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_array(&j);
    for (uint32_t i = 0; i < r->count; i++) {
        const leat__step *const s = &r->step[i];
        leat__json_object(&j);
        leat__json_kstr(&j, "kind", leat__step_name(s->kind));
        leat__json_ki64(&j, "x", s->x);
        leat__json_ki64(&j, "y", s->y);
        leat__json_ku64(&j, "width", s->width);
        leat__json_ku64(&j, "height", s->height);
        leat__json_ki64(&j, "filter", s->filter);
        leat__json_ki64(&j, "edge", s->edge);
        leat__json_kbool(&j, "noise", s->noise);
        leat__json_kdouble(&j, "amount", s->amount);
        leat__json_ku64(&j, "seed", s->noise_seed);
        leat__json_key(&j, "fill");
        leat__json_array(&j);
        for (int c = 0; c < 3; c++) leat__json_double(&j, s->fill[c]);
        leat__json_end(&j);
        leat__json_key(&j, "matrix");
        leat__json_array(&j);
        for (int c = 0; c < 8; c++) leat__json_double(&j, s->matrix[c]);
        leat__json_end(&j);
        leat__json_end(&j);
    }
    leat__json_end(&j);
}

/* Through the raw codec, so that regions, orientation and streaming are part of the test. */
static int encode(const request *q, leat__buf *raw, leat_error *err)
{
    leat__planes im = {0};
    int rc;
    LEAT_GO(rc, out, leat__planes_resize(&im, q->width, q->height, q->channels, err));
    for (uint32_t y = 0; y < q->height; y++) {
        uint8_t *row[4];
        for (int c = 0; c < 4; c++) row[c] = im.plane[c] ? im.plane[c] + y * im.stride : NULL;
        leat__planar_split(q->pixels + (size_t)y * q->width * q->channels, q->width, q->channels, row);
    }
    LEAT_GO(rc, out, leat__raw_encode(&im, &(leat__encode_opts){0}, raw, err));
out:
    leat__planes_reset(&im);
    return rc;
}

static int run(const request *q, leat__buf *out, leat__buf *json, leat_error *err)
{
    leat__pipeline *p = NULL;
    leat__pipeline_worker *w = NULL;
    leat__buf raw;
    leat__image_info info;
    leat__recipe *recipe = LEAT_NEW(MISC, leat__recipe);
    int rc;
    leat__buf_init(&raw, LEAT__MEM_MISC, SIZE_MAX);
    LEAT_GO(rc, out, recipe ? 0 : LEAT_ENOMEM);
    if (q->channels) LEAT_GO(rc, out, encode(q, &raw, err));
    else LEAT_GO(rc, out, leat__buf_append(&raw, q->pixels, q->width));
    const size_t len = raw.len;
    LEAT_GO(rc, out, leat__buf_zeros(&raw, LEAT__CODEC_PADDING));
    const uint8_t *const data = (const uint8_t *)raw.data;
    LEAT_GO(rc, out, leat__codec_probe(leat__codec_sniff(data, len), data, len, &info, err));
    LEAT_GO(rc, out, leat__pipeline_open(&p, &(leat__pipeline_opts){.ops = q->text}, err));
    LEAT_GO(rc, out, leat__pipeline_worker_open(&w, err));
    const leat__encoded e = {.info = &info, .data = data, .len = len, .orientation = q->orientation};
    LEAT_GO(rc, out, leat__buf_zeros(out, leat__pipeline_output(p)->bytes));
    LEAT_GO(rc, out, leat__pipeline_run(p, w, &e, &q->key, out->data, err));
    const bool turned = q->orientation >= 5;
    LEAT_GO(rc, out,
            leat__pipeline_draw(p, &q->key, turned ? info.height : info.width,
                                turned ? info.width : info.height, recipe, err));
    write_recipe(recipe, json);
out:
    leat__free(recipe);
    leat__buf_reset(&raw);
    leat__pipeline_worker_close(&w);
    leat__pipeline_close(&p);
    return rc;
}

int main(void)
{
    request q = {0};
    leat__buf out, json;
    leat__buf_init(&out, LEAT__MEM_MISC, SIZE_MAX);
    leat__buf_init(&json, LEAT__MEM_MISC, SIZE_MAX);
    while (read_request(&q)) {
        leat_error err = {0};
        leat__buf_clear(&out);
        leat__buf_clear(&json);
        leat__cpu_mask(q.cpu_mask);
        const int rc = run(&q, &out, &json, &err);
        if (rc != 0) {
            leat__buf_clear(&out);
            leat__buf_puts(&json, err.message);
        }
        printf("%d %zu %zu\n", rc, out.len, json.len);
        fwrite(leat__buf_str(&out), 1, out.len, stdout);
        fwrite(leat__buf_str(&json), 1, json.len, stdout);
        fflush(stdout);
        leat__free(q.pixels);
        q.pixels = NULL;
    }
    leat__free(q.pixels);
    leat__buf_reset(&out);
    leat__buf_reset(&json);
    return 0;
}
