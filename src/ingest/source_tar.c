/* SPDX-License-Identifier: Apache-2.0
 *
 * WebDataset tar shards. Members with the same path up to the first dot of the file name form one sample;
 * the part after the dot names the field:
 *
 *   jpg png gif tif …   the field "image"       cls    the field "label" (a whole number)
 *   json                the field "json"        txt    the field "txt"
 *   seg.png, x.cls …    a field of that name, its type given by the last part
 *   anything else       a field of that name, bytes
 *
 * The fields are those of the first samples (`infer`), or a list given by the user. Samples may lack
 * some: a missing number needs a default, other values are absent, and such samples are counted. A member
 * without a field is an error, or part of no sample if the user gave the list: nothing is dropped silently. A
 * listed kind that no sample has and that has no default is also an error: it is probably a typo. The key is
 * the path of the image member, so that export can restore the file's name. Members of one sample that are
 * not side by side are an error: the parts would become several samples. Shards are streamed in the order
 * given; names never touch the file system.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "codec/codec.h"
#include "ingest/seen_names.h"
#include "ingest/source.h"
#include "ingest/tar.h"
#include "pack/page.h"

#define INFER 64       /* samples that determine the fields */
#define KINDS_MAX 200u /* longest list of extensions in a message, in bytes */

typedef struct tar_source {
    leat__source base;
    const char *const *paths; /* owned by the caller */
    uint32_t path_count, path_at;
    leat__stream *stream;
    leat__tar tar;
    leat__tar_member member; /* the next member, when `pending` */
    bool pending;
    const char *listed;    /* extensions of the members to take, owned by the caller; NULL = all */
    bool looking;          /* for listed kinds: all members are read */
    bool *has_default;     /* one per field */
    int64_t *number;       /* default of each field */
    leat__buf stem;        /* name of the current sample, without extension */
    leat__seen_names seen; /* samples of shard `seen_shard` */
    uint32_t seen_shard;
    leat__buf folder; /* of the first sample */
    uint64_t samples;
    bool several;    /* samples are in more than one folder */
    bool begun;      /* members of the current sample were read */
    uint16_t fields; /* fields of the current sample, as bits for seen_names.h */
} tar_source;

/* Returns the length of the path up to the first dot of its last part; the extension follows the dot. */
static size_t stem_len(const char *name, size_t len)
{
    size_t base = len;
    while (base > 0 && name[base - 1] != '/') base--;
    const char *dot = memchr(name + base, '.', len - base);
    return dot ? (size_t)(dot - name) : len;
}

leat_field_type leat__source_member_type(const char *ext)
{
    const char *last = strrchr(ext, '.');
    last = last ? last + 1 : ext;
    static const struct {
        const char *ext;
        leat_field_type type;
    } known[] = {{"cls", LEAT_FIELD_INT},
                 {"json", LEAT_FIELD_JSON},
                 {"txt", LEAT_FIELD_TEXT},
                 {"text", LEAT_FIELD_TEXT}};
    if (leat__codec_of_suffix(last) != LEAT__CODEC_NONE) return LEAT_FIELD_IMAGE;
    for (size_t i = 0; i < LEAT_COUNT(known); i++)
        if (strcasecmp(last, known[i].ext) == 0) return known[i].type;
    return LEAT_FIELD_BYTES;
}

