/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of this module: a scratch folder and files with known bytes.
 */
#ifndef IOTEST_H
#define IOTEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/mem.h"
#include "io/file.h"

static inline char *it_dir(void)
{
    const char *base = getenv("TMPDIR");
    char *dir = malloc(512);
    snprintf(dir, 512, "%s/leat-io-XXXXXX", base != NULL ? base : "/tmp");
    assert_non_null(mkdtemp(dir));
    return dir;
}

static inline void it_rmdir(char *dir)
{
    char cmd[600];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
    assert_int_equal(system(cmd), 0);
    free(dir);
}

static inline char *it_path(const char *dir, const char *name)
{
    static char paths[64][600];
    static int next;
    char *p = paths[next++ % 64];
    snprintf(p, 600, "%s/%s", dir, name);
    return p;
}

/* Byte at position i of every test file. */
static inline uint8_t it_byte(uint64_t i)
{
    return (uint8_t)((i * 2654435761u) >> 13);
}

static inline void it_make(const char *path, size_t size)
{
    uint8_t *data = malloc(size + 1);
    for (size_t i = 0; i < size; i++) data[i] = it_byte(i);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    fclose(f);
    free(data);
}

static inline void it_check(const void *data, size_t len, uint64_t offset)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < len; i++)
        if (p[i] != it_byte(offset + i))
            fail_msg("byte %zu of the read at %llu is wrong", i, (unsigned long long)offset);
}

#endif
