/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans images for a device: see device_plan.h. The region and the blocks are computed by the same
 * functions as on the CPU, so both decode the same tiles and detect the same damage.
 */
#include "op/device_plan.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/num.h"
#include "codec/raster.h"
#include "codec/tile/tile_format.h"
#include "op/compiled.h"
#include "op/head.h"
#include "op/writer.h"
#include "probe/cpu.h"

#define CHUNK_MAX ((size_t)1 << 32)
#define ALIGN 16u
#define PIXELS_MAX UINT64_C(100000000)
#define WINDOW_ROWS 28u
#define LINES_MIN 8u /* fewest lines read at once, if the image has that many */
#define SLACK LEAT__DEVICE_SLACK
#define DRAWS 64u /* draws that an estimate of the device's share looks at */

void leat__device_chunk_init(leat__device_chunk *c)
{
    *c = (leat__device_chunk){.copy = leat__copy_dsp_for(leat__cpu_flags())};
    leat__buf_init(&c->images, LEAT__MEM_SCRATCH, CHUNK_MAX);
    leat__buf_init(&c->tiles, LEAT__MEM_SCRATCH, CHUNK_MAX);
    leat__buf_init(&c->ranges, LEAT__MEM_SCRATCH, CHUNK_MAX);
    leat__buf_init(&c->data, LEAT__MEM_SCRATCH, CHUNK_MAX);
}

void leat__device_chunk_clear(leat__device_chunk *c)
{
    leat__buf_clear(&c->images);
    leat__buf_clear(&c->tiles);
    leat__buf_clear(&c->ranges);
    leat__buf_clear(&c->data);
}

void leat__device_chunk_reset(leat__device_chunk *c)
{
    leat__buf_reset(&c->images);
    leat__buf_reset(&c->tiles);
    leat__buf_reset(&c->ranges);
    leat__buf_reset(&c->data);
}

uint32_t leat__device_chunk_images(const leat__device_chunk *c)
{
    return (uint32_t)(c->images.len / sizeof(leat_job_image));
}

uint32_t leat__device_chunk_tiles(const leat__device_chunk *c)
{
    return (uint32_t)(c->tiles.len / sizeof(leat_job_tile));
}

leat__device_mark leat__device_chunk_mark(const leat__device_chunk *c)
{
    return (leat__device_mark){c->images.len, c->tiles.len, c->ranges.len, c->data.len};
}

void leat__device_chunk_rewind(leat__device_chunk *c, leat__device_mark mark)
{
    c->images.len = mark.images;
    c->tiles.len = mark.tiles;
    c->ranges.len = mark.ranges;
    c->data.len = mark.data;
}

/* ---- capabilities of a device ---- */

static bool knows_filter(leat__filter f)
{
    return f == LEAT__FILTER_NEAREST || f == LEAT__FILTER_BOX || f == LEAT__FILTER_BILINEAR ||
           f == LEAT__FILTER_BICUBIC;
}

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(name, *names) == 0) return true;
    return false;
}

/* Geometry must come first, then colour: steps before the resize stay on the host. Flips may come later, but
 * not after erased rectangles. */
const char *leat__device_refuses(const leat__pipeline *p, const char **op)
{
    static const char *const sizes[] = {"RandomResizedCrop", "Resize", "CenterCrop", "RandomCrop", NULL};
    static const char *const flips[] = {"RandomHorizontalFlip", "RandomVerticalFlip", NULL};
    static const char *const colour[] = {"ColorJitter",        "Grayscale",       "RandomGrayscale",
                                         "RandomInvert",       "RandomPosterize", "RandomSolarize",
                                         "RandomAutocontrast", "RandomEqualize",  NULL};
    const char *first = NULL; /* first op on colours or rectangles */
    bool erased = false;
    for (uint32_t i = 0; i < p->count; i++) {
        const leat__op_def *const def = p->ops[i].def;
        const bool erases = strcmp(def->name, "RandomErasing") == 0;
        *op = def->name;
        if (def->kind == LEAT_OP_OUTPUT || def->kind == LEAT_OP_BATCH) continue;
        if (is_one_of(def->name, flips)) {
            if (erased) return "after RandomErasing runs on the host: put it before";
        } else if (is_one_of(def->name, sizes)) {
            if (first != NULL) *op = first;
            if (first != NULL) return "before a resize or crop runs on the host: put it after";
        } else if (!erases && !is_one_of(def->name, colour)) {
            return "runs on the host";
        } else if (first == NULL) {
            first = def->name;
        }
        erased |= erases;
    }
    *op = NULL;
    return NULL;
}

