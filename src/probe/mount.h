/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading /proc/self/mountinfo: where file systems are, and which one a path is on.
 */
#ifndef LEAT_PROBE_MOUNT_H
#define LEAT_PROBE_MOUNT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct leat__mount {
    uint32_t major, minor;
    char root[PATH_MAX];  /* the part of the file system that is mounted */
    char point[PATH_MAX]; /* mount point; "" for "/" */
    char type[32];        /* "ext4", "fuse.sshfs" … */
    char source[256];     /* "/dev/vda1", "server:/export" … */
    char options[512];    /* of the file system itself; truncated when longer */
} leat__mount;

/* Parses one line (up to its newline or NUL); false when malformed. */
bool leat__mount_parse(const char *line, leat__mount *m);

/* Finds the last mount of this type in mountinfo whose options contain `option` (NULL: any). Later mounts
 * hide earlier ones. */
bool leat__mount_find(const char *mountinfo, const char *type, const char *option, leat__mount *m);

/* Finds the mount that holds an absolute, resolved path. */
bool leat__mount_of(const char *mountinfo, const char *path, leat__mount *m);

/* True when `name` is one of the words of the comma-separated list. */
bool leat__mount_option(const char *list, size_t len, const char *name);

#endif
