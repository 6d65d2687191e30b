/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds and runs a tape: see tape.h. The run has two small tables, one entry per storage, and is
 * linear in the number of operations.
 */
#include "plan/tape.h"

#include "base/error.h"
#include "base/num.h"

#define BYTES_MAX (UINT64_MAX / 2)
#define TABLE_MAX ((size_t)1 << 24)

/* State of one storage (or of the gradient that belongs to it) during the walk. */
typedef struct cell {
    uint64_t refs;     /* number of operations that saved it and have not run backward */
    uint32_t last_use; /* index of the last op that touches it in forward */
    bool alive;
    bool needs_grad;     /* parameters come before it */
    uint32_t grad;       /* index of its gradient block, LEAT__TAPE_NONE = none yet */
    uint64_t grad_bytes; /* size of the block with this index */
    uint32_t grad_refs;
} cell;

typedef struct walk {
    const leat__tape *t;
    const leat__tape_op *ops;
    uint32_t op_count, cell_count;
    cell *cells;
    uint64_t live; /* activations and gradients of activations */
    uint64_t weight_grads;
    uint64_t saved;
    leat__tape_sum *sum;
} walk;

void leat__tape_init(leat__tape *t, uint64_t batch, uint32_t size, bool mixed)
{
    *t = (leat__tape){.batch = batch, .size = size, .mixed = mixed, .param_bytes = 4};
    leat__buf_init(&t->storages, LEAT__MEM_PLAN, TABLE_MAX);
    leat__buf_init(&t->ops, LEAT__MEM_PLAN, TABLE_MAX);
}

void leat__tape_reset(leat__tape *t)
{
    leat__buf_reset(&t->storages);
    leat__buf_reset(&t->ops);
}

uint32_t leat__tape_storage(leat__tape *t, uint64_t elements, uint32_t element_bytes)
{
    uint64_t bytes;
    if (!leat__mul_u64(elements, element_bytes, &bytes) || !leat__mul_u64(bytes, t->batch, &bytes) ||
        bytes > BYTES_MAX / 1024) {
        t->status = LEAT_EOVERFLOW;
        bytes = 0;
    }
    uint32_t index = (uint32_t)(t->storages.len / sizeof bytes);
    int rc = leat__buf_append(&t->storages, &bytes, sizeof bytes);
    if (rc != 0) {
        t->status = rc;
        return 0;
    }
    return index;
}

void leat__tape_add(leat__tape *t, const leat__tape_op *op)
{
    int rc = leat__buf_append(&t->ops, op, sizeof *op);
    if (rc != 0) t->status = rc;
}

static uint64_t bytes_of(const leat__tape *t, uint32_t storage)
{
    const uint64_t *all = (const uint64_t *)(const void *)t->storages.data;
    return storage < t->storages.len / sizeof *all ? all[storage] : 0;
}

static void note_peak(walk *w, uint64_t extra)
{
    uint64_t now = w->live + extra + w->weight_grads;
    if (now <= w->sum->peak_bytes) return;
    w->sum->peak_bytes = now;
    w->sum->peak_grads_bytes = w->weight_grads;
}

static void free_if_dead(walk *w, uint32_t s, uint32_t op_index)
{
    cell *c = &w->cells[s];
    if (!c->alive || c->refs > 0 || c->last_use > op_index) return;
    c->alive = false;
    w->live -= bytes_of(w->t, s);
}

static void forward_one(walk *w, uint32_t i)
{
    const leat__tape_op *op = &w->ops[i];
    cell *out = &w->cells[op->out];
    if (!out->alive) {
        out->alive = true;
        w->live += bytes_of(w->t, op->out);
    }
    if (op->weights > 0) out->needs_grad = true;
    for (int k = 0; k < 2; k++)
        if (op->in[k] != LEAT__TAPE_NONE && w->cells[op->in[k]].needs_grad) out->needs_grad = true;
    w->live += op->kept_bytes;
    w->saved += op->kept_bytes;
    for (uint32_t k = 0; k < op->saves_count; k++) {
        cell *c = &w->cells[op->saves[k]];
        if (c->refs++ == 0 && c->alive) w->saved += bytes_of(w->t, op->saves[k]);
    }
    note_peak(w, op->forward_workspace);
    for (int k = 0; k < 2; k++) {
        if (op->in[k] == LEAT__TAPE_NONE) continue;
        w->sum->traffic_bytes += op->passes * (double)bytes_of(w->t, op->in[k]);
        free_if_dead(w, op->in[k], i);
    }
    w->sum->traffic_bytes += (double)bytes_of(w->t, op->out);
    free_if_dead(w, op->out, i);
    w->sum->macs += op->macs;
    w->sum->params += op->weights;
}

