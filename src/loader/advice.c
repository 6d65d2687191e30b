/* SPDX-License-Identifier: Apache-2.0
 *
 * Advice about an open loader, and the number of batches per epoch. No state, any thread.
 */
#include "loader/advice.h"

#include <stdio.h>

#include "base/num.h"
#include "base/str.h"
#include "loader/state.h"

/* On every disk, even a fast one, reads of samples this small are limited by their number. */
#define SMALL_READ (UINT64_C(16) << 10)

uint64_t leat__epoch_batches(uint64_t count, uint32_t batch_size, uint32_t world, leat_order order,
                             leat_drop drop)
{
    uint64_t step = (uint64_t)batch_size * world, full = count / step, rest = count % step;

    if (rest == 0 || drop == LEAT_DROP_LAST) return full;
    bool empty = rest < world && full > 0;
    return drop == LEAT_DROP_EMPTY && empty && leat__order_shuffled(order) ? full : full + 1;
}

bool leat__advice_order(const leat__advice_facts *f, char text[LEAT__ADVICE_TEXT])
{
    char pack[32], memory[32];

    if (f->order != LEAT_ORDER_RANDOM || f->pack_bytes <= f->memory_bytes) return false;
    if (f->sample_bytes * 2 > f->page_bytes)
        return false; /* reading whole pages would hardly make reads larger */
    bool small = f->sample_bytes <= SMALL_READ;
    if (!f->rotational && !f->network && !small) return false;
    snprintf(text, LEAT__ADVICE_TEXT,
             "%s: order=quasi_random would read faster: the pack (%s) is larger than the memory left for the "
             "page cache (%s) and %s; leat doctor measures by how much",
             f->pack, leat__format_bytes(f->pack_bytes, pack, sizeof pack),
             leat__format_bytes(f->memory_bytes, memory, sizeof memory),
             f->rotational ? "is on a spinning disk"
             : f->network  ? "is on a network file system"
                           : "its samples are small");
    return true;
}

bool leat__advice_ranks(const leat__advice_facts *f, char text[LEAT__ADVICE_TEXT])
{
    uint64_t step = (uint64_t)f->batch_size * f->world, rest = f->count % step;

    if (rest == 0 || rest >= f->world || f->drop == LEAT_DROP_LAST) return false;
    if (f->batches * step < f->count)
        snprintf(text, LEAT__ADVICE_TEXT,
                 "%llu of %llu samples %s left out at the end of every epoch: too few for the %u ranks. "
                 "drop_last=False (--keep-last) keeps them; ranks without one then get an empty batch",
                 (unsigned long long)rest, (unsigned long long)f->count, rest == 1 ? "is" : "are", f->world);
    else
        snprintf(text, LEAT__ADVICE_TEXT,
                 "%llu of %u ranks %s an empty last batch in every epoch (%llu sample%s, batches of %u): a "
                 "mean over it is NaN. Skip batches without samples, or set drop_last",
                 (unsigned long long)(f->world - rest), f->world, f->world - rest == 1 ? "gets" : "get",
                 (unsigned long long)f->count, leat__plural(f->count), f->batch_size);
    return true;
}

bool leat__advice_none(const leat__advice_facts *f, char text[LEAT__ADVICE_TEXT])
{
    if (f->count == 0 || f->batches > 0) return false;
    snprintf(text, LEAT__ADVICE_TEXT,
             "no batch is delivered: %llu sample%s not fill one of %u (%u rank%s), which takes %llu, and "
             "drop_last "
             "leaves out the last, smaller one",
             (unsigned long long)f->count, f->count == 1 ? " does" : "s do", f->batch_size, f->world,
             leat__plural(f->world), (unsigned long long)f->batch_size * f->world);
    return true;
}

bool leat__advice_single(const leat__advice_facts *f, char text[LEAT__ADVICE_TEXT])
{
    char packs[64] = "";

    if (f->left_out == 0) return false;
    if (f->never > 0) snprintf(packs, sizeof packs, ", with %u of the packs unused", f->never);
    snprintf(text, LEAT__ADVICE_TEXT,
             "batches of one pack each: %llu sample%s of an epoch %s left out%s, because an epoch has only "
             "whole batches of %llu samples. Smaller batches leave out fewer; stratified or shuffled batches "
             "leave out none",
             (unsigned long long)f->left_out, leat__plural(f->left_out), f->left_out == 1 ? "is" : "are",
             packs, (unsigned long long)f->batch_size * f->world);
    return true;
}

void leat__advice_device(const leat__advice_idle *f, char text[LEAT__ADVICE_TEXT])
{
    snprintf(text, LEAT__ADVICE_TEXT,
             "%s has no effect: the device decoded no image of the first %llu batches. %s",
             f->keeps ? "cache=device" : "decode=gpu", (unsigned long long)f->batches,
             f->listed ? "Too little of device_memory is left beside the batches"
             : f->tiled
                 ? "The ops need the CPUs: padding, a filter other than nearest, box, bilinear and "
                   "bicubic, like=fast, a second resize, noise in RandomErasing after Normalize, or more "
                   "than 8 steps of colour"
                 : "The images are not tiled: pack them again with images=tiled (--images tiled)");
}
