/* SPDX-License-Identifier: Apache-2.0
 *
 * See view.h: opening, the dispatch of requests, and the server.
 */
#include "view/view.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "io/url.h"
#include "view/view_impl.h"
#include "view/view_page.h"

#define MEMORY (UINT64_C(1) << 30)
#define BODY_MAX ((size_t)16 << 20)
#define THREADS 8u /* browsers open six connections: a sort must not block thumbnails */

/* ---- opening ---- */

static int make_secret(char out[33], leat_error *err)
{
    uint8_t bytes[16];
    size_t got = 0;
    while (got < sizeof bytes) {
        const ssize_t n = getrandom(bytes + got, sizeof bytes - got, 0);
        if (n < 0 && errno != EINTR) return leat__fail_errno(err, errno, "no random numbers");
        got += n > 0 ? (size_t)n : 0;
    }
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* Checks a given name when the view opens: saving comes only after the work of selecting. */
static int check_save(const char *save, leat_error *err)
{
    const char *name = leat__path_base(save);
    struct stat st;
    if (leat__path_remote(save))
        return leat__fail(err, LEAT_EINVAL, "%s: selections are saved to a local file", save);
    if (!name[0] || (stat(save, &st) == 0 && S_ISDIR(st.st_mode)))
        return leat__fail(err, LEAT_EINVAL, "%s: is a folder: name a file in it", save);
    char *folder = name == save ? leat__strdup(LEAT__MEM_MISC, ".")
                                : leat__strndup(LEAT__MEM_MISC, save, (size_t)(name - save));
    if (!folder) return leat__fail_nomem(err, strlen(save), "a path");
    int rc = 0;
    if (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode))
        rc = leat__fail(err, LEAT_ENOENT, "%s: there is no folder %s to save into", save, folder);
    else if (access(folder, W_OK | X_OK) != 0)
        rc = leat__fail(err, LEAT_EINVAL, "%s: the folder %s cannot be written to", save, folder);
    leat__free(folder);
    return rc;
}

/* Decides where selections are saved: beside a local pack, else in the working directory. */
static int set_save(leat__view *v, const leat__view_opts *o, leat_error *err)
{
    leat__buf path;
    leat__buf_init(&path, LEAT__MEM_MISC, 1u << 20);
    if (o->save) {
        leat__buf_append(&path, o->save, strlen(o->save) - (leat__str_ends(o->save, ".leat") ? 5 : 0));
    } else {
        size_t len = strlen(o->pack);
        const char *name = leat__path_remote(o->pack) ? leat__path_name(o->pack, &len) : o->pack;
        leat__buf_append(&path, name, len - (len > 5 && strncmp(name + len - 5, ".leat", 5) == 0 ? 5 : 0));
        leat__buf_puts(&path, ".selection");
    }
    v->save = leat__buf_status(&path) == 0 ? leat__strdup(LEAT__MEM_MISC, leat__buf_str(&path)) : NULL;
    leat__buf_reset(&path);
    return v->save ? 0 : leat__fail_nomem(err, 0, "a path");
}

int leat__view_open(leat__view **out, const leat__view_opts *o, leat_error *err)
{
    int rc;
    *out = NULL;
    leat__view *v = LEAT_NEW(MISC, leat__view);
    if (!v) return leat__fail_nomem(err, sizeof *v, "a view");
    leat__mutex_init(&v->lock);
    LEAT_GO(rc, out, make_secret(v->token, err));
    LEAT_GO(rc, out, make_secret(v->nonce, err));
    snprintf(v->policy, sizeof v->policy,
             "default-src 'none'; img-src 'self'; connect-src 'self'; script-src 'nonce-%s'; style-src "
             "'nonce-%s'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
             v->nonce, v->nonce);
    LEAT_GO(rc, out,
            leat__view_data_open(&v->data, o->pack, o->with, o->with_count, o->field,
                                 o->memory ? o->memory : MEMORY, err));
    if (o->save) LEAT_GO(rc, out, check_save(o->save, err));
    LEAT_GO(rc, out, set_save(v, o, err));
    LEAT_GO(rc, out, leat__view_selection_init(&v->selection, v->data.rows, err));
    leat_pack *pack = v->data.source[0].pack;
    if (o->selection) LEAT_GO(rc, out, leat__view_selection_load(&v->selection, pack, o->selection, err));
    LEAT_GO(rc, out, leat__view_thumbs_open(&v->thumbs, pack, v->data.image, err));
    *out = v;
    v = NULL;
out:
    leat__view_close(&v);
    return rc;
}