/* Drops a reference to a gradient block: an addition passes the same block to both sides. */
static void grad_drop(walk *w, uint32_t block)
{
    cell *b = &w->cells[block];
    if (--b->grad_refs == 0) w->live -= b->grad_bytes;
}

static uint32_t grad_make(walk *w, uint32_t s)
{
    /* The block has the index of its storage. If that block is in use, because an in-place operation still
     * reads its gradient, the next free one is taken. */
    uint32_t block = s;
    while (w->cells[block].grad_refs > 0) block = (block + 1) % w->cell_count;
    w->cells[block].grad_bytes = bytes_of(w->t, s);
    w->cells[block].grad_refs = 1;
    w->live += w->cells[block].grad_bytes;
    return block;
}

static void drop_saved(walk *w, const leat__tape_op *op)
{
    w->live -= op->kept_bytes;
    for (uint32_t k = 0; k < op->saves_count; k++) {
        w->cells[op->saves[k]].refs--;
        free_if_dead(w, op->saves[k], w->op_count);
    }
}

static void backward_one(walk *w, uint32_t i)
{
    const leat__tape_op *op = &w->ops[i];
    uint32_t incoming = w->cells[op->out].grad;
    if (i + 1 == w->op_count) incoming = grad_make(w, op->out); /* the gradient of the loss */
    if (incoming == LEAT__TAPE_NONE) {                          /* nothing needs this gradient */
        drop_saved(w, op);
        return;
    }
    w->cells[op->out].grad = LEAT__TAPE_NONE;
    double out_bytes = (double)bytes_of(w->t, op->out);
    uint64_t temporary = op->grad_temp ? op->weights * w->t->size : 0;
    uint32_t made[2] = {LEAT__TAPE_NONE, LEAT__TAPE_NONE};

    if (!w->t->keep_grads) w->weight_grads += op->weights * w->t->param_bytes;
    for (int k = 0; k < 2; k++) {
        if (op->in[k] == LEAT__TAPE_NONE || !w->cells[op->in[k]].needs_grad) continue;
        if (op->grad_alias) {
            made[k] = incoming;
            w->cells[incoming].grad_refs++;
        } else {
            made[k] = grad_make(w, op->in[k]);
            w->sum->traffic_bytes += (double)bytes_of(w->t, op->in[k]);
        }
    }
    note_peak(w, op->backward_workspace + temporary);
    w->sum->traffic_bytes += op->grad_alias ? 0 : out_bytes * (op->weights > 0 ? 2.0 : 1.0);
    for (int k = 0; k < 2; k++) {
        if (made[k] == LEAT__TAPE_NONE) continue;
        cell *c = &w->cells[op->in[k]];
        if (c->grad == LEAT__TAPE_NONE) c->grad = made[k];
        else grad_drop(w, made[k]); /* added to the existing one */
    }
    grad_drop(w, incoming);
    for (uint32_t k = 0; k < op->saves_count; k++)
        w->sum->traffic_bytes += op->passes * (double)bytes_of(w->t, op->saves[k]);
    drop_saved(w, op);
}

int leat__tape_run(const leat__tape *t, leat__tape_sum *sum)
{
    *sum = (leat__tape_sum){0};
    LEAT_TRY(t->status);
    walk w = {.t = t, .sum = sum, .ops = (const leat__tape_op *)(const void *)t->ops.data};
    w.op_count = (uint32_t)(t->ops.len / sizeof *w.ops);
    w.cell_count = (uint32_t)(t->storages.len / sizeof(uint64_t));
    if (w.op_count == 0) return 0;
    w.cells = leat__zalloc_array(LEAT__MEM_PLAN, w.cell_count, sizeof *w.cells);
    if (w.cells == NULL) return LEAT_ENOMEM;

    uint64_t parameters = 0;
    for (uint32_t s = 0; s < w.cell_count; s++) w.cells[s].grad = LEAT__TAPE_NONE;
    for (uint32_t i = 0; i < w.op_count; i++) {
        const leat__tape_op *op = &w.ops[i];
        parameters += op->weights;
        w.cells[op->out].last_use = i;
        for (int k = 0; k < 2; k++)
            if (op->in[k] != LEAT__TAPE_NONE) w.cells[op->in[k]].last_use = i;
    }
    if (t->keep_grads) w.weight_grads = parameters * t->param_bytes;
    for (uint32_t i = 0; i < w.op_count; i++) forward_one(&w, i);
    sum->saved_bytes = w.saved;
    for (uint32_t i = w.op_count; i-- > 0;) backward_one(&w, i);
    leat__free(w.cells);
    return w.live == 0 ? 0 : LEAT_EINTERNAL; /* every byte allocated was freed */
}
