/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads a library: see library.h.
 */
#include "codec/library.h"

#include <dlfcn.h>
#include <string.h>

int leat__library_load(const char *format, const char *file, const char *package,
                       const leat__library_symbol *symbols, size_t count, leat_error *err)
{
    void *lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (lib == NULL)
        return leat__fail(err, LEAT_ENOTSUP,
                          "%s images need %s, which is not installed (on Debian: apt install %s)", format,
                          file, package);
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(lib, symbols[i].name);
        if (address == NULL)
            return leat__fail(err, LEAT_ENOTSUP, "%s lacks %s: a newer version is needed for %s images", file,
                              symbols[i].name, format);
        memcpy(symbols[i].slot, &address, sizeof address);
    }
    return 0;
}
