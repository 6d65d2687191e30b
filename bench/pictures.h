/* SPDX-License-Identifier: Apache-2.0
 *
 * The JPEGs of a folder in memory, for the kernel benches: each with the padding that decoders may
 * read. Kept until the process ends.
 */
#ifndef LEAT_BENCH_PICTURES_H
#define LEAT_BENCH_PICTURES_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "codec/codec.h"

typedef struct jpeg_file {
    char name[128];
    uint8_t *data;
    size_t len;
    leat__image_info info;
} jpeg_file;

/* False when it is not a JPEG. */
static inline bool jpeg_file_load(jpeg_file *j, const char *path)
{
    FILE *const f = fopen(path, "rb");
    if (f == NULL) return false;
    fseek(f, 0, SEEK_END);
    j->len = (size_t)ftell(f);
    rewind(f);
    j->data = calloc(1, j->len + LEAT__CODEC_PADDING);
    const bool whole = j->data != NULL && fread(j->data, 1, j->len, f) == j->len;
    fclose(f);
    snprintf(j->name, sizeof j->name, "%s", leat__path_base(path));
    if (whole && leat__codec_probe(LEAT__CODEC_JPEG, j->data, j->len, &j->info, NULL) == 0) return true;
    free(j->data);
    return false;
}

/* Passes every JPEG of the folder, and of its sub-folders down to `depth`, by name, to `take`
 * until it returns false. */
static inline bool jpeg_folder_load(const char *path, int depth, bool (*take)(const jpeg_file *j))
{
    struct dirent **entries;
    const int n = scandir(path, &entries, NULL, alphasort);
    bool more = true;
    for (int i = 0; i < n; i++) {
        char full[4096];
        jpeg_file j;
        const char *const name = entries[i]->d_name;
        snprintf(full, sizeof full, "%s/%s", path, name);
        if (leat__str_ends_nocase(name, ".jpeg") || leat__str_ends_nocase(name, ".jpg"))
            more = more && (!jpeg_file_load(&j, full) || take(&j));
        else if (name[0] != '.' && depth > 0) more = more && jpeg_folder_load(full, depth - 1, take);
        free(entries[i]);
    }
    if (n >= 0) free(entries);
    return more;
}

#endif
