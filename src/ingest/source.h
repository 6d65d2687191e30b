/* SPDX-License-Identifier: Apache-2.0
 *
 * Sources of records. A source knows its fields before the first record, returns records in an
 * order that depends only on its content, and reads their bytes later, in parallel. `next` is
 * called by one thread at a time, `load` by any number.
 */
#ifndef LEAT_INGEST_SOURCE_H
#define LEAT_INGEST_SOURCE_H

#include <leat/ingest.h>
#include <leat/pack.h>

#include "ingest/record.h"

typedef struct leat__source leat__source;

typedef struct leat__source_ops {
    const char *kind; /* "folder", "tar", "tfrecord", "manifest", "pack" */
    /* Fills in a new record: key, small values, location of its bytes. *end: there are no more. A
     * record that cannot be packed is marked as failed (leat__records_fail), so that it is counted;
     * an error ends the whole run. With source->skim, bytes need not be read. */
    int (*next)(leat__source *s, leat__records *run, leat__record *r, bool *end, leat_error *err);
    /* Reads the missing bytes; NULL when `next` has read everything. */
    int (*load)(leat__source *s, leat__records *run, leat__record *r, leat_error *err);
    void (*close)(leat__source *s);
    /* Returns the class names of an int field other than the label; NULL when none of them has names. */
    int (*class_names)(leat__source *s, uint32_t field, const char *const **names, uint64_t *count,
                       leat_error *err);
} leat__source_ops;

struct leat__source {
    const leat__source_ops *ops;
    leat_field *fields; /* names are owned */
    uint32_t field_count, field_capacity;
    int image_field, label_field; /* -1 when there is none */
    char **classes;
    uint64_t class_count, class_capacity;
    uint64_t total;      /* records, 0 when unknown */
    uint64_t max_sample; /* bytes of one sample, from the options */
    bool remote;         /* the files are in a bucket: a read is a round trip */
    bool skim;           /* skipping records that a resumed pack already has */
    bool takes_members;  /* the option `members` chooses fields */
    uint64_t ignored;    /* number of files that are not samples by their names */
    char ignored_first[64];
    bool class_folders;  /* labels are those of folders; images beside them have the label -1 */
    bool flat;           /* a folder without class folders */
    uint64_t missing;    /* number of samples without a value that others have */
    uint64_t in_folders; /* tar shards of images alone: number of samples, when they are in several folders */
    /* manifests: class names with a blank at an end; line of the first such name */
    uint64_t blank_labels, blank_label_line;
};

/* Opens the paths: one folder or manifest, any number of tar shards, TFRecord files or packs, or
 * a format of a registered reader (source_reader.h). */
int leat__source_open(leat__source **s, const leat_ingest_opts *opts, leat_error *err) LEAT_MUST_CHECK;
void leat__source_close(leat__source **s);

/* Each function opens one kind of source. */
bool leat__source_is_image(const char *name); /* by its extension, like the folder source */
int leat__source_folder(leat__source **s, const leat_ingest_opts *opts, leat_error *err) LEAT_MUST_CHECK;
int leat__source_tar(leat__source **s, const leat_ingest_opts *opts, leat_error *err) LEAT_MUST_CHECK;
leat_field_type leat__source_member_type(const char *ext); /* of a member of a tar shard, by its ending */
int leat__source_manifest(leat__source **s, const leat_ingest_opts *opts, leat_error *err) LEAT_MUST_CHECK;
int leat__source_pack(leat__source **s, const leat_ingest_opts *opts, leat_error *err) LEAT_MUST_CHECK;

int leat__source_tfrecord(leat__source **s, const leat_ingest_opts *opts, leat_error *err) LEAT_MUST_CHECK;

/* Adds records to an empty run until it is full. *end: the source has no more. */
int leat__source_fill(leat__source *s, leat__records *run, bool *end, leat_error *err) LEAT_MUST_CHECK;

/* Returns the bytes that a run holds after `next` has filled it: names or, if `next` reads
 * everything, samples. One sample may be larger. */
uint64_t leat__source_list_need(const leat__source *s);

/* Returns a pack of a source of packs; NULL past the last, and for other kinds. */
leat_pack *leat__source_pack_of(leat__source *s, uint32_t which);
/* Returns the path of a record in remote storage, else NULL. */
const char *leat__source_remote_path(leat__source *s, const leat__records *run, const leat__record *r);
/* Reads a record again, only for the result. The cookie is a leat__source_record. All records of remote
 * storage that fail without ending the run have bytes that `load` reads. */
typedef struct leat__source_record {
    leat__source *source;
    leat__records *run;
    const leat__record *record;
} leat__source_record;
int leat__source_again(void *cookie);
/* Returns the number that a field of the source has in one of the packs. */
uint32_t leat__source_pack_field(leat__source *s, uint32_t which, uint32_t field);
/* Reads the value of an int or float field; labels are renumbered as in the result. */
void leat__source_pack_number(leat__source *s, uint32_t which, uint32_t field, const leat_pack_cell *cell,
                              leat__item *item);
/* Returns the samples to omit or rename, or NULL for none. The source owns it. */
struct leat__merge *leat__source_pack_merge(leat__source *s);

/* The functions below are for the kinds of sources. leat__source_new allocates a source; `size` is the size
 * of the struct of which it is the first member. */
void *leat__source_new(const leat__source_ops *ops, size_t size, const leat_ingest_opts *opts);
/* Adds a field and returns its number, or a negative error. */
int leat__source_field(leat__source *s, const char *name, leat_field_type type,
                       leat_error *err) LEAT_MUST_CHECK;
int leat__source_field_find(const leat__source *s, const char *name); /* -1 when none */
/* Adds a class name unless it exists; returns its number, or a negative error. */
int64_t leat__source_class(leat__source *s, const char *name, leat_error *err) LEAT_MUST_CHECK;
/* Sorts classes by bytes, like torchvision's ImageFolder, so that labels are the same in both. */
void leat__source_classes_sort(leat__source *s);
int64_t leat__source_class_find(const leat__source *s, const char *name); /* in sorted classes, or -1 */
/* The columns that become the field "label", in this order; the same list as in python/leat/_formats.py. */
#define LEAT__SOURCE_LABEL_NAMES 7
extern const char *const leat__source_label_names[LEAT__SOURCE_LABEL_NAMES];
/* Reads the file at r->path into field r->path_field. */
int leat__source_load_file(leat__source *s, leat__records *run, leat__record *r,
                           leat_error *err) LEAT_MUST_CHECK;

/* Makes a path the key of the record, without the secrets of a URL. */
int leat__source_key(leat__records *run, leat__record *r, const char *path, leat_error *err) LEAT_MUST_CHECK;
/* Returns the length of a path without the query of a signed URL, which is secret. */
size_t leat__source_name_len(const char *path);

#endif
