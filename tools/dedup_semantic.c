/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat dedup semantic`: finds rows with similar vectors. Its options are in the table of dedup.c.
 */
#include "dedup_semantic.h"

#include <leat/images.h>

#include "base/str.h"
#include "cli_python.h"
#include "curate/semantic_dedup.h"

static void fill(cli *c, cli_progress *bar, leat_dedup_semantic_opts *o)
{
    const char *keep = cli_str(c, "keep");
    leat_dedup_semantic_opts_init(o);
    o->input = cli_arg(c, 1);
    o->threshold = cli_float(c, "threshold");
    o->keep_share = cli_float(c, "keep-share");
    o->clusters = (uint32_t)cli_int(c, "centres");
    o->field = cli_str(c, "field");
    o->keep = leat__str_eq(keep, "outer")     ? LEAT_KEEP_SIMILAR_OUTER
              : leat__str_eq(keep, "central") ? LEAT_KEEP_SIMILAR_CENTRAL
                                              : LEAT_KEEP_SIMILAR_FIRST;
    CLI_FILL_RUN(o, c, bar);
}

static int finish(cli *c, const leat_dedup_semantic_stats *st)
{
    char took[24], memory[24];
    if (c->json) {
        leat__buf buf;
        leat__buf_init(&buf, LEAT__MEM_MISC, 1u << 20);
        leat__dedup_semantic_json(st, &buf);
        return cli_json(c, &buf);
    }
    cli_out(c, "%llu row%s: %llu to keep, %llu to remove, with a similarity of %.4f or more\n",
            (unsigned long long)st->samples, cli_s(st->samples), (unsigned long long)st->kept,
            (unsigned long long)st->removed, st->threshold);
    if (st->without_vector > 0)
        cli_out(c, "%llu row%s without a vector (zeros or not finite) %s not compared and %s\n",
                (unsigned long long)st->without_vector, cli_s(st->without_vector),
                st->without_vector == 1 ? "was" : "were", st->without_vector == 1 ? "stays" : "stay");
    cli_out(c, "%u cluster%s, %llu pair%s compared, %s, %.1f CPU-seconds, %s of memory planned%s\n",
            st->clusters, cli_s(st->clusters), (unsigned long long)st->pairs, cli_s(st->pairs),
            leat__format_seconds(st->seconds, took, sizeof took), st->cpu_seconds,
            leat__format_bytes(st->plan_memory, memory, sizeof memory),
            st->in_memory ? "" : ", vectors read from disk");
    return CLI_OK;
}

int dedup_semantic(cli *c, uint32_t inputs)
{
    leat_error err = {0};
    leat_dedup_semantic_opts o;
    leat_dedup_semantic_stats st = {.struct_size = sizeof st};
    cli_progress bar;
    if (inputs != 1) return cli_usage(c, "semantic: give one pack of vectors");
    const int zero = cli_refuse_zero(c, "keep-share");
    if (zero != CLI_OK) return zero;
    if (cli_given(c, "device")) return cli_python(c);
    fill(c, &bar, &o);
    cli_progress_begin(&bar, c, "comparing", "rows", 0);
    int rc = leat_dedup_semantic(&o, &st, &err);
    cli_progress_end(&bar);
    if (rc == 0) return finish(c, &st);
    return cli_fail_result(c, o.output, &err);
}