static void drop_result(leat__view *v, leat__view_result *r)
{
    leat__view_rows_reset(&v->data, &r->rows);
    leat__free(r->query);
    memset(r, 0, sizeof *r);
}

/* Stops the server and any long-running request immediately. */
static void stop(leat__view *v)
{
    atomic_store(&v->data.stopping, true);
    leat__httpd_close(&v->httpd);
}

void leat__view_close(leat__view **view)
{
    leat__view *v = *view;
    if (!v) return;
    stop(v);
    for (uint32_t i = 0; i < LEAT__VIEW_RESULTS; i++) drop_result(v, &v->result[i]);
    leat__view_thumbs_close(&v->thumbs);
    leat__view_selection_reset(&v->selection);
    leat__view_data_close(&v->data);
    leat__mutex_destroy(&v->lock);
    leat__free(v->save);
    leat__free(v);
    *view = NULL;
}

uint32_t leat__view_row_count(const leat__view *v)
{
    return v->data.rows;
}

uint32_t leat__view_selected_count(const leat__view *v)
{
    return v->selection.count;
}

uint32_t leat__view_column_count(const leat__view *v)
{
    return v->data.column_count;
}

const char *leat__view_token(const leat__view *v)
{
    return v->token;
}

/* ---- results of queries ---- */

int leat__view_rows_for(leat__view *v, const char *query, leat__view_rows **rows, leat_error *err)
{
    const uint64_t selection = leat__view_query_selects(query) ? v->selection.version + 1 : 0;
    leat__view_result *oldest = &v->result[0];
    if (!query) query = "";
    for (uint32_t i = 0; i < LEAT__VIEW_RESULTS; i++) {
        leat__view_result *r = &v->result[i];
        if (r->used < oldest->used) oldest = r;
        if (!r->query || r->selection != selection || strcmp(r->query, query) != 0) continue;
        r->used = ++v->clock;
        *rows = &r->rows;
        return 0;
    }
    drop_result(v, oldest);
    int rc = leat__view_query(&v->data, query, v->selection.bits, &oldest->rows, err);
    for (uint32_t i = 0; rc == LEAT_EBUDGET && i < LEAT__VIEW_RESULTS; i++) drop_result(v, &v->result[i]);
    if (rc == LEAT_EBUDGET) rc = leat__view_query(&v->data, query, v->selection.bits, &oldest->rows, err);
    if (rc == 0) oldest->query = leat__strdup(LEAT__MEM_MISC, query);
    if (rc == 0 && !oldest->query) rc = leat__fail_nomem(err, strlen(query), "a query");
    if (rc != 0) {
        drop_result(v, oldest);
        return rc;
    }
    oldest->selection = selection;
    oldest->used = ++v->clock;
    *rows = &oldest->rows;
    return 0;
}

/* ---- the page and its facts ---- */

static int answer_page(leat__view *v, const leat__httpd_request *r, leat__httpd_answer *a, leat_error *err)
{
    static const char mark[] = "@NONCE@";
    const char *at = leat__view_page, *next;
    (void)r;
    a->type = "text/html; charset=utf-8";
    a->policy = v->policy;
    for (; (next = strstr(at, mark)) != NULL; at = next + strlen(mark)) {
        leat__buf_append(&a->body, at, (size_t)(next - at));
        leat__buf_puts(&a->body, v->nonce);
    }
    leat__buf_puts(&a->body, at);
    return leat__buf_status(&a->body) == 0 ? 0 : leat__fail_nomem(err, a->body.len, "the page");
}

