/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the jobs that gpu_jobs wrote, and compares with what the CPU said: see gpu_jobs.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.cu"

#define CHECK(call)                                                                                  \
    do {                                                                                             \
        cudaError_t e_ = (call);                                                                     \
        if (e_ != cudaSuccess) {                                                                     \
            printf("gpu_jobs: %s: %s\n", #call, cudaGetErrorString(e_));                             \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

struct counts {
    uint32_t images, tiles;
    uint64_t data;
};

/* What the file has: arrays on the host. */
struct jobs {
    struct counts n;
    leat_job_output *out;
    leat_job_codes *codes;
    leat_job_image *images;
    leat_job_tile *tiles;
    uint8_t *data;
    uint32_t *bad;   /* 1 = the CPU found it damaged */
    uint8_t *pixels; /* what the CPU made of each */
    size_t row;      /* bytes of an image */
};

static void *take(FILE *f, size_t bytes)
{
    void *p = malloc(bytes > 0 ? bytes : 1);
    if (p == NULL || fread(p, 1, bytes, f) != bytes) exit(2);
    return p;
}

static void *put(const void *from, size_t bytes)
{
    void *p;
    CHECK(cudaMalloc(&p, bytes > 0 ? bytes : 1));
    CHECK(cudaMemcpy(p, from, bytes, cudaMemcpyHostToDevice));
    return p;
}

enum { KERNELS = 4, TIMES = 20 };
static const char *const kernel_names[KERNELS] = {"axes", "tiles", "pixels", "colour"};
static int timing;

/* As src/gpu/kernels.c launches them. */
static void launch(int kernel, leat_job job, cudaStream_t s)
{
    const uint32_t tiles = (job.tile_count + TILE_WARPS - 1) / TILE_WARPS;
    if (kernel == 0) leat_axes<<<dim3(2, job.image_count), 128, 0, s>>>(job);
    if (kernel == 1) leat_tiles<<<tiles, 32 * TILE_WARPS, 0, s>>>(job);
    if (kernel == 2) leat_pixels<<<dim3(job.windows < 16 ? job.windows : 16, job.image_count), PIXEL_THREADS, 0, s>>>(job);
    if (kernel == 3 && job.steps > 0) leat_colour<<<dim3(1, job.image_count), COLOUR_THREADS, 0, s>>>(job);
}

/* Each kernel's time on the device, the mean of several. */
static void time_kernels(leat_job job)
{
    cudaEvent_t at[2];
    float all = 0;
    CHECK(cudaEventCreate(&at[0]));
    CHECK(cudaEventCreate(&at[1]));
    for (int k = 0; k < KERNELS; k++) launch(k, job, 0);
    printf("gpu_jobs: %u images, %u tiles, us:", job.image_count, job.tile_count);
    for (int k = 0; k < KERNELS; k++) {
        float ms = 0;
        CHECK(cudaEventRecord(at[0]));
        for (int i = 0; i < TIMES; i++) launch(k, job, 0);
        CHECK(cudaEventRecord(at[1]));
        CHECK(cudaEventSynchronize(at[1]));
        CHECK(cudaEventElapsedTime(&ms, at[0], at[1]));
        printf(" %s %.1f", kernel_names[k], 1e3 * ms / TIMES);
        all += ms / TIMES;
    }
    printf(", all %.1f: %.0f images/s\n", 1e3 * all, 1e3 * job.image_count / all);
}

/* All slices many times over several streams, as a loader with its tiles on the device runs them. */
static void time_together(const leat_job *jobs, uint32_t count, int streams)
{
    cudaStream_t s[8];
    cudaEvent_t at[2];
    uint64_t images = 0;
    float ms = 0;
    CHECK(cudaEventCreate(&at[0]));
    CHECK(cudaEventCreate(&at[1]));
    for (int i = 0; i < streams; i++) CHECK(cudaStreamCreateWithFlags(&s[i], cudaStreamDefault));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaEventRecord(at[0], 0));
    for (uint32_t i = 0; i < 10 * count; i++) {
        for (int k = 0; k < KERNELS; k++) launch(k, jobs[i % count], s[i % (uint32_t)streams]);
        images += jobs[i % count].image_count;
    }
    CHECK(cudaEventRecord(at[1], 0));
    CHECK(cudaEventSynchronize(at[1]));
    CHECK(cudaEventElapsedTime(&ms, at[0], at[1]));
    printf("gpu_jobs: %d streams: %.0f images/s\n", streams, 1e3 * (double)images / ms);
}

static int larger_first(const void *a, const void *b)
{
    const uint32_t x = ((const leat_job_tile *)a)->len, y = ((const leat_job_tile *)b)->len;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* A job of images first to last, whose tiles are from to tile, on the device. */
static leat_job send_slice(leat_job job, const struct jobs *j, uint32_t first, uint32_t last, uint32_t from,
                           uint32_t tile, uint64_t work, uint32_t *status)
{
    qsort(j->tiles + from, tile - from, sizeof *j->tiles, larger_first); /* as the loader does */
    CHECK(cudaMalloc((void **)&job.work, work));
    CHECK(cudaMemset(job.work, 0, work)); /* damaged tiles leave blocks unwritten */
    job.images = (leat_job_image *)put(j->images + first, (last - first) * sizeof *j->images);
    job.tiles = (leat_job_tile *)put(j->tiles + from, (tile - from) * sizeof *j->tiles);
    job.status = status + first;
    job.image_count = last - first;
    job.windows = 1;
    for (uint32_t i = first; i < last; i++) {
        job.windows = j->images[i].windows > job.windows ? j->images[i].windows : job.windows;
        job.steps = j->images[i].steps > job.steps ? j->images[i].steps : job.steps;
    }
    job.tile_count = tile - from;
    return job;
}

static void run_slice(leat_job job)
{
    for (int k = 0; k < KERNELS; k++) launch(k, job, 0);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
}

/* `slice` images at once. */
static void run(leat_job job, const struct jobs *from_file, uint64_t base, uint32_t *status, uint32_t slice)
{
    const uint32_t count = from_file->n.images;
    struct jobs j = *from_file; /* images and tiles are changed: on copies */
    leat_job *sent = (leat_job *)calloc(count, sizeof *sent);
    uint32_t slices = 0;
    j.images = (leat_job_image *)malloc(count * sizeof *j.images);
    j.tiles = (leat_job_tile *)malloc(j.n.tiles * sizeof *j.tiles);
    if (sent == NULL || j.images == NULL || j.tiles == NULL) exit(2);
    memcpy(j.images, from_file->images, count * sizeof *j.images);
    memcpy(j.tiles, from_file->tiles, j.n.tiles * sizeof *j.tiles);
    for (uint32_t first = 0, tile = 0; first < count; first += slice) {
        const uint32_t last = first + slice < count ? first + slice : count, from = tile;
        uint64_t work = 0;
        for (uint32_t i = first; i < last; i++) {
            j.images[i].data += base;
            j.images[i].work = work;
            work += (j.images[i].work_bytes + 255) & ~255ull;
        }
        for (; tile < j.n.tiles && j.tiles[tile].image < last; tile++) j.tiles[tile].image -= first;
        sent[slices++] = send_slice(job, &j, first, last, from, tile, work, status);
    }
    for (uint32_t i = 0; i < slices; i++) run_slice(sent[i]);
    for (uint32_t i = 0; timing && i < slices && i < 3; i++) time_kernels(sent[i]);
    for (int streams = 1; timing && slices > 1 && streams <= 8; streams++) time_together(sent, slices, streams);
    for (uint32_t i = 0; i < slices; i++) {
        CHECK(cudaFree((void *)sent[i].images));
        CHECK(cudaFree((void *)sent[i].tiles));
        CHECK(cudaFree(sent[i].work));
    }
    free(sent);
    free(j.images);
    free(j.tiles);
}

/* Changes one byte in 4,000 of the tiles; quantisers stay. */
static void damage(struct jobs *j)
{
    for (uint32_t i = 0; i < j->n.tiles; i++)
        for (uint32_t k = 0; k < j->tiles[i].len; k += 1 + rand() % 8000)
            if (k > 0) j->data[j->images[j->tiles[i].image].data + j->tiles[i].data + k] = (uint8_t)rand();
}

static struct jobs read_jobs(FILE *f)
{
    struct jobs j;
    struct counts *n = (struct counts *)take(f, sizeof *n);
    j.n = *n;
    free(n);
    j.out = (leat_job_output *)take(f, sizeof *j.out);
    j.codes = (leat_job_codes *)take(f, sizeof *j.codes);
    j.images = (leat_job_image *)take(f, j.n.images * sizeof *j.images);
    j.tiles = (leat_job_tile *)take(f, j.n.tiles * sizeof *j.tiles);
    j.data = (uint8_t *)take(f, j.n.data);
    j.bad = (uint32_t *)take(f, j.n.images * sizeof *j.bad);
    j.row = (size_t)3 * j.out->width * j.out->height;
    j.pixels = (uint8_t *)take(f, j.row * j.n.images);
    return j;
}

/* Compares what the device made and found with what the CPU did; the number of differences. */
static uint32_t compare(const struct jobs *j, const uint8_t *batch, const uint32_t *found)
{
    uint8_t *made = (uint8_t *)malloc(j->row * j->n.images);
    uint32_t *status = (uint32_t *)malloc(j->n.images * sizeof *status);
    uint32_t damaged = 0, differ = 0, pixels_differ = 0;
    if (made == NULL || status == NULL) exit(2);
    CHECK(cudaMemcpy(made, batch, j->row * j->n.images, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(status, found, j->n.images * sizeof *status, cudaMemcpyDeviceToHost));
    for (uint32_t i = 0; i < j->n.images; i++) {
        const int there = status[i] != LEAT_JOB_NO_DAMAGE;
        damaged += there;
        differ += there != (j->bad[i] != 0);
        if (!there && !j->bad[i]) pixels_differ += memcmp(made + i * j->row, j->pixels + i * j->row, j->row) != 0;
    }
    printf("gpu_jobs: %u images, %u found damaged, %u judged otherwise than by the CPU, %u with other pixels\n",
           j->n.images, damaged, differ, pixels_differ);
    free(made);
    free(status);
    return differ + pixels_differ;
}

int main(int argc, char **argv)
{
    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (f == NULL) return 2;
    struct jobs j = read_jobs(f);
    uint8_t *batch;
    CHECK(cudaMalloc((void **)&batch, j.row * j.n.images));
    CHECK(cudaMemset(batch, 0, j.row * j.n.images));
    j.out->data = (uint64_t)(uintptr_t)batch;
    leat_job job;
    memset(&job, 0, sizeof job);
    job.outputs = (leat_job_output *)put(j.out, sizeof *j.out);
    job.codes = (leat_job_codes *)put(j.codes, sizeof *j.codes);
    uint8_t *data = (uint8_t *)put(j.data, j.n.data);
    timing = argc > 2 && strcmp(argv[2], "time") == 0;
    uint32_t *status = (uint32_t *)malloc(j.n.images * sizeof *status);
    if (status == NULL) return 2;
    for (uint32_t i = 0; i < j.n.images; i++) status[i] = LEAT_JOB_NO_DAMAGE;
    uint32_t *found = (uint32_t *)put(status, j.n.images * sizeof *status);
    run(job, &j, (uint64_t)(uintptr_t)data, found, timing ? 256 : 500);
    if (timing) run(job, &j, (uint64_t)(uintptr_t)data, found, j.n.images);
    const uint32_t differ = compare(&j, batch, found);
    const int rounds = argc > 2 ? atoi(argv[2]) : 1;
    for (int i = 1; i < rounds; i++) {
        damage(&j);
        CHECK(cudaMemcpy(data, j.data, j.n.data, cudaMemcpyHostToDevice));
        run(job, &j, (uint64_t)(uintptr_t)data, found, 500);
    }
    printf("gpu_jobs: %d rounds\n", rounds);
    return differ != 0;
}