/* Copies the extension in lower case to `ext`, and finds the name of its field. */
static bool field_name(const char *name, size_t len, char *ext, size_t size, const char **field)
{
    size_t stem = stem_len(name, len);
    if (stem + 1 >= len || len - stem - 1 >= size) return false;
    size_t n = len - stem - 1;
    for (size_t i = 0; i < n; i++) {
        char c = name[stem + 1 + i];
        ext[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    ext[n] = 0;
    *field = ext;
    if (!strchr(ext, '.') && leat__source_member_type(ext) == LEAT_FIELD_IMAGE) *field = "image";
    if (strcmp(ext, "cls") == 0) *field = "label";
    return true;
}

/* True for a member that is part of no sample, such as README, since the user listed other kinds. */
static bool is_stray(const tar_source *s)
{
    char ext[256];
    const char *name;
    if (!s->listed || s->looking) return false;
    return !field_name(s->member.name, s->member.name_len, ext, sizeof ext, &name) ||
           leat__source_field_find(&s->base, name) < 0;
}

static void close_shard(tar_source *s)
{
    leat__tar_reset(&s->tar);
    leat__stream_close(&s->stream);
    s->pending = false;
}

/* Reads the next regular member into s->member, across shards. Sets *end after the last shard. */
static int advance(tar_source *s, bool *end, leat_error *err)
{
    *end = false;
    while (!s->pending) {
        if (!s->stream) {
            if (s->path_at == s->path_count) {
                *end = true;
                return 0;
            }
            LEAT_TRY(leat__stream_open(&s->stream, s->paths[s->path_at++], err));
            leat__tar_init(&s->tar, s->stream);
        }
        bool over;
        LEAT_TRY(leat__tar_next(&s->tar, &s->member, &over, err));
        if (over) close_shard(s);
        else s->pending = s->member.type != '5' && !is_stray(s); /* folders have no data */
    }
    return 0;
}

static int fail_member(const tar_source *s, leat__record *r, int code, const char *what)
{
    leat_error why = {0};
    leat__fail(&why, code, "%s: member %s: %s", leat__stream_name(s->stream), s->member.name, what);
    leat__error_at(&why, NULL, -1, (int64_t)s->member.offset);
    leat__records_fail(r, &why);
    return 0;
}

static int parse_label(const tar_source *s, leat__records *run, leat__record *r, leat__item *item)
{
    char text[32];
    size_t n = 0;
    const char *p = (const char *)leat__records_data(run, item);
    for (size_t i = 0; i < item->size; i++) {
        bool blank = p[i] == ' ' || p[i] == '\n' || p[i] == '\r' || p[i] == '\t';
        if (blank) continue;
        if (n + 1 >= sizeof text) return fail_member(s, r, LEAT_EDATA, "not a whole number of 64 bits");
        text[n++] = p[i];
    }
    text[n] = 0;
    if (!leat__str_to_i64(text, &item->i)) return fail_member(s, r, LEAT_EDATA, leat__str_i64_fault(text));
    item->size = 0;
    return 0;
}

/* Turns the current member into a value of the record. Errors of the archive are returned; errors of
 * the member fail the record. */
static int take_member(tar_source *s, leat__records *run, leat__record *r, leat_error *err)
{
    const leat__tar_member *m = &s->member;
    char ext[256];
    const char *name;
    s->pending = false;
    bool named = field_name(m->name, m->name_len, ext, sizeof ext, &name);
    int field = named ? leat__source_field_find(&s->base, name) : -1;
    if (field >= 0) s->fields |= (uint16_t)(1u << field % 16);
    if (m->type != '0') return fail_member(s, r, LEAT_EFORMAT, "not a regular file");
    if (!named)
        return fail_member(
            s, r, LEAT_EFORMAT,
            "its name has no extension that names a field; a list of kinds (members) skips it");
    if (field < 0)
        return fail_member(s, r, LEAT_EFORMAT,
                           "the first samples have no member of this kind; name all kinds "
                           "(members), or look at more samples (infer)");
    leat__item *item = &r->items[field];
    if (!item->absent) return fail_member(s, r, LEAT_EDATA, "the sample has two of this kind");
    if (m->size > s->base.max_sample)
        return fail_member(s, r, LEAT_ELIMIT, "more bytes than the limit allows");
    if (field == s->base.image_field) LEAT_TRY(leat__records_key(run, r, m->name, m->name_len, err));
    if (s->base.skim) {
        item->absent = false;
        return 0;
    }
    uint8_t *to = leat__records_bytes(run, item, NULL, (size_t)m->size);
    if (!to) return leat__fail_nomem(err, m->size, "a tar member");
    LEAT_TRY(leat__tar_read(&s->tar, to, (size_t)m->size, err));
    r->bytes_in += m->size;
    leat_field_type type = (leat_field_type)s->base.fields[field].type;
    if (type == LEAT_FIELD_INT) return parse_label(s, run, r, item);
    if (type == LEAT_FIELD_TEXT && !leat__utf8_valid((const char *)to, (size_t)m->size, NULL))
        return fail_member(s, r, LEAT_EDATA, "not UTF-8 text");
    const char *fault = type == LEAT_FIELD_JSON ? leat__page_json_fault(to, (size_t)m->size) : NULL;
    return fault ? fail_member(s, r, LEAT_EDATA, fault) : 0;
}

static bool same_sample(const tar_source *s)
{
    size_t n = stem_len(s->member.name, s->member.name_len);
    return n == s->stem.len && memcmp(s->member.name, leat__buf_str(&s->stem), n) == 0;
}

static int keep_stem(tar_source *s, leat_error *err)
{
    leat__buf_clear(&s->stem);
    leat__buf_append(&s->stem, s->member.name, stem_len(s->member.name, s->member.name_len));
    return leat__buf_status(&s->stem) == 0 ? 0 : leat__fail_nomem(err, 0, "a name");
}

/* Fills in defaults for missing numbers; a sample that lacks one without a default cannot be packed. */
static void fill_missing(tar_source *s, leat__record *r)
{
    bool missing = false;
    for (uint32_t f = 0; f < s->base.field_count && !r->failed; f++) {
        leat__item *item = &r->items[f];
        if (!item->absent) continue;
        missing = true;
        if (s->base.fields[f].type != LEAT_FIELD_INT) continue;
        item->absent = false;
        item->i = s->number[f];
        if (s->has_default[f] || s->base.skim) continue;
        leat_error why = {0};
        leat__fail(&why, LEAT_EDATA,
                   "sample %s has no \"%s\", which other samples have; `default` %s=-1 sets it to -1",
                   leat__buf_str(&s->stem), s->base.fields[f].name, s->base.fields[f].name);
        leat__records_fail(r, &why);
    }
    if (missing && !r->failed) s->base.missing++;
}

/* Counts samples that are only images, in several folders. These are probably folders of classes, whose names
 * are not used. */
static void note_folder(tar_source *s)
{
    const char *name = leat__buf_str(&s->stem);
    const char *slash = strrchr(name, '/');
    const size_t len = slash ? (size_t)(slash - name) : 0;
    if (s->base.field_count > 1 || s->base.image_field < 0) return;
    if (s->samples++ == 0) (void)leat__buf_append(&s->folder, name, len);
    s->several |= len != s->folder.len || memcmp(name, leat__buf_str(&s->folder), len) != 0;
    if (s->several) s->base.in_folders = s->samples;
}

static int read_group(tar_source *s, leat__records *run, leat__record *r, bool *end, bool *torn,
                      leat_error *err)
{
    s->begun = false;
    LEAT_TRY(advance(s, end, err));
    if (*end) return 0;
    LEAT_TRY(keep_stem(s, err));
    s->begun = true;
    r->place = s->member.offset;
    uint32_t shard = s->path_at;
    bool over = false;
    if (s->seen_shard != shard) leat__seen_names_clear(&s->seen);
    s->seen_shard = shard;
    s->fields = 0;
    while (!over && s->path_at == shard && same_sample(s)) {
        LEAT_TRY(take_member(s, run, r, err));
        LEAT_TRY(advance(s, &over, err));
    }
    LEAT_TRY(leat__seen_names_add(&s->seen, leat__buf_str(&s->stem), s->stem.len, s->fields, torn, err));
    if (r->key_size == 0) LEAT_TRY(leat__records_key(run, r, leat__buf_str(&s->stem), s->stem.len, err));
    fill_missing(s, r);
    note_folder(s);
    return 0;
}

static int tar_next(leat__source *base, leat__records *run, leat__record *r, bool *end, leat_error *err)
{
    tar_source *s = (tar_source *)base;
    leat_error why = {0};
    bool torn = false;
    int rc = read_group(s, run, r, end, &torn, &why);
    /* end the run: a part of the sample is already in the pack, so the sample cannot be skipped */
    if (rc == 0 && torn)
        return leat__fail(err, LEAT_EDATA,
                          "%s: the members of \"%s\" are not side by side; make it with tar --sort=name, or "
                          "pack the folder",
                          s->paths[s->seen_shard - 1], leat__buf_str(&s->stem));
    if (rc == LEAT_EDATA || rc == LEAT_EFORMAT) {
        /* the rest of the shard cannot be read: counts as one skipped sample named after the shard, with the
         * sample before it, which may lack members */
        const char *path = s->paths[s->path_at - 1];
        if (s->begun) leat__error_context(&why, "from sample %s on", leat__buf_str(&s->stem));
        leat__records_fail(r, &why);
        r->key_size = 0;
        close_shard(s);
        return leat__source_key(run, r, path, err);
    }
    if (rc != 0 && err) *err = why;
    return rc;
}

static void tar_close(leat__source *base)
{
    tar_source *s = (tar_source *)base;
    close_shard(s);
    leat__buf_reset(&s->stem);
    leat__buf_reset(&s->folder);
    leat__seen_names_reset(&s->seen);
    leat__free(s->has_default);
    leat__free(s->number);
}

/* Adds the field for members with this extension, unless it exists. */
static int add_field(tar_source *s, const char *ext, const char *name, leat_error *err)
{
    leat_field_type type = leat__source_member_type(ext);
    if (leat__source_field_find(&s->base, name) >= 0) return 0;
    int n = leat__source_field(&s->base, name, type, err);
    if (n < 0) return n;
    if (strcmp(name, "image") == 0 && type == LEAT_FIELD_IMAGE) s->base.image_field = n;
    if (strcmp(name, "label") == 0 && type == LEAT_FIELD_INT) s->base.label_field = n;
    return 0;
}

/* Determines the fields from the members of the first samples. */
static int find_fields(tar_source *s, uint32_t samples, leat_error *err)
{
    bool end;
    char ext[256];
    const char *name;
    LEAT_TRY(advance(s, &end, err));
    if (end) return leat__fail(err, LEAT_EDATA, "%s: no samples", s->paths[0]);
    for (uint32_t i = 0; i < samples && !end; i++) {
        LEAT_TRY(keep_stem(s, err));
        while (!end && same_sample(s)) {
            const leat__tar_member *m = &s->member;
            if (m->type == '0' && field_name(m->name, m->name_len, ext, sizeof ext, &name))
                LEAT_TRY(add_field(s, ext, name, err));
            s->pending = false;
            int rc = advance(s, &end, s->base.field_count > 0 ? NULL : err);
            /* packing will report a damaged shard */
            if (rc != 0 && s->base.field_count == 0) return rc;
            if (rc != 0) end = true;
        }
    }
    if (s->base.field_count == 0)
        return leat__fail(err, LEAT_EDATA,
                          "%s: its first member has no extension that names "
                          "a field",
                          s->paths[0]);
    close_shard(s);
    s->path_at = 0;
    return 0;
}

/* Returns the field of members with the extension list[0..len), which fits in `ext`; the name points
 * into `ext`. */
static const char *field_of(const char *list, size_t len, char *ext, size_t size)
{
    char member[256];
    const char *name = ext;
    snprintf(member, sizeof member, "x.%.*s", (int)len, list);
    (void)field_name(member, len + 2, ext, size, &name);
    return name;
}

/* Determines the fields from a list such as "jpg,cls,txt". */
static int list_fields(tar_source *s, const char *list, leat_error *err)
{
    s->listed = list;
    while (*list != '\0') {
        char ext[256];
        size_t len = strcspn(list, ",");
        if (len == 0 || len + 3 > sizeof ext || memchr(list, '/', len) || list[0] == '.')
            return leat__fail(err, LEAT_EINVAL, "`members`: \"%.*s\" is not an ending of names, such as jpg",
                              (int)LEAT_MIN(len, 200u), list);
        const char *name = field_of(list, len, ext, sizeof ext);
        LEAT_TRY(add_field(s, ext, name, err));
        list += len + (list[len] == ',');
    }
    return s->base.field_count > 0 ? 0 : leat__fail(err, LEAT_EINVAL, "`members`: the list is empty");
}

/* Sets the default of the field called `name`, or of all whole numbers when it is "*". */
static int set_default(tar_source *s, const char *name, int64_t number, leat_error *err)
{
    bool every = strcmp(name, "*") == 0;
    int field = every ? -1 : leat__source_field_find(&s->base, name);
    if (!every && (field < 0 || s->base.fields[field].type != LEAT_FIELD_INT))
        return leat__fail(err, LEAT_EINVAL, "`default`: the shards have no whole numbers called \"%s\"",
                          name);
    for (uint32_t f = 0; f < s->base.field_count; f++) {
        if (every ? s->base.fields[f].type != LEAT_FIELD_INT : (int)f != field) continue;
        s->has_default[f] = true;
        s->number[f] = number;
    }
    return 0;
}

/* Parses defaults such as "label=-1,size.cls=0". */
static int take_defaults(tar_source *s, const char *list, leat_error *err)
{
    s->has_default = LEAT_NEW_ARRAY(INGEST, bool, s->base.field_count);
    s->number = LEAT_NEW_ARRAY(INGEST, int64_t, s->base.field_count);
    if (!s->has_default || !s->number) return leat__fail_nomem(err, s->base.field_count * 9u, "defaults");
    while (list && *list != '\0') {
        char name[256], value[32];
        size_t len = strcspn(list, ","), equal = strcspn(list, "=");
        if (equal == 0 || equal >= len || equal >= sizeof name || len - equal > sizeof value)
            return leat__fail(err, LEAT_EINVAL, "`default`: \"%.*s\" is not FIELD=NUMBER",
                              (int)LEAT_MIN(len, 200u), list);
        snprintf(name, sizeof name, "%.*s", (int)equal, list);
        snprintf(value, sizeof value, "%.*s", (int)(len - equal - 1), list + equal + 1);
        int64_t number;
        if (!leat__str_to_i64(value, &number))
            return leat__fail(err, LEAT_EINVAL, "`default`: %s: \"%s\" is %s", name, value,
                              leat__str_i64_fault(value));
        LEAT_TRY(set_default(s, name, number, err));
        list += len + (list[len] == ',');
    }
    return 0;
}

/* Adds the extension to a list such as "jpg, cls", unless it has it or is full. */
static void note_kind(leat__buf *kinds, const char *ext)
{
    size_t n = strlen(ext);
    for (const char *at = leat__buf_str(kinds); (at = strstr(at, ext)) != NULL; at += n)
        if ((at == leat__buf_str(kinds) || at[-1] == ' ') && (at[n] == ',' || at[n] == '\0')) return;
    if (kinds->len + n + 2 > KINDS_MAX) return;
    leat__buf_printf(kinds, "%s%s", kinds->len > 0 ? ", " : "", ext);
}

/* Reads members until all kinds of the list were seen, or to the end of the shards. *missing: the
 * first field without any member, or -1. */
static int look_for_kinds(tar_source *s, bool *seen, leat__buf *kinds, int *missing, leat_error *err)
{
    char ext[256];
    const char *name;
    bool end = false;
    for (*missing = 0; *missing < (int)s->base.field_count;) {
        if (seen[*missing]) {
            ++*missing;
            continue;
        }
        int rc = advance(s, &end, err);
        if (rc != 0 && rc != LEAT_EDATA && rc != LEAT_EFORMAT) return rc;
        if (rc == 0 && end) return 0;
        if (rc == 0 && field_name(s->member.name, s->member.name_len, ext, sizeof ext, &name)) {
            int field = leat__source_field_find(&s->base, name);
            if (field >= 0) seen[field] = true;
            note_kind(kinds, ext);
        }
        s->pending = false;
        if (rc != 0) close_shard(s); /* packing will report a damaged shard */
    }
    *missing = -1;
    return 0;
}

/* Fails, naming the listed extension of the field and the extensions that the shards have. */
static int fail_kind(const tar_source *s, int field, const char *kinds, leat_error *err)
{
    char ext[256];
    const char *list = s->listed;
    size_t len = strcspn(list, ",");
    while (strcmp(field_of(list, len, ext, sizeof ext), s->base.fields[field].name) != 0) {
        list += len + 1;
        len = strcspn(list, ",");
    }
    return leat__fail(err, LEAT_EINVAL, "`members`: no sample has a member \"%.*s\"; the shards have %s",
                      (int)LEAT_MIN(len, 200u), list, *kinds != '\0' ? kinds : "no members with an ending");
}

/* Fails when no sample has a listed kind and no default replaces it. Most lists are complete after
 * one sample; the shards are read to their end only for a rare or missing kind. */
static int check_kinds(tar_source *s, leat_error *err)
{
    leat__buf kinds;
    int missing = -1;
    bool *seen = LEAT_NEW_ARRAY(INGEST, bool, s->base.field_count);
    if (!seen) return leat__fail_nomem(err, s->base.field_count, "a list of members");
    memcpy(seen, s->has_default, s->base.field_count * sizeof *seen);
    s->looking = true;
    leat__buf_init(&kinds, LEAT__MEM_INGEST, KINDS_MAX + 1);
    int rc = look_for_kinds(s, seen, &kinds, &missing, err);
    if (rc == 0 && missing >= 0) rc = fail_kind(s, missing, leat__buf_str(&kinds), err);
    leat__buf_reset(&kinds);
    leat__free(seen);
    s->looking = false;
    close_shard(s);
    s->path_at = 0;
    return rc;
}

static const leat__source_ops ops = {
    .kind = "tar",
    .next = tar_next,
    .load = NULL,
    .close = tar_close,
};

int leat__source_tar(leat__source **out, const leat_ingest_opts *opts, leat_error *err)
{
    tar_source *s = leat__source_new(&ops, sizeof *s, opts);
    if (!s) return leat__fail_nomem(err, sizeof *s, "a source");
    leat__source *base = &s->base;
    base->takes_members = true;
    s->paths = opts->sources;
    s->path_count = opts->source_count;
    leat__buf_init(&s->stem, LEAT__MEM_INGEST, LEAT__TAR_NAME_MAX);
    leat__buf_init(&s->folder, LEAT__MEM_INGEST, LEAT__TAR_NAME_MAX);
    int rc = opts->members ? list_fields(s, opts->members, err)
                           : find_fields(s, opts->infer ? opts->infer : INFER, err);
    if (rc == 0) rc = take_defaults(s, opts->defaults, err);
    if (rc == 0 && s->listed) rc = check_kinds(s, err);
    if (rc == 0) *out = base;
    else leat__source_close(&base);
    return rc;
}
