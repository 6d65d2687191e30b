/* SPDX-License-Identifier: Apache-2.0
 *
 * Fake /proc and /sys trees for the tests of this module: a temporary folder that becomes the
 * sysroot, and files in it.
 */
#ifndef LEAT_TEST_PROBE_TREE_H
#define LEAT_TEST_PROBE_TREE_H

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe/sysfile.h"

static char tree_root[128];

static inline int tree_open(void **state)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(tree_root, sizeof tree_root, "%.90s/leat-tree-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(tree_root)) return -1;
    leat__sysroot_set(tree_root);
    return 0;
}

static inline int tree_remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    return remove(path);
}

static inline int tree_close(void **state)
{
    leat__sysroot_set(NULL);
    return nftw(tree_root, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void tree_dirs(const char *path)
{
    char full[PATH_MAX];
    snprintf(full, sizeof full, "%s%s", tree_root, path);
    for (char *at = full + strlen(tree_root) + 1; *at; at++) {
        if (*at != '/') continue;
        *at = '\0';
        mkdir(full, 0755);
        *at = '/';
    }
}

/* Writes a file, creating the folders above it. */
static inline void tree_file(const char *path, const char *text)
{
    char full[PATH_MAX];
    tree_dirs(path);
    snprintf(full, sizeof full, "%s%s", tree_root, path);
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

#endif