static void put_column(leat__json *j, const leat__view *v, const leat__view_column *c)
{
    static const char *const kinds[] = {"number", "text", "vector"};
    leat__json_object(j);
    leat__json_kstr(j, "name", c->name);
    leat__json_kstr(j, "kind", kinds[c->kind]);
    leat__json_kstr(j, "source", v->data.source[c->source].name);
    leat__json_kbool(j, "whole", c->whole);
    if (c->kind == LEAT__VIEW_VECTOR) leat__json_ku64(j, "dim", c->dim);
    if (c->names) {
        leat__json_key(j, c->bits ? "bits" : "classes");
        leat__json_array(j);
        for (uint32_t i = 0; i < c->name_count; i++) leat__json_str(j, c->names[i]);
        leat__json_end(j);
    }
    leat__json_end(j);
}

static int answer_facts(leat__view *v, const leat__httpd_request *r, leat__httpd_answer *a, leat_error *err)
{
    leat__json j;
    (void)r;
    leat__json_init(&j, &a->body, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "pack", v->data.source[0].name);
    leat__json_ku64(&j, "rows", v->data.rows);
    leat__json_ku64(&j, "selected", v->selection.count);
    leat__json_kstr(&j, "save", v->save);
    leat__json_ku64(&j, "memory_held", v->data.held);
    leat__json_ku64(&j, "memory", v->data.budget);
    leat__json_key(&j, "columns");
    leat__json_array(&j);
    for (uint32_t i = 0; i < v->data.column_count; i++) put_column(&j, v, &v->data.column[i]);
    leat__json_end(&j);
    leat__json_end(&j);
    return leat__buf_status(&a->body) == 0 ? 0 : leat__fail_nomem(err, a->body.len, "an answer");
}

/* ---- the selection ---- */

static int select_rows(leat__view *v, const json_t *body, leat_error *err)
{
    const json_t *rows = json_object_get(body, "rows"), *query = json_object_get(body, "q"),
                 *on = json_object_get(body, "on");
    if (!json_is_boolean(on) || json_is_array(rows) == json_is_string(query))
        return leat__fail(err, LEAT_EINVAL, "needs \"on\", and \"rows\" or \"q\"");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!json_is_integer(row) || json_integer_value(row) < 0 || json_integer_value(row) >= v->data.rows)
            return leat__fail(err, LEAT_EINVAL, "rows: there is no such row");
    }
    for (size_t i = 0; i < json_array_size(rows); i++)
        leat__view_select(&v->selection, (uint32_t)json_integer_value(json_array_get(rows, i)),
                          json_is_true(on));
    if (!query) return 0;
    leat__view_rows *found;
    LEAT_TRY(leat__view_rows_for(v, json_string_value(query), &found, err));
    for (uint32_t i = 0; i < found->count; i++)
        leat__view_select(&v->selection, found->row[i], json_is_true(on));
    return 0;
}

static int answer_select(leat__view *v, const leat__httpd_request *r, leat__httpd_answer *a, leat_error *err)
{
    json_error_t why;
    json_t *body = json_loadb(r->body, r->body_len, 0, &why);
    int rc = !body && json_error_code(&why) == json_error_numeric_overflow
                 ? leat__fail(err, LEAT_EINVAL, "rows: there is no such row")
                 : select_rows(v, body, err);
    json_decref(body);
    if (rc != 0) return rc;
    leat__buf_printf(&a->body, "{\"selected\":%u}", v->selection.count);
    return 0;
}

static int answer_save(leat__view *v, const leat__httpd_request *r, leat__httpd_answer *a, leat_error *err)
{
    char *path = NULL;
    leat__json j;
    (void)r;
    if (v->selection.count == 0) return leat__fail(err, LEAT_EINVAL, "no image is selected");
    LEAT_TRY(leat__view_selection_save(&v->selection, v->data.source[0].pack, v->save, &v->data.stopping,
                                       &path, err));
    leat__json_init(&j, &a->body, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "path", path);
    leat__json_ku64(&j, "selected", v->selection.count);
    leat__json_end(&j);
    leat__free(path);
    return 0;
}

/* ---- pictures: without the lock ---- */

