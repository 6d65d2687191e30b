/* SPDX-License-Identifier: Apache-2.0
 *
 * Names in a file: see name_list.h. Looking up a name takes two reads, usually from the page cache: a
 * microsecond or two, little compared with opening the file it names.
 */
#include "ingest/name_list.h"

#include <string.h>

#include "base/bytes.h"
#include "base/num.h"

#define WRITE_BYTES (256u << 10) /* bytes written at a time */
#define BUFFER_MAX (64u << 20)

static int open_unnamed(leat__file **f, const char *path, const char *suffix, leat_error *err)
{
    leat__buf name;
    leat__buf_init(&name, LEAT__MEM_INGEST, 1u << 20);
    int rc = leat__buf_printf(&name, "%s%s", path, suffix);
    if (rc != 0) rc = leat__fail(err, rc, "%s: path too long or out of memory", path);
    else
        rc = leat__file_open(f, leat__buf_str(&name),
                             LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_TRUNCATE, err);
    if (rc == 0) rc = leat__path_unlink(leat__buf_str(&name), err);
    leat__buf_reset(&name);
    return rc;
}

int leat__name_list_open(leat__name_list *l, const char *path, leat_error *err)
{
    memset(l, 0, sizeof *l);
    leat__buf_init(&l->new_names, LEAT__MEM_INGEST, BUFFER_MAX);
    leat__buf_init(&l->new_ends, LEAT__MEM_INGEST, BUFFER_MAX);
    LEAT_TRY(open_unnamed(&l->names, path, ".names", err));
    return open_unnamed(&l->ends, path, ".ends", err);
}

void leat__name_list_reset(leat__name_list *l)
{
    leat__file_close(&l->names);
    leat__file_close(&l->ends);
    leat__buf_reset(&l->new_names);
    leat__buf_reset(&l->new_ends);
}

static int flush(leat__name_list *l, leat_error *err)
{
    uint64_t ends_bytes = l->count * 8 - l->new_ends.len;
    LEAT_TRY(leat__file_pwrite(l->names, l->new_names.data, l->new_names.len,
                               l->names_bytes - l->new_names.len, err));
    LEAT_TRY(leat__file_pwrite(l->ends, l->new_ends.data, l->new_ends.len, ends_bytes, err));
    leat__buf_clear(&l->new_names);
    leat__buf_clear(&l->new_ends);
    return 0;
}

int leat__name_list_add(leat__name_list *l, const char *name, size_t len, leat_error *err)
{
    uint8_t end[8];
    leat__store_u64(end, l->names_bytes + len);
    leat__buf_append(&l->new_names, name, len);
    leat__buf_append(&l->new_ends, end, sizeof end);
    if (leat__buf_status(&l->new_names) != 0 || leat__buf_status(&l->new_ends) != 0)
        return leat__fail_nomem(err, len, "a list of files");
    l->names_bytes += len;
    l->count++;
    return l->new_names.len + l->new_ends.len < WRITE_BYTES ? 0 : flush(l, err);
}

int leat__name_list_close_adding(leat__name_list *l, leat_error *err)
{
    return flush(l, err);
}

int leat__name_list_at(const leat__name_list *l, uint64_t i, leat__buf *name, leat_error *err)
{
    uint8_t ends[16] = {0}; /* ends of the previous name and of this one */
    leat__buf_clear(name);
    if (i == 0) LEAT_TRY(leat__file_pread(l->ends, ends + 8, 8, 0, err));
    else LEAT_TRY(leat__file_pread(l->ends, ends, 16, (i - 1) * 8, err));
    uint64_t start = leat__load_u64(ends), end = leat__load_u64(ends + 8);
    size_t len;
    if (end < start || end > l->names_bytes || !leat__u64_to_size(end - start, &len))
        return leat__fail(err, LEAT_EDATA, "%s: changed while it was read", leat__file_path(l->ends));
    if (leat__buf_reserve(name, len) != 0) return leat__fail_nomem(err, len, "a name");
    LEAT_TRY(leat__file_pread(l->names, name->data, len, start, err));
    name->len = len;
    name->data[len] = '\0';
    return 0;
}
