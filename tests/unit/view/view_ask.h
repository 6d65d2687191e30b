/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to a view without a server.
 */
#ifndef LEAT_TEST_VIEW_ASK_H
#define LEAT_TEST_VIEW_ASK_H

#include "view_box.h"

#include "view/view.h"

/* Arguments "name=value&name=value", not encoded. */
static inline const char *ask_arg(const void *from, const char *name)
{
    static _Thread_local char value[4][1024];
    static _Thread_local unsigned next;
    const size_t len = strlen(name);
    for (const char *at = from; at; at = strchr(at, '&') ? strchr(at, '&') + 1 : NULL)
        if (strncmp(at, name, len) == 0 && at[len] == '=') {
            char *to = value[next++ % 4];
            snprintf(to, sizeof value[0], "%.*s", (int)strcspn(at + len + 1, "&"), at + len + 1);
            return to;
        }
    return NULL;
}

/* GET, or POST when there is a body. Returns the status; `a` is reset by the caller. */
static inline uint32_t ask_view(leat__view *v, const char *path, const char *args, const char *body,
                                leat__httpd_answer *a)
{
    char full[256];
    snprintf(full, sizeof full, "/%s/%s", leat__view_token(v), path);
    const leat__httpd_request r = {.post = body != NULL,
                                   .path = full,
                                   .body = body ? body : "",
                                   .body_len = body ? strlen(body) : 0,
                                   .arg = ask_arg,
                                   .from = args};
    memset(a, 0, sizeof *a);
    leat__buf_init(&a->body, LEAT__MEM_MISC, 1 << 24);
    leat__view_answer(v, &r, a);
    return a->status;
}

#endif
