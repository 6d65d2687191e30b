/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that need PyTorch or Ray are parsed here, against their tables, and run in Python. The process is
 * replaced (exec), so that process id, signals and exit code stay those of the caller's child: launchers such
 * as torchrun and SLURM see one process.
 */
#include "cli_python.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "cli_parse.h"

#define NAME_MAX_BYTES 64

/* A Python script that starts the command. It prints what to install if the package or one of its
 * requirements is missing. */
static const char start[] =
    "import importlib, signal, sys\n"
    "try:\n"
    "    main = importlib.import_module(sys.argv[3]).main\n"
    "    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))\n"
    "    sys.exit(main(sys.argv[1], sys.argv[2]))\n"
    "except KeyboardInterrupt:\n"
    "    sys.exit(130)\n"
    "except ModuleNotFoundError as e:\n"
    "    if (e.name or '').split('.')[0] not in ('leat', 'torch', 'numpy'):\n"
    "        raise\n"
    "    import shlex\n"
    "    what = sys.argv[4] if e.name.startswith('leat') else e.name.split('.')[0]\n"
    "    sys.exit(print(f'leat {sys.argv[1]}: {sys.executable} has no module {e.name!r}: '\n"
    "                   f'install it with: {shlex.quote(sys.executable)} -m pip install {what}',\n"
    "                   file=sys.stderr) or 4)\n";

static void write_value(leat__json *j, const leat__param *p, const leat__value *v)
{
    switch (p->kind) {
    case LEAT__PARAM_FLAG: leat__json_bool(j, v->i != 0); break;
    case LEAT__PARAM_INT: leat__json_i64(j, v->i); break;
    case LEAT__PARAM_BYTES:
    case LEAT__PARAM_BYTES10: leat__json_u64(j, v->u); break;
    case LEAT__PARAM_FLOAT:
    case LEAT__PARAM_SECONDS: leat__json_double(j, v->f); break;
    case LEAT__PARAM_CHOICE:
    case LEAT__PARAM_STRING:
    case LEAT__PARAM_PATH: leat__json_str(j, v->s); break;
    case LEAT__PARAM_FLOATS:
    case LEAT__PARAM_INTS:
        leat__json_array(j);
        for (int i = 0; i < v->count; i++) leat__json_double(j, v->list[i]);
        leat__json_end(j);
        break;
    }
}

void cli_python_json(const cli *c, leat__buf *out)
{
    char name[NAME_MAX_BYTES];
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_key(&j, "args");
    leat__json_array(&j);
    for (size_t i = 0; i < cli_arg_count(c); i++) leat__json_str(&j, cli_arg(c, i));
    leat__json_end(&j);
    for (size_t i = 0; i < c->line->param_count; i++) {
        const leat__param *p = c->line->params[i];
        if (!c->line->values[i].set) continue;
        snprintf(name, sizeof name, "%s", p->name);
        for (char *s = name; *s; s++)
            if (*s == '-') *s = '_';
        leat__json_key(&j, name);
        write_value(&j, p, &c->line->values[i]);
    }
    leat__json_end(&j);
}

/* Returns the first argument or option that is not UTF-8, or NULL: JSON would change its bytes to
 * another name. */
static const char *not_utf8(const cli *c)
{
    size_t good;
    for (size_t i = 0; i < cli_arg_count(c); i++)
        if (!leat__utf8_valid(cli_arg(c, i), strlen(cli_arg(c, i)), &good)) return cli_arg(c, i);
    for (size_t i = 0; i < c->line->param_count; i++) {
        const leat__param *p = c->line->params[i];
        const leat__value *v = &c->line->values[i];
        if (!v->set || (p->kind != LEAT__PARAM_STRING && p->kind != LEAT__PARAM_PATH)) continue;
        if (!leat__utf8_valid(v->s, strlen(v->s), &good)) return v->s;
    }
    return NULL;
}

int cli_python_run(cli *c, const char *module, const char *platform, const char *needs)
{
    leat__buf json;
    const char *from_env = getenv("LEAT_PYTHON");
    const char *python = c->self ? c->self[0] : from_env && from_env[0] ? from_env : "python3";
    const char *bad = not_utf8(c);
    if (bad != NULL)
        return cli_usage(c, "%s: leat %s takes names in UTF-8 only: rename it, or use a link", bad,
                         c->command->name);
    leat__buf_init(&json, LEAT__MEM_MISC, (size_t)1 << 20);
    cli_python_json(c, &json);
    if (leat__buf_status(&json) != 0) {
        leat__buf_reset(&json);
        return cli_failf(c, CLI_FIT, "out of memory");
    }
    char *const argv[] = {(char *)python,
                          (char *)"-P",
                          (char *)"-c",
                          (char *)start,
                          (char *)c->command->name,
                          (char *)leat__buf_str(&json),
                          (char *)module,
                          (char *)needs,
                          NULL};
    /* block Ctrl-C until the module is imported: Python would print a traceback */
    sigset_t interrupt, before;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &before);
    execvp(python, argv);
    const int failed = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    leat__buf_reset(&json);
    if (failed == ENOENT)
        return cli_failf(c, CLI_DATA,
                         "%s: not found; %s runs on %s: install Python 3.11 or later and "
                         "'pip install %s', or name a Python with LEAT_PYTHON",
                         python, c->command->name, platform, needs);
    return cli_failf(c, CLI_DATA, "cannot start %s: %s", python, strerror(failed));
}

int cli_python(cli *c)
{
    return cli_python_run(c, "leat._train.__main__", "PyTorch", "leat torch");
}

int cli_python_ray(cli *c)
{
    const char *on = cli_str(c, "on");
    if (!leat__str_eq(on, "ray") && !(leat__str_starts(on, "ray://") && on[strlen("ray://")]))
        return cli_usage(c, "--on: %s is not ray or ray://HOST:PORT", on);
    return cli_python_run(c, "leat._ray_main", "Ray", "leat[ray]");
}
