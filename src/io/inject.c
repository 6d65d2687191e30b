/* SPDX-License-Identifier: Apache-2.0
 *
 * Injected read faults: see inject.h. Owns the process-wide list of rules; any thread may call.
 * `active` is the fast path: 0 once the environment was read and no rule is set.
 */
#include "io/inject.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "base/thread.h"

#define RULES_MAX 64
#define PATH_PART_MAX 256

typedef struct rule {
    char path[PATH_PART_MAX];
    leat__inject_rule r;
    uint64_t left; /* UINT64_MAX = always */
} rule;

static struct {
    leat__mutex lock;
    rule rules[RULES_MAX];
    size_t count;
} table = {.lock = {PTHREAD_MUTEX_INITIALIZER}};

static atomic_int active = 1; /* rules set, or the environment not read yet */
static atomic_uint_fast64_t hits;
static leat__once env_once = LEAT__ONCE_INIT;

static int add(const leat__inject_rule *r, leat_error *err)
{
    const char *path = r->path != NULL ? r->path : "";
    if (strlen(path) >= PATH_PART_MAX) return leat__fail(err, LEAT_EINVAL, "inject: path part is too long");
    int rc = 0;
    leat__mutex_lock(&table.lock);
    if (table.count == RULES_MAX) {
        rc = leat__fail(err, LEAT_ELIMIT, "inject: more than %d rules", RULES_MAX);
    } else {
        rule *t = &table.rules[table.count++];
        t->r = *r;
        memcpy(t->path, path, strlen(path) + 1);
        t->left = r->times != 0 ? r->times : UINT64_MAX;
        atomic_store(&active, 1);
    }
    leat__mutex_unlock(&table.lock);
    return rc;
}

static int set_key(leat__inject_rule *r, char *word, leat_error *err)
{
    char *value = strchr(word, '=');
    uint64_t number;
    double seconds;
    if (value == NULL) return leat__fail(err, LEAT_EINVAL, "inject: no '=' in \"%s\"", word);
    *value++ = '\0';
    if (strcmp(word, "path") == 0) {
        r->path = value;
    } else if (strcmp(word, "delay") == 0 && leat__str_to_seconds(value, &seconds) && seconds >= 0 &&
               seconds < 3600) {
        r->delay_ns = (uint64_t)(seconds * 1e9);
    } else if (strcmp(word, "offset") == 0 && leat__str_to_bytes(value, &number)) {
        r->offset = number;
    } else if (strcmp(word, "length") == 0 && leat__str_to_bytes(value, &number)) {
        r->length = number;
    } else if (strcmp(word, "times") == 0 && leat__str_to_u64(value, &number)) {
        r->times = number;
    } else if (strcmp(word, "errno") == 0 && leat__str_to_u64(value, &number) && number < 4096) {
        r->sys_errno = (int)number;
    } else {
        return leat__fail(err, LEAT_EINVAL, "inject: cannot understand %s=%s", word, value);
    }
    return 0;
}

static int parse(const char *text, leat_error *err)
{
    char *copy = leat__strdup(LEAT__MEM_IO, text);
    if (copy == NULL) return leat__fail_nomem(err, strlen(text) + 1, "inject rules");
    int rc = 0;
    char *rules = NULL, *words = NULL;
    for (char *one = strtok_r(copy, ";", &rules); one != NULL && rc == 0; one = strtok_r(NULL, ";", &rules)) {
        leat__inject_rule r = {0};
        for (char *word = strtok_r(one, ",", &words); word != NULL && rc == 0;
             word = strtok_r(NULL, ",", &words))
            rc = set_key(&r, word, err);
        if (rc == 0) rc = add(&r, err);
    }
    leat__free(copy);
    return rc;
}

static void read_environment(void)
{
    const char *text = getenv("LEAT_IO_INJECT");
    /* this is a test hook: an invalid value injects nothing */
    if (text != NULL && parse(text, NULL) != 0) table.count = 0;
    if (table.count == 0) atomic_store(&active, 0);
}

int leat__io_inject(const leat__inject_rule *wanted, leat_error *err)
{
    leat__once_run(&env_once, read_environment);
    return add(wanted, err);
}

int leat__io_inject_parse(const char *text, leat_error *err)
{
    leat__once_run(&env_once, read_environment);
    return parse(text, err);
}

void leat__io_inject_clear(void)
{
    leat__once_run(&env_once, read_environment);
    leat__mutex_lock(&table.lock);
    table.count = 0;
    atomic_store(&active, 0);
    atomic_store(&hits, 0);
    leat__mutex_unlock(&table.lock);
}

uint64_t leat__io_inject_hits(void)
{
    return atomic_load(&hits);
}

static bool touches(const leat__inject_rule *r, uint64_t offset, uint64_t len)
{
    uint64_t end = len <= UINT64_MAX - offset ? offset + len : UINT64_MAX;
    bool before_end = r->length == 0 || r->length > UINT64_MAX - r->offset || offset < r->offset + r->length;
    return end > r->offset && before_end;
}

bool leat__inject_active(void)
{
    if (atomic_load_explicit(&active, memory_order_relaxed) == 0) return false;
    leat__once_run(&env_once, read_environment);
    return atomic_load_explicit(&active, memory_order_relaxed) != 0;
}

int leat__inject_ask(const char *path, uint64_t offset, uint64_t len, uint64_t *delay_ns)
{
    *delay_ns = 0;
    if (atomic_load_explicit(&active, memory_order_relaxed) == 0) return 0;
    leat__once_run(&env_once, read_environment);
    int bad = 0;
    leat__mutex_lock(&table.lock);
    for (size_t i = 0; i < table.count; i++) {
        rule *t = &table.rules[i];
        if (t->left == 0 || !touches(&t->r, offset, len) || strstr(path, t->path) == NULL) continue;
        if (t->left != UINT64_MAX) t->left--;
        atomic_fetch_add(&hits, 1);
        *delay_ns += t->r.delay_ns;
        if (bad == 0) bad = t->r.sys_errno;
    }
    leat__mutex_unlock(&table.lock);
    return bad;
}
