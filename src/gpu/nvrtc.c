/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads NVRTC with dlopen, and caches its output: see nvrtc.h. A cached file is named after the hash of the
 * source, so another version of leat never uses it. It is written under a temporary name and renamed, so no
 * process reads a partial file. Errors with these files are ignored: the source is compiled again.
 */
#include "gpu/nvrtc.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "io/file.h"

#define PATH_SIZE 1024
#define LOG_SIZE 65536
#define KEPT_MAX ((size_t)64 << 20)

typedef void *program;

typedef struct nvrtc {
    int (*create)(program *p, const char *source, const char *name, int headers, const char *const *header,
                  const char *const *names);
    int (*compile)(program p, int options, const char *const *option);
    int (*cubin_size)(program p, size_t *size);
    int (*cubin)(program p, char *out);
    int (*log_size)(program p, size_t *size);
    int (*log)(program p, char *out);
    int (*destroy)(program *p);
} nvrtc;

static int load(nvrtc *n, leat_error *err)
{
    static const char *const libraries[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"};
    const struct {
        const char *name;
        void *slot;
    } symbols[] = {
        {"nvrtcCreateProgram", &n->create},       {"nvrtcCompileProgram", &n->compile},
        {"nvrtcGetCUBINSize", &n->cubin_size},    {"nvrtcGetCUBIN", &n->cubin},
        {"nvrtcGetProgramLogSize", &n->log_size}, {"nvrtcGetProgramLog", &n->log},
        {"nvrtcDestroyProgram", &n->destroy},
    };
    const char *named = getenv("LEAT_NVRTC");
    void *lib = named != NULL ? dlopen(named, RTLD_LAZY | RTLD_LOCAL) : NULL;
    for (size_t i = 0; i < LEAT_COUNT(libraries) && lib == NULL && named == NULL; i++)
        lib = dlopen(libraries[i], RTLD_LAZY | RTLD_LOCAL);
    if (lib == NULL)
        return leat__fail(err, LEAT_ENOTSUP,
                          "no kernels for this GPU in this build, and no NVRTC here (libnvrtc.so)");
    for (size_t i = 0; i < LEAT_COUNT(symbols); i++) {
        void *address = dlsym(lib, symbols[i].name);
        if (address == NULL) return leat__fail(err, LEAT_ENOTSUP, "NVRTC lacks %s", symbols[i].name);
        memcpy(symbols[i].slot, &address, sizeof address);
    }
    return 0;
}

/* Sets the error to the beginning of the compiler's log. */
static int say_why(const nvrtc *n, program p, leat_error *err)
{
    size_t size = 0;
    char *log = NULL;
    int rc = leat__fail(err, LEAT_EINTERNAL, "NVRTC does not compile the kernels");
    if (n->log_size(p, &size) == 0 && size > 1 && size <= LOG_SIZE)
        log = leat__zalloc(LEAT__MEM_MISC, size + 1);
    if (log != NULL && n->log(p, log) == 0)
        rc = leat__fail(err, LEAT_EINTERNAL, "NVRTC does not compile the kernels: %.200s", log);
    leat__free(log);
    return rc;
}

static int compile(const nvrtc *n, const char *source, uint32_t arch, leat__buf *out, leat_error *err)
{
    char target[48];
    snprintf(target, sizeof target, "--gpu-architecture=sm_%u", arch);
    const char *const options[] = {target, "--fmad=false"};
    program p = NULL;
    size_t size = 0, start = out->len;
    int rc = 0;
    if (n->create(&p, source, "leat_kernels.cu", 0, NULL, NULL) != 0)
        return leat__fail(err, LEAT_EINTERNAL, "NVRTC cannot create a program");
    if (n->compile(p, LEAT_COUNT(options), options) != 0) rc = say_why(n, p, err);
    else if (n->cubin_size(p, &size) != 0 || size == 0) rc = say_why(n, p, err);
    else if (leat__buf_zeros(out, size) != 0) rc = leat__fail_nomem(err, size, "kernels");
    else if (n->cubin(p, out->data + start) != 0) rc = say_why(n, p, err);
    n->destroy(&p);
    return rc;
}

/* ---- what is kept ---- */

static bool folder(char *path)
{
    const char *own = getenv("LEAT_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n;
    if (own != NULL) n = snprintf(path, PATH_SIZE, "%s", own);
    else if (xdg != NULL && xdg[0] == '/') n = snprintf(path, PATH_SIZE, "%s/leat", xdg);
    else if (home != NULL && home[0] == '/') n = snprintf(path, PATH_SIZE, "%s/.cache/leat", home);
    else return false;
    return n > 0 && n < PATH_SIZE - 80;
}

static bool read_kept(const char *path, leat__buf *out)
{
    char *data = NULL;
    size_t len = 0;
    uint64_t sum = 0;
    bool good = false;
    if (leat__file_load(path, KEPT_MAX, 0, &data, &len, NULL) == 0 && len > sizeof sum) {
        len -= sizeof sum;
        memcpy(&sum, data + len, sizeof sum);
        good = leat__hash64(data, len, 0) == sum && leat__buf_append(out, data, len) == 0;
    }
    leat__free(data);
    return good;
}

static void keep(const char *dir, const char *path, const leat__buf *made)
{
    char other[PATH_SIZE];
    uint64_t sum = leat__hash64(made->data, made->len, 0);
    mkdir(dir, 0700); /* its parent belongs to the user; if that is missing, nothing is cached */
    if (snprintf(other, sizeof other, "%s.%d", path, (int)getpid()) >= (int)sizeof other) return;
    FILE *f = fopen(other, "wb");
    if (f == NULL) return;
    bool whole = fwrite(made->data, 1, made->len, f) == made->len && fwrite(&sum, sizeof sum, 1, f) == 1;
    whole &= fclose(f) == 0;
    if (!whole || rename(other, path) != 0) unlink(other);
}

int leat__nvrtc_compile(const char *source, uint32_t arch, leat__buf *out, const char **origin,
                        leat_error *err)
{
    char dir[PATH_SIZE], path[PATH_SIZE];
    nvrtc n;
    bool keeps = folder(dir);
    if (keeps) {
        snprintf(path, sizeof path, "%.900s/kernels-%016" PRIx64 "-sm%u.bin", dir,
                 leat__hash64(source, strlen(source), 0), arch);
        *origin = "kept";
        if (read_kept(path, out)) return 0;
        leat__buf_clear(out);
    }
    *origin = "NVRTC";
    LEAT_TRY(load(&n, err));
    LEAT_TRY(compile(&n, source, arch, out, err));
    if (keeps) keep(dir, path, out);
    return 0;
}
