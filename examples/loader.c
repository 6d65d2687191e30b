/* SPDX-License-Identifier: Apache-2.0
 *
 * The smallest training loop over a pack:  loader PACK [EPOCHS]
 *
 * Instead of training, it averages the pixels of every batch.
 */
#include <stdio.h>
#include <stdlib.h>

#include <leat/loader.h>

static int fail(const leat_error *err)
{
    fprintf(stderr, "loader: %s\n", err->message);
    return 1;
}

static double mean(const leat_tensor *t)
{
    const uint8_t *p = t->data;
    size_t n = (size_t)(t->shape[0] * t->strides[0]);
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += p[i];
    return n > 0 ? sum / (double)n : 0;
}

int main(int argc, char **argv)
{
    leat_loader *loader = NULL;
    leat_batch *batch = NULL;
    leat_error err;
    leat_loader_opts opts;
    int rc = 0;

    if (argc < 2) return fprintf(stderr, "usage: loader PACK [EPOCHS]\n"), 2;
    uint64_t epochs = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    leat_loader_opts_init(&opts);
    opts.batch_size = 64;
    opts.ops = "RandomResizedCrop(224); RandomHorizontalFlip()";
    opts.order = LEAT_ORDER_RANDOM;
    opts.seed = 1;
    if (leat_loader_open(&loader, argv[1], &opts, &err) != 0) return fail(&err);

    for (uint64_t epoch = 0; epoch < epochs && rc == 0; epoch++) {
        rc = leat_loader_begin(loader, epoch, &err);
        while (rc == 0 && (rc = leat_loader_next(loader, &batch, -1, &err)) == 0 && batch != NULL) {
            printf("epoch %llu batch %llu: %u samples, mean %.1f\n", (unsigned long long)epoch,
                   (unsigned long long)batch->index, batch->samples, mean(&batch->fields[0]));
            leat_batch_release(&batch);
        }
    }
    leat_loader_close(&loader);
    return rc != 0 ? fail(&err) : 0;
}
