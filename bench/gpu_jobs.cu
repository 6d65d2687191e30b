/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the jobs that gpu_jobs wrote, and compares with what the CPU said: see gpu_jobs.c.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

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

template <class T> static std::vector<T> take(FILE *f, size_t n)
{
    std::vector<T> v(n);
    if (fread(v.data(), sizeof(T), n, f) != n) exit(2);
    return v;
}

template <class T> static T *put(const std::vector<T> &v)
{
    T *p;
    CHECK(cudaMalloc(&p, v.size() * sizeof(T)));
    CHECK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}

static void run(leat_job job, std::vector<leat_job_image> images, std::vector<leat_job_tile> tiles,
                uint32_t *status)
{
    const uint32_t slice = 500, count = (uint32_t)images.size(); /* images at once */
    for (uint32_t first = 0, tile = 0; first < count; first += slice) {
        const uint32_t last = first + slice < count ? first + slice : count, from = tile;
        uint64_t work = 0;
        for (uint32_t i = first; i < last; i++) {
            images[i].work = work;
            work += (images[i].work_bytes + 255) & ~255ull;
        }
        for (; tile < tiles.size() && tiles[tile].image < last; tile++) tiles[tile].image -= first;
        leat_job_image *im = put(std::vector<leat_job_image>(images.begin() + first, images.begin() + last));
        leat_job_tile *ti = put(std::vector<leat_job_tile>(tiles.begin() + from, tiles.begin() + tile));
        CHECK(cudaMalloc(&job.work, work));
        CHECK(cudaMemset(job.work, 0, work)); /* damaged tiles leave blocks unwritten */
        job.images = im;
        job.tiles = ti;
        job.status = status + first;
        job.image_count = last - first;
        job.tile_count = tile - from;
        leat_axes<<<dim3(2, job.image_count), 128>>>(job);
        leat_tiles<<<(job.tile_count + TILE_WARPS - 1) / TILE_WARPS, 32 * TILE_WARPS>>>(job);
        leat_colour<<<dim3(48, job.image_count), 128>>>(job);
        leat_first<<<dim3(48, job.image_count), 128>>>(job);
        leat_second<<<dim3(48, job.image_count), 128>>>(job);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaFree(im));
        CHECK(cudaFree(ti));
        CHECK(cudaFree(job.work));
    }
}

/* Changes one byte in 4,000 of the tiles; quantisers stay. */
static void damage(std::vector<uint8_t> &data, const std::vector<leat_job_tile> &tiles)
{
    for (size_t i = 0; i < tiles.size(); i++)
        for (uint32_t k = 0; k < tiles[i].len; k += 1 + rand() % 8000)
            if (k > 0) data[tiles[i].data + k] = (uint8_t)rand();
}

int main(int argc, char **argv)
{
    FILE *f = fopen(argv[1], "rb");
    if (argc < 2 || f == NULL) return 2;
    counts n = take<counts>(f, 1)[0];
    std::vector<leat_job_output> out = take<leat_job_output>(f, 1);
    std::vector<leat_job_codes> codes = take<leat_job_codes>(f, 1);
    std::vector<leat_job_image> images = take<leat_job_image>(f, n.images);
    std::vector<leat_job_tile> tiles = take<leat_job_tile>(f, n.tiles);
    std::vector<uint8_t> data = take<uint8_t>(f, n.data);
    std::vector<uint32_t> bad = take<uint32_t>(f, n.images);
    const size_t row = 3 * out[0].width * out[0].height;
    std::vector<uint8_t> pixels = take<uint8_t>(f, row * n.images);
    uint8_t *batch;
    CHECK(cudaMalloc(&batch, row * n.images));
    CHECK(cudaMemset(batch, 0, row * n.images));
    out[0].data = (uint64_t)(uintptr_t)batch;
    leat_job job = {};
    job.outputs = put(out);
    job.codes = put(codes);
    job.data = put(data);
    std::vector<uint32_t> status(n.images, LEAT_JOB_NO_DAMAGE);
    uint32_t *found = put(status);
    run(job, images, tiles, found);
    std::vector<uint8_t> made(row * n.images);
    CHECK(cudaMemcpy(made.data(), batch, made.size(), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(status.data(), found, 4 * status.size(), cudaMemcpyDeviceToHost));
    uint32_t damaged = 0, differ = 0, pixels_differ = 0;
    for (uint32_t i = 0; i < n.images; i++) {
        const bool there = status[i] != LEAT_JOB_NO_DAMAGE;
        damaged += there;
        differ += there != (bad[i] != 0);
        if (!there && !bad[i]) pixels_differ += memcmp(&made[i * row], &pixels[i * row], row) != 0;
    }
    printf("gpu_jobs: %u images, %u found damaged, %u judged otherwise than by the CPU, %u with other pixels\n",
           n.images, damaged, differ, pixels_differ);
    const int rounds = argc > 2 ? atoi(argv[2]) : 1;
    for (int i = 1; i < rounds; i++) {
        damage(data, tiles);
        CHECK(cudaMemcpy((void *)job.data, data.data(), data.size(), cudaMemcpyHostToDevice));
        run(job, images, tiles, found);
    }
    printf("gpu_jobs: %d rounds\n", rounds);
    return differ || pixels_differ;
}