uint32_t leat__device_dtype(leat_dtype dtype)
{
    switch (dtype) {
    case LEAT_DTYPE_F16: return LEAT_JOB_F16;
    case LEAT_DTYPE_BF16: return LEAT_JOB_BF16;
    case LEAT_DTYPE_F32: return LEAT_JOB_F32;
    default: return LEAT_JOB_U8;
    }
}

void leat__device_output(const leat__pipeline *p, leat_job_output *out)
{
    const leat__output_spec *const spec = &p->output;
    *out = (leat_job_output){.width = spec->width,
                             .height = spec->height,
                             .channels = spec->channels,
                             .dtype = leat__device_dtype(spec->dtype),
                             .nhwc = spec->layout == LEAT__LAYOUT_NHWC};
    for (uint32_t c = 0; c < 3; c++) {
        memcpy(out->f32[c], p->norm[c].f32, sizeof out->f32[c]);
        memcpy(out->f16[c], spec->dtype == LEAT_DTYPE_BF16 ? p->norm[c].bf16 : p->norm[c].f16,
               sizeof out->f16[c]);
    }
}

/* ---- one image ---- */

static uint64_t room(uint64_t *at, uint64_t bytes)
{
    const uint64_t start = *at;
    *at += (bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
    return start;
}

/* Plans one axis. `lo` is the first input of the region; `lead` inputs precede it in its first word. Reserves
 * the axis's tables in *work. False when the device does not support it. */
static bool plan_axis(leat_job_axis *a, const leat__axis_request *q, uint32_t lo, uint32_t lead,
                      uint64_t *work)
{
    static const double support[LEAT__FILTER_COUNT] = {
        [LEAT__FILTER_BOX] = 0.5, [LEAT__FILTER_BILINEAR] = 1, [LEAT__FILTER_BICUBIC] = 2};
    if (!knows_filter(q->filter) || q->box_hi != 0 || q->count == 0) return false;
    const double scale = (double)q->in / q->out, stretch = scale < 1 ? 1 : scale;
    const bool nearest = q->filter == LEAT__FILTER_NEAREST || q->in == q->out;
    *a = (leat_job_axis){.in = q->in,
                         .out = q->out,
                         .from = q->from,
                         .count = q->count,
                         .filter = (uint32_t)q->filter,
                         .mirror_in = q->mirror_in,
                         .mirror_out = q->mirror_out,
                         .lo = lo,
                         .lead = lead,
                         .taps = nearest ? 1 : (uint32_t)(2 * support[q->filter] * stretch + 1e-6) + 1};
    a->words = a->taps <= LEAT_JOB_NARROW ? 1 : (a->taps + 3 + 3) / 4; /* the first tap may be the last of
                                                                          its word */
    if (a->words > LEAT_JOB_WORDS_MAX) return false;
    a->first = room(work, (uint64_t)a->count * sizeof(uint32_t));
    a->taps_of = room(work, (uint64_t)a->count * sizeof(uint32_t));
    a->weight = room(work, (uint64_t)a->count * a->words * sizeof(leat_job_weights));
    return true;
}

static void plan_planes(leat_job_image *im, const leat__raster *r, uint64_t *work)
{
    for (uint32_t c = 0; c < im->components; c++) {
        const leat__raster_span *const s = &r->comp[c];
        im->bx0[c] = s->bx0;
        im->bx1[c] = s->bx1;
        im->by0[c] = s->by0;
        im->by1[c] = s->by1;
        im->samples_x[c] = s->width;
        im->samples_y[c] = s->height;
        im->pitch[c] = (8 * (s->bx1 - s->bx0) + ALIGN - 1) & ~(ALIGN - 1);
        im->plane[c] = room(work, (uint64_t)im->pitch[c] * 8 * (s->by1 - s->by0));
    }
}

/* Returns how many words of four inputs `n` adjacent outputs need at most, in a region of `size` inputs. */
static uint32_t words_of(const leat_job_axis *a, uint32_t n, uint32_t size)
{
    const double span = (double)(n - 1) * a->in / a->out + a->taps + 2;
    const uint32_t inputs = span < a->lead + size ? (uint32_t)span + 1 : a->lead + size;
    return (inputs + 3 + 3) / 4;
}

/* Decides how many outputs a thread block computes at once: as many as its shared memory has room for. */
static bool plan_windows(leat_job_image *im)
{
    const uint32_t planes = im->components == 1 ? 1 : 3;
    const uint32_t pool = LEAT_JOB_POOL - LEAT_JOB_POOL_SLACK, down = im->vertical_first;
    const uint32_t strips = (im->ay.count + WINDOW_ROWS - 1) / WINDOW_ROWS;
    im->window_x = im->ax.count;
    im->window_y = (im->ay.count + strips - 1) / strips;
    for (;;) {
        const uint32_t words_x = words_of(&im->ax, im->window_x, im->width);
        const uint32_t words_y = words_of(&im->ay, im->window_y, im->height);
        const uint32_t all = 4 * (down ? words_x : words_y);
        im->line_pitch = (down ? words_y : words_x) | 1; /* odd: adjacent lines use different banks */
        im->mid_pitch = (down ? words_x : words_y) | 1;
        const uint64_t mid = (uint64_t)planes * im->mid_pitch * (down ? im->window_y : im->window_x);
        const uint64_t left = mid < pool ? (pool - mid) / ((uint64_t)planes * im->line_pitch) : 0;
        im->lines = (uint32_t)LEAT_MIN(left & ~UINT64_C(3), all);
        if (im->lines >= LEAT_MIN(LINES_MIN, all)) break;
        if (im->window_y > 8 || (im->window_x == 1 && im->window_y > 1)) im->window_y /= 2;
        else if (im->window_x > 1) im->window_x /= 2;
        else if (im->lines >= 4) break;
        else return false;
    }
    im->windows = ((im->ax.count + im->window_x - 1) / im->window_x) *
                  ((im->ay.count + im->window_y - 1) / im->window_y);
    return true;
}

/* Plans a step on pixels. False when the device does not support it. */
static bool plan_step(leat_job_step *to, const leat__step *s)
{
    *to = (leat_job_step){.amount = (float)s->amount};
    switch (s->kind) {
    case LEAT__STEP_BRIGHTNESS: to->kind = LEAT_JOB_BRIGHTNESS; return true;
    case LEAT__STEP_CONTRAST: to->kind = LEAT_JOB_CONTRAST; return true;
    case LEAT__STEP_SATURATION: to->kind = LEAT_JOB_SATURATION; return true;
    case LEAT__STEP_GRAYSCALE: to->kind = LEAT_JOB_GRAYSCALE; return true;
    case LEAT__STEP_INVERT: to->kind = LEAT_JOB_INVERT; return true;
    case LEAT__STEP_EQUALIZE: to->kind = LEAT_JOB_EQUALIZE; return true;
    case LEAT__STEP_AUTOCONTRAST: to->kind = LEAT_JOB_AUTOCONTRAST; return true;
    case LEAT__STEP_HUE:
        to->kind = LEAT_JOB_HUE;
        to->value = (uint8_t)(int32_t)(s->amount * 255); /* as leat__step_color */
        return true;
    case LEAT__STEP_SOLARIZE:
        to->kind = LEAT_JOB_SOLARIZE;
        to->value = (uint32_t)ceil(s->amount);
        return true;
    case LEAT__STEP_POSTERIZE:
        to->kind = LEAT_JOB_POSTERIZE;
        to->value = 255u & ~((1u << (8 - (int)s->amount)) - 1);
        return true;
    case LEAT__STEP_ERASE:
        to->kind = LEAT_JOB_ERASE;
        to->x = (uint32_t)s->x;
        to->y = (uint32_t)s->y;
        to->width = s->width;
        to->height = s->height;
        to->noise = s->noise;
        to->key[0] = (uint32_t)s->noise_seed;
        to->key[1] = (uint32_t)(s->noise_seed >> 32);
        for (int c = 0; c < 3; c++) to->value |= (uint32_t)(uint8_t)(int)s->fill[c] << 8 * c;
        return true;
    default: return false;
    }
}

/* Plans the erasing of the output: one rectangle of one colour. Noise is refused: it is normally distributed,
 * which needs functions of the CPU's math library. */
static bool plan_erase(leat_job_image *im, const leat__pipeline *p, const leat__step *s)
{
    if (s->kind != LEAT__STEP_ERASE_OUT || s->noise || im->erase) return false;
    im->erase = 1;
    im->erase_x = (uint32_t)s->x;
    im->erase_y = (uint32_t)s->y;
    im->erase_width = s->width;
    im->erase_height = s->height;
    for (int c = 0; c < 3; c++) {
        union {
            float single;
            uint32_t bits;
        } value = {.bits = 0};
        leat__writer_put(p->output.dtype, &value, 0, s->fill[c]);
        im->erase_bits[c] = value.bits;
    }
    return true;
}

/* Plans the steps after the geometry. False when the device does not support one of them. */
static bool plan_end(leat_job_image *im, const leat__pipeline *p, const leat__recipe *r, uint32_t from)
{
    for (uint32_t i = from; i < r->count; i++) {
        const leat__step *const s = &r->step[i];
        if (s->kind != LEAT__STEP_ERASE_OUT && !im->erase && im->steps < LEAT_JOB_STEPS &&
            plan_step(&im->step[im->steps], s))
            im->steps++;
        else if (!plan_erase(im, p, s)) return false;
    }
    return true;
}

/* True for steps that change each pixel only by its colour and the histogram of the image. A flip before or
 * after them gives the same result. */
static bool spares_places(leat__step_kind kind)
{
    leat_job_step ignored;
    return kind != LEAT__STEP_ERASE && kind != LEAT__STEP_ERASE_OUT &&
           plan_step(&ignored, &(leat__step){.kind = kind});
}

/* Moves flips before the colour steps that they follow, so that they become part of the geometry. */
static void flips_first(leat__recipe *r)
{
    for (uint32_t i = 1; i < r->count; i++) {
        const leat__step flip = r->step[i];
        if (flip.kind != LEAT__STEP_FLIP_H && flip.kind != LEAT__STEP_FLIP_V) continue;
        uint32_t at = i;
        for (; at > 0 && spares_places(r->step[at - 1].kind); at--) r->step[at] = r->step[at - 1];
        r->step[at] = flip;
    }
}

/* Transposes the head to the stored image, whose rows are columns of the output. */
static void turn_head(leat__head *head)
{
    const leat__head h = *head;
    head->x = h.y;
    head->y = h.x;
    head->width = h.height;
    head->height = h.width;
    head->ax = h.ay;
    head->ay = h.ax;
}

/* Plans the geometry of the job and fills `r` with the blocks. False: the CPU must decode the image. */
static bool plan_geometry(leat_job_image *im, const leat__pipeline *p, const leat__encoded *e,
                          const leat__tile_header *h, const leat__draw_key *key, leat__raster *r)
{
    const uint32_t o = e->orientation >= 1 && e->orientation <= 8 ? e->orientation : 1;
    const bool turned = o > 4;
    const uint32_t wide = turned ? h->height : h->width, high = turned ? h->width : h->height;
    leat__recipe recipe;
    leat__head head;
    uint32_t lo_x, hi_x, lo_y, hi_y;
    uint64_t work = 0;
    if (leat__pipeline_draw(p, key, wide, high, &recipe, NULL) != 0) return false;
    flips_first(&recipe);
    leat__head_fuse(&head, &recipe, 0, wide, high);
    if (head.order == LEAT__PASS_FAST || !plan_end(im, p, &recipe, head.steps)) return false;
    leat__head_orient(&head, wide, high, o);
    if (head.ax.count != p->output.width || head.ay.count != p->output.height) return false;
    im->turned = turned;
    im->vertical_first = leat__resize_vertical_first(&head.ax, &head.ay, head.order) != turned;
    if (turned) turn_head(&head);
    if (leat__axis_range(&head.ax, &lo_x, &hi_x, NULL) != 0 ||
        leat__axis_range(&head.ay, &lo_y, &hi_y, NULL) != 0)
        return false;
    im->x = head.x + lo_x;
    im->y = head.y + lo_y;
    im->width = hi_x - lo_x;
    im->height = hi_y - lo_y;
    if ((uint64_t)im->width * im->height * 3 > LEAT__DEVICE_WORK_MAX) return false;
    const leat__raster_shape shape = {h->width, h->height, h->components, h->h, h->v};
    leat__raster_find(r, &shape, im->x, im->y, im->width, im->height, LEAT__TILE_PIXELS);
    im->smooth = r->smooth;
    im->lead = im->x & 3;
    if (!plan_axis(&im->ax, &head.ax, lo_x, im->lead, &work) ||
        !plan_axis(&im->ay, &head.ay, lo_y, 0, &work) || !plan_windows(im))
        return false;
    plan_planes(im, r, &work);
    if (im->steps > 0) im->canvas = room(&work, UINT64_C(3) * im->ax.count * im->ay.count);
    im->work_bytes = work;
    return work <= LEAT__DEVICE_WORK_MAX;
}

double leat__device_takes(const leat__pipeline *p, uint32_t width, uint32_t height)
{
    const leat__tile_header h = {.width = width, .height = height, .components = 3, .h = 2, .v = 2};
    const leat__encoded e = {.orientation = 1};
    const char *op;
    uint32_t taken = 0;
    if (leat__device_refuses(p, &op) != NULL || leat__pipeline_wide(p)) return 0;
    for (uint32_t i = 0; i < DRAWS; i++) {
        const leat__draw_key key = {.seed = 1, .sample = i};
        leat_job_image im = {.components = h.components};
        leat__raster r;
        taken += plan_geometry(&im, p, &e, &h, &key, &r);
    }
    return (double)taken / DRAWS;
}

/* The tiles of an image that are decoded: tile rows `first` to `last`, columns tx0 to tx1. */
typedef struct tile_window {
    uint32_t first, last, tx0, tx1;
    uint64_t bytes; /* of these tiles */
} tile_window;

static tile_window find_window(const leat__tile_header *h, const leat__raster *r)
{
    tile_window w = {.first = r->first, .last = r->last, .tx0 = UINT32_MAX};
    for (uint32_t k = 0; k < h->components; k++) {
        w.tx0 = LEAT_MIN(w.tx0, r->comp[k].bx0 / leat__tile_blocks_x(h, k));
        w.tx1 = LEAT_MAX(w.tx1, (r->comp[k].bx1 - 1) / leat__tile_blocks_x(h, k));
    }
    w.tx1 = LEAT_MIN(w.tx1, h->tiles_x - 1);
    for (uint32_t ty = w.first; ty <= w.last; ty++)
        for (uint32_t tx = w.tx0; tx <= w.tx1; tx++)
            w.bytes += leat__load_u16(h->lengths + 2 * ((size_t)ty * h->tiles_x + tx));
    return w;
}

/* Reserves bytes for an image whose tiles take `tile_bytes`: in the arena, else (unless `only_arena`) in the
 * chunk. */
static uint8_t *take_bytes(leat__device_chunk *c, uint64_t tile_bytes, bool only_arena, leat_job_image *im)
{
    const uint64_t quant = sizeof(uint16_t) * 64 * 3;
    const uint64_t bytes = (quant + tile_bytes + SLACK + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
    leat__device_arena *const a = c->arena;
    if (a != NULL && atomic_load_explicit(&a->used, memory_order_relaxed) + bytes <= a->size) {
        im->data = atomic_fetch_add_explicit(&a->used, bytes, memory_order_relaxed);
        if (im->data + bytes <= a->size) {
            im->source = LEAT_JOB_ARENA;
            memset(a->data + im->data + bytes - SLACK - ALIGN, 0, SLACK + ALIGN);
            return a->data + im->data;
        }
    }
    if (a != NULL) atomic_fetch_add_explicit(&a->missing, bytes, memory_order_relaxed);
    if (only_arena) return NULL;
    im->source = LEAT_JOB_SPILL;
    im->data = c->data.len;
    return leat__buf_zeros(&c->data, bytes) == 0 ? (uint8_t *)c->data.data + im->data : NULL;
}

/* Fills the jobs of the tiles of one row of the window; the first tile is at `at` in the image's data.
 * Returns the bytes of the row. */
static uint64_t put_row(const leat__tile_header *h, const tile_window *w, uint32_t ty, uint32_t image,
                        uint64_t at, leat_job_tile *tile)
{
    const uint64_t begin = at;
    uint32_t number = ty * h->tiles_x + w->tx0;
    for (uint32_t tx = w->tx0; tx <= w->tx1; tx++, number++) {
        const uint32_t len = leat__load_u16(h->lengths + 2 * (size_t)number);
        *tile++ =
            (leat_job_tile){.data = at, .len = len, .image = image, .tx = tx, .ty = ty, .number = number};
        at += len;
    }
    return at - begin;
}

static uint64_t sum_lengths(const leat__tile_header *h, uint32_t from, uint32_t to)
{
    uint64_t sum = 0;
    for (; from < to; from++) sum += leat__load_u16(h->lengths + 2 * (size_t)from);
    return sum;
}

/* Adds `bytes` at `from` to the ranges that the device reads, after those added since range `first`. *at is
 * the end of their destination. Ranges that touch or share a line are merged. Returns the destination of the
 * bytes. */
static uint64_t put_range(leat__device_chunk *c, size_t first, uint64_t from, uint64_t bytes, uint64_t *at)
{
    const uint64_t line = LEAT_JOB_LINE, begin = from / line * line;
    const uint64_t end = (from + bytes + line - 1) / line * line;
    leat_job_range *const next = (leat_job_range *)(void *)(c->ranges.data + c->ranges.len);
    if (c->ranges.len > first && begin <= next[-1].from + next[-1].lines * line) {
        const uint64_t start = next[-1].to;
        next[-1].lines = (uint32_t)((end - next[-1].from) / line);
        *at = start + next[-1].lines * line;
        return start + (from - next[-1].from);
    }
    *next = (leat_job_range){.from = begin, .to = *at, .lines = (uint32_t)((end - begin) / line)};
    c->ranges.len += sizeof *next;
    *at += end - begin;
    return next->to + (from - begin);
}

/* Adds the jobs of the tiles. If `to` is NULL, the tiles follow the quantisers as in the pack. Else only the
 * tiles of the window are copied to `to`, next to each other. */
static int put_tiles(leat__device_chunk *c, const leat__tile_header *h, const uint8_t *data,
                     const tile_window *w, uint32_t image, uint8_t *to)
{
    const uint64_t quant = sizeof h->quant;
    const uint32_t across = w->tx1 - w->tx0 + 1;
    const size_t count = (size_t)(w->last - w->first + 1) * across;
    if (leat__buf_reserve(&c->tiles, count * sizeof(leat_job_tile)) != 0) return LEAT_ENOMEM;
    leat_job_tile *tile = (leat_job_tile *)(void *)(c->tiles.data + c->tiles.len);
    uint64_t at = sum_lengths(h, 0, w->first * h->tiles_x + w->tx0), put = 0;
    for (uint32_t ty = w->first; ty <= w->last; ty++, tile += across) {
        const uint64_t row = put_row(h, w, ty, image, quant + (to != NULL ? put : at), tile);
        if (to != NULL) c->copy->out(to + quant + put, data + h->header_bytes + at, row);
        put += row;
        at += row +
              sum_lengths(h, ty * h->tiles_x + w->tx1 + 1, LEAT_MIN(ty + 1, w->last) * h->tiles_x + w->tx0);
    }
    c->tiles.len += count * sizeof *tile;
    return 0;
}

/* Adds the jobs and the ranges of an image that the device reads from page-locked memory. */
static int put_ranges(leat__device_chunk *c, const leat__tile_header *h, uint64_t mapped,
                      const tile_window *w, leat_job_image *im)
{
    const uint32_t across = w->tx1 - w->tx0 + 1, rows = w->last - w->first + 1;
    const uint32_t image = leat__device_chunk_images(c);
    const size_t count = (size_t)rows * across, first = c->ranges.len;
    if (leat__buf_reserve(&c->tiles, count * sizeof(leat_job_tile)) != 0 ||
        leat__buf_reserve(&c->ranges, rows * sizeof(leat_job_range)) != 0)
        return LEAT_ENOMEM;
    leat_job_tile *tile = (leat_job_tile *)(void *)(c->tiles.data + c->tiles.len);
    uint64_t at = mapped + h->header_bytes + sum_lengths(h, 0, w->first * h->tiles_x + w->tx0), end = 0;
    for (uint32_t ty = w->first; ty <= w->last; ty++, tile += across) {
        const uint32_t number = ty * h->tiles_x + w->tx0;
        const uint64_t row = sum_lengths(h, number, number + across);
        const uint64_t slack = ty == w->last ? SLACK : 0;
        put_row(h, w, ty, image, put_range(c, first, at, row + slack, &end), tile);
        at += row +
              sum_lengths(h, number + across, LEAT_MIN(number + h->tiles_x, w->last * h->tiles_x + w->tx0));
    }
    c->tiles.len += count * sizeof *tile;
    im->data = atomic_fetch_add_explicit(&c->arena->gathered, end, memory_order_relaxed);
    leat_job_range *range = (leat_job_range *)(void *)(c->ranges.data + first);
    for (; range < (leat_job_range *)(void *)(c->ranges.data + c->ranges.len); range++) range->to += im->data;
    return 0;
}

/* Adds the tiles of an image. Its bytes are resident, read from page-locked memory, or copied to the arena or
 * chunk. */
static int put_image(leat__device_chunk *c, const leat__tile_header *h, const uint8_t *data,
                     const leat__raster *r, leat_job_image *im, leat__device_place *place)
{
    const tile_window w = find_window(h, r);
    const uint32_t image = leat__device_chunk_images(c);
    uint8_t *to = NULL;
    im->quant = 0;
    if (place->resident != 0) {
        im->source = LEAT_JOB_RESIDENT;
        im->data = place->resident;
        return put_tiles(c, h, NULL, &w, image, NULL);
    }
    if (place->mapped != 0 && !place->whole && (to = take_bytes(c, 0, true, im)) != NULL) {
        memcpy(to, h->quant, sizeof h->quant);
        im->source = LEAT_JOB_GATHERED;
        im->quant = im->data;
        return put_ranges(c, h, place->mapped, &w, im);
    }
    if (place->whole) to = take_bytes(c, h->tile_bytes, true, im);
    place->whole = to != NULL;
    if (to == NULL) to = take_bytes(c, w.bytes, false, im);
    if (to == NULL) return LEAT_ENOMEM;
    memcpy(to, h->quant, sizeof h->quant);
    if (place->whole) c->copy->out(to + sizeof h->quant, data + h->header_bytes, h->tile_bytes);
    return put_tiles(c, h, data, &w, image, place->whole ? NULL : to);
}

uint32_t leat__device_header_bytes(const leat__encoded *e)
{
    leat__tile_header h;
    const bool tiled = e->info->codec == LEAT__CODEC_TILE;
    return tiled && leat__tile_header_parse(&h, e->data, e->len, NULL) == 0 ? h.header_bytes : 0;
}

int leat__device_plan(leat__device_chunk *c, const leat__pipeline *p, const leat__encoded *e,
                      const leat__draw_key *key, uint32_t row, uint32_t column, leat__device_place *place,
                      bool *taken, leat_error *err)
{
    leat__tile_header h;
    leat__raster r;
    leat_job_image im = {.row = row, .column = column};
    const leat__tile_tables *const tables = e->tables;

    *taken = false;
    if (e->info->codec != LEAT__CODEC_TILE || leat__tile_header_parse(&h, e->data, e->len, NULL) != 0)
        return 0;
    if ((uint64_t)h.width * h.height > PIXELS_MAX) return 0; /* the CPU checks the limits */
    im.small = (h.flags & LEAT__TILE_FLAG_SMALL) != 0;
    if (im.small && (tables == NULL || tables->id != h.tables_id)) return 0;
    im.components = h.components;
    im.h = h.h;
    im.v = h.v;
    im.mcus_x = h.mcus_x;
    im.mcus_y = h.mcus_y;
    if (!plan_geometry(&im, p, e, &h, key, &r)) return 0;
    if (put_image(c, &h, e->data, &r, &im, place) == 0 && leat__buf_append(&c->images, &im, sizeof im) == 0) {
        *taken = true;
        return 0;
    }
    return leat__fail_nomem(err, c->data.len + e->len, "tiles for a device");
}
