/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat plan --solve`, `--recommend`, `--documents`, `--text` and `--compare`: see plan_modes.h.
 */
#include "plan_modes.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include "base/num.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "plan/parts.h"

#define OUTPUT_MAX ((size_t)1 << 20)
#define LINE_MAX_BYTES (1 << 20)
#define TEXT 24
#define FIX 96

static const char *bytes(uint64_t value, char out[TEXT])
{
    return leat__format_bytes(value, out, TEXT);
}

/* Prints a finished JSON object and returns `code`, or the exit code of a failure to print it. */
static int finish_json(cli *c, leat__json *j, int code)
{
    leat__json_end(j);
    int rc = cli_json(c, j->out);
    return rc == CLI_OK ? code : rc;
}

static void begin_json(leat__json *j, leat__buf *out)
{
    leat__buf_init(out, LEAT__MEM_MISC, OUTPUT_MAX);
    leat__json_init(j, out, 0);
    leat__json_object(j);
    leat__json_ku64(j, "version", 1);
}

/* Writes a number, or null for 0 (not known). */
static void known(leat__json *j, const char *key, double value)
{
    leat__json_key(j, key);
    if (value > 0) leat__json_double(j, value);
    else leat__json_null(j);
}

/* 0 = no, 1 = yes, 2 = no limit is known. */
static void json_fits(leat__json *j, const char *key, uint32_t fits)
{
    leat__json_key(j, key);
    if (fits > 1) leat__json_null(j);
    else leat__json_bool(j, fits != 0);
}

static void known_u64(leat__json *j, const char *key, uint64_t value)
{
    leat__json_key(j, key);
    if (value > 0) leat__json_u64(j, value);
    else leat__json_null(j);
}

/* ---- --solve ---- */

#define REASON 160

/* Explains why no amount of memory is safe, naming what is too small. */
static int no_ram(const leat_plan_facts *facts, char reason[REASON], leat_error *err)
{
    leat_plan_facts f = *facts;
    leat_plan plan;
    uint64_t least = 0;
    char a[TEXT], b[TEXT];
    LEAT_TRY(leat_plan_make(&f, &plan, sizeof plan, err));
    f.ram_bytes = f.limit_bytes = f.whole_machine = 0;
    if (f.gpus > 0 && plan.vram.verdict > LEAT_PLAN_SAFE) {
        snprintf(reason, REASON, "no --ram is safe: the GPU's memory is too small for --batch %llu",
                 (unsigned long long)plan.config.batch);
        return 0;
    }
    if (facts->limit_bytes > 0) LEAT_TRY(leat_plan_solve(&f, LEAT_PLAN_SOLVE_RAM, &least, err));
    if (least > 0)
        snprintf(reason, REASON, "no --ram is safe with --limit %s: a limit of %llu (%s) is",
                 bytes(facts->limit_bytes, a), (unsigned long long)least, bytes(least, b));
    else
        snprintf(reason, REASON, "no --ram is safe with --memory %s, which is too small for the loader",
                 bytes(facts->memory_bytes, a));
    return 0;
}

static const char *const solved[] = {"batch", "ram", "gpus", "cpus"};

/* Explains why no value is safe. */
static int no_solution(const leat_plan_facts *facts, int field, char reason[REASON], leat_error *err)
{
    if (field == LEAT_PLAN_SOLVE_RAM) return no_ram(facts, reason, err);
    snprintf(reason, REASON, "no --%s is safe%s", solved[field],
             field == LEAT_PLAN_SOLVE_BATCH ? "" : " and has CPUs that keep the GPUs busy");
    return 0;
}

int plan_solve(cli *c, const leat_plan_facts *facts, int field)
{
    leat_error err = {0};
    uint64_t value;
    char text[TEXT], reason[REASON] = "";
    if (leat_plan_solve(facts, (leat_plan_field)field, &value, &err) != 0)
        return err.code == LEAT_EINVAL ? cli_usage(c, "%s", err.message) : cli_fail(c, &err);
    if (value == 0 && no_solution(facts, field, reason, &err) != 0) return cli_fail(c, &err);
    if (field == LEAT_PLAN_SOLVE_BATCH && (value == facts->samples || value == LEAT_PLAN_BATCH_MOST) &&
        value > 0) {
        snprintf(reason, sizeof reason, "memory does not limit the batch: %s",
                 value == facts->samples ? "this is the whole dataset" : "no larger one is planned");
        cli_warn(c, "%s", reason);
    }
    if (c->json) {
        leat__buf out;
        leat__json j;
        begin_json(&j, &out);
        leat__json_kstr(&j, "field", solved[field]);
        known_u64(&j, "value", value);
        leat__json_kstr(&j, "reason", reason[0] != '\0' ? reason : NULL);
        int rc = finish_json(c, &j, CLI_OK);
        if (rc != CLI_OK) return rc;
    } else if (value > 0 && field == LEAT_PLAN_SOLVE_RAM) {
        cli_out(c, "%llu (%s)\n", (unsigned long long)value, bytes(value, text));
    } else if (value > 0) {
        cli_out(c, "%llu\n", (unsigned long long)value);
    }
    return value > 0 ? CLI_OK : cli_failf(c, CLI_FIT, "%s", reason);
}

/* ---- --recommend ---- */

static void span(cli *c, const char *name, uint32_t low, uint32_t high, uint32_t open_ended)
{
    if (low == high) cli_row(c, name, "%u%s", low, open_ended ? " or more" : "");
    else cli_row(c, name, "%u to %u", low, high);
}

/* Formats bytes in decimal units, as the guides do: 32 GB are 32e9 bytes. */
static const char *gigabytes(uint64_t value, char out[TEXT])
{
    double v = (double)value;
    if (v >= 999.5e9) snprintf(out, TEXT, "%.*f TB", v < 10e12 ? 2 : 0, v / 1e12);
    else if (v >= 0.1e9) snprintf(out, TEXT, "%.3g GB", v / 1e9);
    else if (v >= 0.1e6) snprintf(out, TEXT, "%.3g MB", v / 1e6);
    else snprintf(out, TEXT, "%llu byte%s", (unsigned long long)value, leat__plural(value));
    return out;
}

static void machine_page(cli *c, const leat_plan_machine *m)
{
    char a[TEXT], b[TEXT];
    cli_heading(c, m->name[0] != '\0' ? m->name : m->fits ? "Cluster" : "Nothing in the guide fits");
    if (!m->fits) cli_row(c, "largest tried", "row %u of its table", m->row + 1);
    span(c, "nodes", m->nodes_low, m->nodes_high, m->open_ended);
    span(c, "GPUs", m->gpus_low, m->gpus_high, m->open_ended);
    if (m->gpu[0] != '\0') cli_row(c, "GPU", "%s", m->gpu);
    if (m->cpus > 0) cli_row(c, "vCPUs", "%u", m->cpus);
    if (m->ram_bytes > 0) cli_row(c, "memory per node", "%s", gigabytes(m->ram_bytes, a));
    if (m->ram_needed_bytes > 0) cli_row(c, "memory needed", "%s", gigabytes(m->ram_needed_bytes, a));
    if (m->vram_needed_bytes > 0)
        cli_row(c, "GPU memory needed", "%s of %s", gigabytes(m->vram_needed_bytes, a),
                gigabytes(m->vram_bytes, b));
    if (m->rule_ram_bytes > 0)
        cli_row(c, "rule of thumb", "%s of memory and %s of GPU memory for %u vCPUs",
                gigabytes(m->rule_ram_bytes, a), gigabytes(m->rule_vram_bytes, b), m->cpus);
    if (m->fits && m->rate.mid > 0) {
        cli_row(c, "rate", "%s samples/s, limited by %s%s", leat__format_count(m->rate.mid, a, TEXT),
                leat_plan_resource_name(m->limit), m->incomplete ? " (incomplete)" : "");
        cli_row(c, "time", "%s to %s", leat__format_seconds(m->total_s.low, a, TEXT),
                leat__format_seconds(m->total_s.high, b, TEXT));
    }
    if (m->raised > 0) cli_row(c, "raised", "%u row%s", m->raised, m->raised > 1 ? "s" : "");
    if (m->note[0] != '\0') cli_row(c, "note", "%s", m->note);
    cli_row(c, "source", "%s", m->source);
}

int plan_recommend(cli *c, const leat_plan_facts *facts, int kind, uint64_t amount)
{
    leat_plan_machine m;
    leat_error err = {0};
    if (leat_plan_recommend((leat_plan_kind)kind, amount, facts, &m, &err) != 0)
        return err.code == LEAT_EINVAL ? cli_usage(c, "%s", err.message) : cli_fail(c, &err);
    int code = m.fits ? CLI_OK : CLI_FIT;
    if (c->json) {
        leat__buf out;
        leat__json j;
        begin_json(&j, &out);
        leat__json_kstr(&j, "machine", m.name[0] != '\0' ? m.name : NULL);
        leat__json_kbool(&j, "fits", m.fits != 0);
        leat__json_ku64(&j, "row", m.row);
        leat__json_ku64(&j, "raised", m.raised);
        leat__json_ku64(&j, "nodes_low", m.nodes_low);
        leat__json_ku64(&j, "nodes_high", m.nodes_high);
        leat__json_ku64(&j, "gpus_low", m.gpus_low);
        leat__json_ku64(&j, "gpus_high", m.gpus_high);
        leat__json_kbool(&j, "open_ended", m.open_ended != 0);
        leat__json_kstr(&j, "gpu", m.gpu[0] != '\0' ? m.gpu : NULL);
        known_u64(&j, "cpus", m.cpus);
        known_u64(&j, "ram_bytes", m.ram_bytes);
        known_u64(&j, "ram_needed_bytes", m.ram_needed_bytes);
        known_u64(&j, "vram_bytes", m.vram_bytes);
        known_u64(&j, "vram_needed_bytes", m.vram_needed_bytes);
        known_u64(&j, "rule_ram_bytes", m.rule_ram_bytes);
        known_u64(&j, "rule_vram_bytes", m.rule_vram_bytes);
        known(&j, "samples_per_s", m.rate.mid);
        known(&j, "seconds", m.total_s.mid);
        leat__json_kstr(&j, "limit", m.limit != LEAT_PLAN_NOTHING ? leat_plan_resource_name(m.limit) : NULL);
        leat__json_kstr(&j, "note", m.note[0] != '\0' ? m.note : NULL);
        leat__json_kstr(&j, "source", m.source);
        return finish_json(c, &j, code);
    }
    machine_page(c, &m);
    return m.fits ? CLI_OK : cli_failf(c, CLI_FIT, "%s", m.note);
}

/* ---- --stage ---- */

int plan_stage(cli *c, const leat_plan_facts *facts, const char *name, uint64_t amount)
{
    leat_plan_stage s;
    leat_error err = {0};
    char a[TEXT], b[TEXT], fix[FIX];
    if (leat_plan_stage_make(name, amount, facts, &s, &err) != 0) return cli_usage(c, "%s", err.message);
    snprintf(fix, sizeof fix, "GPUs with %s (--vram %lluM)", gigabytes(s.vram_bytes, a),
             (unsigned long long)leat__ceil_div(s.vram_bytes, UINT64_C(1) << 20));
    if (c->json) {
        leat__buf out;
        leat__json j;
        begin_json(&j, &out);
        leat__json_kstr(&j, "stage", s.name);
        leat__json_kstr(&j, "unit", s.unit);
        leat__json_ku64(&j, "batch", s.batch);
        leat__json_ku64(&j, "gpus", s.gpus);
        leat__json_ku64(&j, "vram_needed_bytes", s.vram_bytes);
        leat__json_kstr(&j, "fix", s.fits ? NULL : fix);
        leat__json_kdouble(&j, "per_s", s.per_s);
        known(&j, "seconds", s.seconds);
        leat__json_key(&j, "fits");
        if (s.vram_limit == 0) leat__json_null(&j);
        else leat__json_bool(&j, s.fits != 0);
        leat__json_kstr(&j, "source", s.source);
        return finish_json(c, &j, s.fits ? CLI_OK : CLI_FIT);
    }
    cli_heading(c, s.name);
    cli_row(c, "batch", "%u", s.batch);
    cli_row(c, "GPU memory needed", "%s%s%s", gigabytes(s.vram_bytes, a), s.vram_limit > 0 ? " of " : "",
            s.vram_limit > 0 ? gigabytes(s.vram_limit, b) : "");
    cli_row(c, "rate", "about %s %s/s on %u GPU%s", leat__format_count(s.per_s, a, TEXT), s.unit, s.gpus,
            s.gpus > 1 ? "s" : "");
    if (amount > 0)
        cli_row(c, "time", "about %s for %s %s", leat__format_seconds(s.seconds, a, TEXT),
                leat__format_count((double)amount, b, TEXT), s.unit);
    cli_row(c, "source", "%s", s.source);
    return s.fits
               ? CLI_OK
               : cli_failf(c, CLI_FIT, "%s does not fit this GPU's memory. Smallest change: %s", s.name, fix);
}

/* ---- --documents ---- */

/* Describes the smallest change that makes `needed` bytes fit. */
static const char *text_fix(const char *option, uint64_t needed, uint64_t documents, char fix[FIX])
{
    char a[TEXT];
    if (documents > UINT32_MAX - 1)
        snprintf(fix, FIX, "batches of at most %u documents, with leat dedup --index", UINT32_MAX - 1);
    else if (option != NULL)
        snprintf(fix, FIX, "%s %llu (%s)", option, (unsigned long long)needed, bytes(needed, a));
    else snprintf(fix, FIX, "a machine with at least %s", leat__as_size(needed).text);
    return fix;
}

int plan_minhash(cli *c, const leat_plan_minhash_facts *facts, const char *option)
{
    leat_plan_minhash p;
    leat_error err = {0};
    char a[TEXT], b[TEXT], fix[FIX];
    if (leat_plan_minhash_make(facts, &p, &err) != 0) return cli_usage(c, "%s", err.message);
    text_fix(option, p.ram_bytes, facts->documents, fix);
    int code = p.fits ? CLI_OK : CLI_FIT;
    if (c->json) {
        leat__buf out;
        leat__json j;
        begin_json(&j, &out);
        json_fits(&j, "fits", p.fits);
        leat__json_ku64(&j, "guide_bytes", p.guide_bytes);
        leat__json_ku64(&j, "guide_all_bytes", p.guide_all_bytes);
        json_fits(&j, "guide_fits", p.guide_fits);
        leat__json_ku64(&j, "bands_per_iteration", p.bands_per_iteration);
        leat__json_ku64(&j, "passes", p.passes);
        known_u64(&j, "guide_bands_low", p.guide_bands_low);
        known_u64(&j, "guide_bands_high", p.guide_bands_high);
        leat__json_ku64(&j, "ram_bytes", p.ram_bytes);
        leat__json_ku64(&j, "work_bytes", p.work_bytes);
        leat__json_ku64(&j, "leat_passes", p.leat_passes);
        if (!p.fits) leat__json_kstr(&j, "fix", fix);
        return finish_json(c, &j, code);
    }
    cli_heading(c, "Signatures in memory (the guide's formula)");
    cli_row(c, "all bands", "%s", bytes(p.guide_all_bytes, a));
    cli_row(c, "bands at once", "%u: %s, %u pass%s%s", p.bands_per_iteration, bytes(p.guide_bytes, a),
            p.passes, p.passes > 1 ? "es" : "", p.guide_fits ? "" : "; not even one band fits the limit");
    if (p.guide_bands_high > 0)
        cli_row(c, "by dataset size", "%u to %u bands at once", p.guide_bands_low, p.guide_bands_high);
    cli_heading(c, "leat dedup fuzzy");
    cli_row(c, "memory", "%s", bytes(p.ram_bytes, a));
    cli_row(c, "disk", "%s for work files, %u pass%s over the text", bytes(p.work_bytes, a), p.leat_passes,
            p.leat_passes == 1 ? "" : "es");
    if (p.fits) return CLI_OK;
    if (facts->documents > UINT32_MAX - 1)
        return cli_failf(c, CLI_FIT, "a run takes fewer documents. Smallest change: %s", fix);
    return cli_failf(c, CLI_FIT, "deduplication needs %s of memory, the limit is %s. Smallest change: %s",
                     bytes(p.ram_bytes, a), bytes(facts->memory_bytes, b), fix);
}

/* ---- --text ---- */

static void stage_json(leat__json *j, const char *name, const leat_plan_text_stage *s)
{
    leat__json_key(j, name);
    leat__json_object(j);
    leat__json_kdouble(j, "seconds", s->seconds);
    leat__json_kdouble(j, "cpu_seconds", s->cpu_seconds);
    leat__json_kdouble(j, "disk_seconds", s->disk_seconds);
    leat__json_kdouble(j, "serial_seconds", s->serial_seconds);
    leat__json_kstr(j, "limit", leat_plan_resource_name(s->limit));
    leat__json_ku64(j, "ram_bytes", s->ram_bytes);
    leat__json_ku64(j, "work_bytes", s->work_bytes);
    leat__json_ku64(j, "output_bytes", s->output_bytes);
    leat__json_ku64(j, "passes", s->passes);
    leat__json_ku64(j, "nodes", s->nodes);
    json_fits(j, "fits", s->fits);
    leat__json_end(j);
}

static void stage_rows(cli *c, const leat_plan_text_facts *f, const leat_plan_text_stage *s)
{
    char a[TEXT], b[TEXT];
    cli_row(c, "time", "%s on %u machine%s of %u CPU%s, limited by %s",
            leat__format_seconds(s->seconds, a, TEXT), s->nodes, cli_s(s->nodes), f->cpus > 0 ? f->cpus : 1,
            cli_s(f->cpus > 0 ? f->cpus : 1),
            s->serial_seconds > s->seconds / 2 ? "the part that uses one thread"
            : s->limit == LEAT_PLAN_IO         ? "the disk"
                                               : "the CPUs");
    /* in the unit of --memory, where 64G means GiB */
    cli_row(c, "memory", "%s%s%s", bytes(s->ram_bytes, a), f->memory_bytes ? " of " : "",
            f->memory_bytes ? bytes(f->memory_bytes, b) : "");
    if (s->work_bytes > 0)
        cli_row(c, "disk", "%s for work files, %u pass%s over the text", gigabytes(s->work_bytes, a),
                s->passes, s->passes == 1 ? "" : "es");
    cli_row(c, "output", "about %s", gigabytes(s->output_bytes, a));
}

/* Prints what the guide says about its GPU pipeline. */
static void guide_rows(cli *c, const leat_plan_minhash *g, uint32_t bands, const leat_plan_machine *m)
{
    char a[TEXT];
    cli_heading(c, "The guide, for its pipeline on GPUs");
    if (g->guide_bands_low == g->guide_bands_high)
        cli_row(c, "bands_per_iteration", "%u of 20 for this size", g->guide_bands_low);
    else
        cli_row(c, "bands_per_iteration", "%u to %u of 20 for this size", g->guide_bands_low,
                g->guide_bands_high);
    cli_row(c, "memory", "%s for all %u bands at once, by its formula", gigabytes(g->guide_all_bytes, a),
            bands);
    if (g->guide_fits)
        cli_row(c, "by its formula", "%u of %u bands at once fit the limit: %u pass%s",
                g->bands_per_iteration, bands, g->passes, g->passes > 1 ? "es" : "");
    else cli_row(c, "by its formula", "not even one band at a time fits the limit");
    span(c, "nodes", m->nodes_low, m->nodes_high, m->open_ended);
    span(c, "GPUs", m->gpus_low, m->gpus_high, m->open_ended);
    cli_row(c, "source", "%s", m->source);
}

int plan_text(cli *c, const leat_plan_text_facts *facts, const char *option)
{
    leat_plan_text p;
    leat_plan_minhash g;
    leat_plan_machine m;
    leat_error err = {0};
    char a[TEXT], b[TEXT], fix[FIX];
    if (leat_plan_text_make(facts, &p, &err) != 0) return cli_usage(c, "%s", err.message);
    leat_plan_minhash_facts guide = {
        .documents = p.documents,
        .dataset_bytes = facts->text_bytes,
        .memory_bytes = facts->memory_bytes,
        .hashes = facts->bands * facts->rows,
        .bands = facts->bands,
    };
    if (leat_plan_minhash_make(&guide, &g, &err) != 0 ||
        leat_plan_recommend(LEAT_PLAN_KIND_TEXT, facts->text_bytes, NULL, &m, &err) != 0)
        return cli_usage(c, "%s", err.message);
    bool fits = p.filter.fits && p.dedup.fits;
    text_fix(option, LEAT_MAX(p.filter.ram_bytes, p.dedup.ram_bytes), p.documents, fix);
    if (c->json) {
        leat__buf out;
        leat__json j;
        begin_json(&j, &out);
        json_fits(&j, "fits", fits ? LEAT_MAX(p.filter.fits, p.dedup.fits) : 0);
        leat__json_ku64(&j, "documents", p.documents);
        stage_json(&j, "filter", &p.filter);
        stage_json(&j, "dedup", &p.dedup);
        leat__json_ku64(&j, "guide_bands_low", g.guide_bands_low);
        leat__json_ku64(&j, "guide_bands_high", g.guide_bands_high);
        leat__json_ku64(&j, "guide_all_bytes", g.guide_all_bytes);
        leat__json_ku64(&j, "guide_bands_per_iteration", g.bands_per_iteration);
        leat__json_ku64(&j, "guide_nodes_low", m.nodes_low);
        leat__json_ku64(&j, "guide_nodes_high", m.nodes_high);
        leat__json_kstr(&j, "source", p.source);
        if (!fits) leat__json_kstr(&j, "fix", fix);
        return finish_json(c, &j, fits ? CLI_OK : CLI_FIT);
    }
    cli_out(c, "%s of text, %s%s document%s\n", gigabytes(facts->text_bytes, a),
            facts->documents ? "" : "about ", leat__format_count((double)p.documents, b, TEXT),
            leat__plural(p.documents));
    if (facts->disk_bytes_per_s <= 0)
        cli_out(c, "Storage not given: an NVMe disk of 2.5 GB/s is assumed (--storage, --io-mbs)\n");
    cli_heading(c, "leat filter, all scores");
    stage_rows(c, facts, &p.filter);
    cli_heading(c, "leat dedup fuzzy");
    stage_rows(c, facts, &p.dedup);
    guide_rows(c, &g, facts->bands > 0 ? facts->bands : 20, &m);
    if (fits) return CLI_OK;
    if (p.documents > UINT32_MAX - 1)
        return cli_failf(c, CLI_FIT, "a run takes fewer documents. Smallest change: %s", fix);
    if (!p.filter.fits)
        return cli_failf(c, CLI_FIT, "filtering needs %s of memory and deduplication %s. Smallest change: %s",
                         bytes(p.filter.ram_bytes, a), bytes(p.dedup.ram_bytes, b), fix);
    return cli_failf(c, CLI_FIT, "deduplication needs %s of memory. Smallest change: %s",
                     bytes(p.dedup.ram_bytes, a), fix);
}

/* ---- --compare ---- */

/* Adds one line of `leat load --json` to the sum. */
static int add_epoch(const char *path, int number, const char *text, leat_plan_run *run, leat_error *err)
{
    json_error_t why;
    json_t *j = json_loads(text, 0, &why);
    if (j == NULL || !json_is_object(j)) {
        json_decref(j);
        return leat__fail(err, LEAT_EDATA, "%s: line %d is not a JSON object: %s", path, number,
                          j == NULL ? why.text : "another value");
    }
    json_int_t samples = json_integer_value(json_object_get(j, "samples"));
    double seconds = json_number_value(json_object_get(j, "seconds"));
    json_int_t batches = json_integer_value(json_object_get(j, "batches"));
    json_int_t rss = json_integer_value(json_object_get(j, "peak_rss_bytes"));
    run->cpu_seconds += json_number_value(json_object_get(j, "cpu_seconds"));
    run->wait_seconds += json_number_value(json_object_get(j, "wait_seconds"));
    json_decref(j);
    if (samples <= 0 || !(seconds > 0) || rss < 0)
        return leat__fail(err, LEAT_EDATA,
                          "%s: line %d has no samples or seconds: is it from "
                          "leat load --json?",
                          path, number);
    run->epochs++;
    run->samples += (uint64_t)samples;
    run->batches += batches > 0 ? (uint64_t)batches : 0;
    run->seconds += seconds;
    if ((uint64_t)rss > run->peak_rss_bytes) run->peak_rss_bytes = (uint64_t)rss;
    return 0;
}

static int read_run(const char *path, leat_plan_run *run, leat_error *err)
{
    FILE *file = fopen(path, "r");
    int rc = 0, number = 0;
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    *run = (leat_plan_run){0};
    if (file == NULL) return leat__fail_errno(err, errno, "%s", path);
    while (rc == 0 && (len = getline(&line, &size, file)) >= 0) {
        number++;
        if (len > LINE_MAX_BYTES) rc = leat__fail(err, LEAT_ELIMIT, "%s: line %d is too long", path, number);
        else if (line[0] != '\n') rc = add_epoch(path, number, line, run, err);
    }
    if (rc == 0 && ferror(file)) rc = leat__fail_errno(err, errno, "%s", path);
    if (rc == 0 && run->epochs == 0) rc = leat__fail(err, LEAT_EDATA, "%s: no epoch in it", path);
    if (run->seconds > 0) run->samples_per_s = (double)run->samples / run->seconds;
    free(line);
    fclose(file);
    return rc;
}

static void compare_row(cli *c, const leat_plan_error_row *r)
{
    char a[TEXT], b[TEXT];
    if (r->bytes) {
        bytes((uint64_t)r->predicted, a);
        bytes((uint64_t)r->measured, b);
    } else {
        leat__format_count(r->predicted, a, TEXT);
        leat__format_count(r->measured, b, TEXT);
    }
    cli_out(c, "%-28s %12s %12s %+7.1f %%%s\n", r->what, a, b, 100 * r->error,
            r->inside ? "  inside the interval" : "");
}

int plan_compare(cli *c, const leat_plan *plan, const char *path)
{
    leat_plan_run run;
    leat_plan_error_row rows[LEAT_PLAN_ERROR_ROWS];
    leat_error err = {0};
    if (read_run(path, &run, &err) != 0) return cli_fail(c, &err);
    uint32_t n = leat_plan_compare(plan, &run, rows);
    if (plan->facts.samples > 0 && run.samples != plan->facts.samples * run.epochs)
        cli_warn(c, "the run had %llu samples per epoch, the plan has %llu: is it of another pack?",
                 (unsigned long long)(run.samples / run.epochs), (unsigned long long)plan->facts.samples);
    uint64_t batch = leat__plan_other_batch(plan, &run);
    if (batch > 0)
        cli_warn(c, "the run had batches of %llu sample%s, the plan has %llu: was it another --batch?",
                 (unsigned long long)batch, leat__plural(batch), (unsigned long long)plan->facts.batch);
    if (c->json) {
        leat__buf out;
        leat__json j;
        begin_json(&j, &out);
        leat__json_key(&j, "compare");
        leat__json_array(&j);
        for (uint32_t i = 0; i < n; i++) {
            leat__json_object(&j);
            leat__json_kstr(&j, "what", rows[i].what);
            leat__json_kdouble(&j, "predicted", rows[i].predicted);
            leat__json_kdouble(&j, "measured", rows[i].measured);
            leat__json_kdouble(&j, "error", rows[i].error);
            leat__json_end(&j);
        }
        leat__json_end(&j);
        return finish_json(c, &j, CLI_OK);
    }
    cli_out(c, "%-28s %12s %12s %9s\n", "", "predicted", "measured", "error");
    for (uint32_t i = 0; i < n; i++) compare_row(c, &rows[i]);
    return CLI_OK;
}