static int answer_picture(leat__view *v, const leat__httpd_request *r, const char *path,
                          leat__httpd_answer *a, leat_error *err)
{
    uint64_t row, side;
    if (!leat__str_to_u64(path + 2, &row) || row >= v->data.rows)
        return leat__fail(err, LEAT_ENOENT, "there is no such row");
    a->keep = true;
    if (path[0] == 'i') return leat__view_image(v->thumbs, row, &a->body, &a->type, err);
    LEAT_TRY(leat__view_number_arg(r, "s", 192, LEAT__THUMB_SIDE_MAX, &side, err));
    if (side == 0) return leat__fail(err, LEAT_EINVAL, "s: must be above 0");
    a->type = "image/jpeg";
    return leat__view_thumb(v->thumbs, row, (uint32_t)side, &a->body, err);
}

/* ---- dispatch ---- */

static const struct {
    const char *path;
    bool post;
    leat__view_part part;
} parts[] = {
    {"", false, answer_page},
    {"facts", false, answer_facts},
    {"rows", false, leat__view_answer_rows},
    {"histogram", false, leat__view_answer_histogram},
    {"groups", false, leat__view_answer_groups},
    {"map", false, leat__view_answer_map},
    {"similar", false, leat__view_answer_similar},
    {"sample", false, leat__view_answer_sample},
    {"select", true, answer_select},
    {"save", true, answer_save},
};

static uint32_t status_of(int code)
{
    switch (code) {
    case LEAT_EINVAL:
    case LEAT_ENOFIELD:
    case LEAT_ENOCLASS: return 400;
    case LEAT_ENOENT: return 404;
    case LEAT_EBUDGET:
    case LEAT_ELIMIT: return 413;
    case LEAT_EDATA:
    case LEAT_EFORMAT:
    case LEAT_ENOTSUP: return 422;
    default: return 500;
    }
}

/* Returns the path after the token, or NULL when the path does not begin with it. Compares in
 * constant time. */
static const char *behind_token(const leat__view *v, const char *path)
{
    const size_t len = strlen(v->token);
    unsigned differ = 0;
    if (strlen(path) < len + 2 || path[0] != '/' || path[len + 1] != '/') return NULL;
    for (size_t i = 0; i < len; i++) differ |= (unsigned)(path[i + 1] ^ v->token[i]);
    return differ ? NULL : path + len + 2;
}

static int dispatch(leat__view *v, const leat__httpd_request *r, const char *path, leat__httpd_answer *a,
                    leat_error *err)
{
    if (!r->post && (path[0] == 't' || path[0] == 'i') && path[1] == '/')
        return answer_picture(v, r, path, a, err);
    a->type = "application/json";
    for (size_t i = 0; i < LEAT_COUNT(parts); i++) {
        if (parts[i].post != r->post || strcmp(parts[i].path, path) != 0) continue;
        leat__mutex_lock(&v->lock);
        int rc = parts[i].part(v, r, a, err);
        leat__mutex_unlock(&v->lock);
        return rc;
    }
    return leat__fail(err, LEAT_ENOENT, "there is no such page");
}

void leat__view_answer(void *view, const leat__httpd_request *r, leat__httpd_answer *a)
{
    leat__view *v = view;
    leat_error err = {0};
    const char *path = behind_token(v, r->path);
    a->status = 403;
    if (!path) return;
    const int rc = dispatch(v, r, path, a, &err);
    a->status = rc == 0 ? 200 : status_of(rc);
    if (rc == 0) return;
    leat__buf_clear(&a->body);
    a->type = "text/plain; charset=utf-8";
    a->keep = false;
    leat__buf_puts(&a->body, err.message);
}

/* ---- the server ---- */

int leat__view_serve(leat__view *v, uint16_t port, leat_error *err)
{
    const leat__httpd_opts o = {.port = port,
                                .threads = THREADS,
                                .body_max = BODY_MAX,
                                .cat = LEAT__MEM_MISC,
                                .what = "leat view",
                                .handler = leat__view_answer,
                                .cookie = v};
    return leat__httpd_open(&v->httpd, &o, err);
}

uint16_t leat__view_port(const leat__view *v)
{
    return leat__httpd_port(v->httpd);
}
