/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat --version`: version, optional parts, and which instruction sets this CPU uses.
 */
#include <string.h>

#include <leat/version.h>

#include "base/json.h"
#include "base/num.h"
#include "cli_frame.h"
#include "codec/codec.h"
#include "probe/cpu.h"

#if defined(LEAT_HAVE_URING)
#define HAS_URING true
#else
#define HAS_URING false
#endif
#if defined(LEAT_HAVE_HTTP)
#define HAS_HTTP true
#else
#define HAS_HTTP false
#endif
#if defined(LEAT_HAVE_FAULT)
#define HAS_FAULT true
#else
#define HAS_FAULT false
#endif

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#if defined(__clang__)
#define COMPILER "clang " TEXT(__clang_major__) "." TEXT(__clang_minor__) "." TEXT(__clang_patchlevel__)
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

#ifdef NDEBUG
#define BUILD "release"
#else
#define BUILD "debug"
#endif

static const struct {
    const char *name;
    bool there;
} features[] = {
    {"uring", HAS_URING},
    {"http", HAS_HTTP},
    {"fault", HAS_FAULT},
};

/* True for formats of files; tiles and raw pixels exist only in packs. */
static bool is_file_format(int id)
{
    return leat__codec_facts_of((leat__codec_id)id)->suffixes[0] != '\0';
}

static int version_json(cli *c)
{
    leat__buf buf;
    leat__json j;
    leat__buf_init(&buf, LEAT__MEM_MISC, CLI_PAGE_MAX);
    leat__json_init(&j, &buf, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "version", LEAT_VERSION);
    leat__json_key(&j, "features");
    leat__json_object(&j);
    for (size_t i = 0; i < LEAT_COUNT(features); i++)
        leat__json_kbool(&j, features[i].name, features[i].there);
    for (int id = 1; id < LEAT__CODEC_COUNT; id++)
        if (is_file_format(id))
            leat__json_kbool(&j, leat__codec_name((leat__codec_id)id), leat__codec_built((leat__codec_id)id));
    leat__json_end(&j);
    leat__json_kstr(&j, "isa", leat__cpu_level(leat__cpu_flags()));
    leat__json_kstr(&j, "isa_host", leat__cpu_level(leat__cpu_detected()));
    leat__json_kstr(&j, "compiler", COMPILER);
    leat__json_kstr(&j, "build", BUILD);
    leat__json_end(&j);
    return cli_json(c, &buf);
}

int cli_version(cli *c)
{
    if (c->json) return version_json(c);
    cli_out(c, "leat %s\n", LEAT_VERSION);
    cli_out(c, "features:");
    for (size_t i = 0; i < LEAT_COUNT(features); i++)
        cli_out(c, " %c%s", features[i].there ? '+' : '-', features[i].name);
    for (int id = 1; id < LEAT__CODEC_COUNT; id++)
        if (is_file_format(id))
            cli_out(c, " %c%s", leat__codec_built((leat__codec_id)id) ? '+' : '-',
                    leat__codec_name((leat__codec_id)id));
    cli_out(c, "\nisa: %s (this CPU has %s)\n", leat__cpu_level(leat__cpu_flags()),
            leat__cpu_level(leat__cpu_detected()));
    cli_out(c, "compiler: %s, %s build\n", COMPILER, BUILD);
    return CLI_OK;
}
