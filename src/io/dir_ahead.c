/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefetched folder listings: see dir_ahead.h. A slot has one listing and, while it is in flight, a thread
 * (leat-list) that waits for the answers.
 */
#include "io/dir_ahead.h"

#include <string.h>

#include "base/mem.h"
#include "base/thread.h"

typedef struct slot {
    char *path; /* NULL: unused */
    leat__thread thread;
    leat__dir dir; /* used by the thread until it is joined */
    int rc;
    leat_error err;
} slot;

struct leat__dir_ahead {
    slot slots[LEAT__DIR_AHEAD];
};

leat__dir_ahead *leat__dir_ahead_open(void)
{
    return LEAT_NEW(IO, leat__dir_ahead);
}

static void clear(slot *s)
{
    leat__thread_join(&s->thread);
    leat__dir_reset(&s->dir);
    leat__free(s->path);
    *s = (slot){0};
}

void leat__dir_ahead_close(leat__dir_ahead **a)
{
    if (*a == NULL) return;
    for (size_t i = 0; i < LEAT__DIR_AHEAD; i++) clear(&(*a)->slots[i]);
    leat__free(*a);
    *a = NULL;
}

static void list(void *arg)
{
    slot *s = arg;
    s->rc = leat__dir_read(&s->dir, s->path, false, &s->err);
}

static slot *find(leat__dir_ahead *a, const char *path)
{
    for (size_t i = 0; i < LEAT__DIR_AHEAD; i++) {
        slot *s = &a->slots[i];
        if (path == NULL ? s->path == NULL : s->path != NULL && strcmp(s->path, path) == 0) return s;
    }
    return NULL;
}

bool leat__dir_ahead_want(leat__dir_ahead *a, const char *path)
{
    if (find(a, path) != NULL) return true;
    slot *s = find(a, NULL);
    if (s == NULL) return false;
    s->path = leat__strdup(LEAT__MEM_IO, path);
    if (s->path != NULL && leat__thread_start(&s->thread, "leat-list", list, s, NULL) == 0) return true;
    clear(s);
    return false;
}

int leat__dir_ahead_read(leat__dir_ahead *a, leat__dir *d, const char *path, leat_error *err)
{
    slot *s = a != NULL ? find(a, path) : NULL;
    if (s == NULL) return leat__dir_read(d, path, false, err);
    leat__thread_join(&s->thread);
    int rc = s->rc;
    if (rc != 0 && err != NULL) *err = s->err;
    leat__dir old = *d;
    *d = s->dir;
    s->dir = old;
    clear(s);
    return rc;
}
