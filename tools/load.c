/* SPDX-License-Identifier: Apache-2.0
 *
 * leat load: runs a loader and reports its speed and a digest of the samples (--digest). The digest combines
 * a hash of every row in order, so it depends neither on the batch size nor on where a run was stopped and
 * resumed.
 */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "io/file.h"
#include "io/traffic.h"
#include "live.h"
#include "load_mix.h"
#include "probe/machine.h"

#define STATE_MAX ((size_t)1 << 20)

static const leat__param options[] = {
    CLI_INT("stop-after", 0, "0", 0, 9007199254740992.0, "N", "stop after N samples of this rank"),
    CLI_PATH("state", 0, NULL, "FILE", "write the position of the run to this file at the end"),
    CLI_PATH("resume", 0, NULL, "FILE", "resume from the position that --state saved in FILE"),
    CLI_FLAG("digest", 0, "hash everything delivered, in order"),
    CLI_END,
};

typedef struct job {
    cli *c;
    load_flags flags;
    load_mix mix;
    leat_loader *loader;
    live *live;
    uint64_t stop_after, total; /* samples delivered over all epochs */
    double step_s;
    bool digest_on;
    uint64_t digest;
    cli_progress bar;
    /* The current epoch. */
    uint64_t epoch, samples, rows, bytes;
    uint64_t begin_ns, cpu_begin_ns, first_ns;
    uint64_t bad;             /* bad samples in all epochs */
    uint64_t run_ns, decided; /* start of the run; decisions of the controller reported so far */
} job;

/* ---- --state and --resume ----------------------------------------------------------------- */

static int write_state(job *j, const char *path, leat_error *err)
{
    char text[LEAT_LOADER_STATE_MAX], hex[20];
    size_t size;
    leat__buf out;
    leat__json w;
    int rc;

    leat__buf_init(&out, LEAT__MEM_MISC, STATE_MAX);
    LEAT_GO(rc, out, leat_loader_state(j->loader, j->rows, text, sizeof text, &size, err));
    leat__json_init(&w, &out, 0);
    leat__json_object(&w);
    leat__json_key(&w, "loader");
    leat__json_raw(&w, text);
    leat__json_ku64(&w, "rank", j->flags.opts.rank);
    leat__json_ku64(&w, "world", LEAT_MAX(j->flags.opts.world, 1u));
    leat__json_ku64(&w, "samples", j->samples);
    if (j->digest_on) {
        snprintf(hex, sizeof hex, "%016" PRIx64, j->digest);
        leat__json_kstr(&w, "digest", hex);
    }
    leat__json_end(&w);
    leat__buf_putc(&out, '\n');
    rc = leat__buf_status(&out) != 0 ? leat__fail_nomem(err, out.len, "the state")
                                     : leat__file_store(path, out.data, out.len, err);
out:
    leat__buf_reset(&out);
    return rc;
}

/* Continues the totals of the epoch, which are those of the rank that wrote the file. */
static void resume_totals(job *j, const char *path, const json_t *root)
{
    const char *digest = json_string_value(json_object_get(root, "digest"));
    const json_t *samples = json_object_get(root, "samples");
    const json_int_t rank = json_integer_value(json_object_get(root, "rank"));
    const json_int_t world = json_integer_value(json_object_get(root, "world"));

    j->digest = j->samples = 0;
    if (samples == NULL) return; /* the state of a loader in Python, without totals */
    if (rank == (json_int_t)j->flags.opts.rank && world == (json_int_t)LEAT_MAX(j->flags.opts.world, 1u)) {
        if (digest != NULL) j->digest = strtoull(digest, NULL, 16);
        j->samples = (uint64_t)json_integer_value(samples);
    } else {
        cli_warn(j->c, "%s is of rank %lld of %lld: samples and digest count what this run delivers", path,
                 (long long)rank, (long long)world);
    }
}

static int resume(job *j, const char *path, leat_error *err)
{
    char *text = NULL, *inner = NULL;
    json_t *root = NULL;
    json_error_t why;
    size_t len;
    int rc;

    rc = leat__file_load(path, STATE_MAX, 1, &text, &len, err);
    if (rc != 0 && rc != LEAT_ELIMIT) goto out;
    root = rc == 0 ? json_loads(text, JSON_REJECT_DUPLICATES, &why) : NULL;
    if (root == NULL) LEAT_GO(rc, out, leat__fail(err, LEAT_EDATA, "%s: not a file of --state", path));
    const json_t *state = json_object_get(root, "loader");
    resume_totals(j, path, root);
    j->epoch = (uint64_t)json_integer_value(json_object_get(state != NULL ? state : root, "epoch"));
    inner = json_dumps(state != NULL ? state : root, JSON_COMPACT);
    if (inner == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, len, "the state"));
    rc = leat_loader_restore(j->loader, inner, err);
    if (rc != 0) leat__error_context(err, "%s", path);
    if (rc == 0 && j->epoch >= j->flags.epochs)
        rc = leat__fail(err, LEAT_EINVAL,
                        "%s: is in epoch %" PRIu64 ", and `epochs` %" PRIu64 " ends with epoch %" PRIu64
                        ": give the number of all epochs, %" PRIu64 " or more",
                        path, j->epoch, j->flags.epochs, j->flags.epochs - 1, j->epoch + 1);
out:
    json_decref(root);
    free(inner);
    leat__free(text);
    return rc;
}

/* ---- one epoch ---------------------------------------------------------------------------- */

static void fold_digest(job *j, const leat_batch *b, uint32_t rows)
{
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t pair[2] = {j->digest, b->sample_hash[i]};
        j->digest = leat__hash64(pair, sizeof pair, 0);
    }
}

/* Reports the changes of the controller since the last epoch's line. */
static void put_decisions(job *j, leat__json *w)
{
    leat_decision d[16];
    uint32_t count;

    leat__json_key(w, "decisions");
    leat__json_array(w);
    while ((count = leat_loader_decisions(j->loader, j->decided, d, LEAT_COUNT(d))) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            leat__json_object(w);
            leat__json_kdouble(w, "at_s", (double)(d[i].at_ns - j->run_ns) / 1e9);
            leat__json_kstr(w, "knob", leat_knob_name(d[i].knob));
            leat__json_ku64(w, "from", d[i].from);
            leat__json_ku64(w, "to", d[i].to);
            leat__json_kstr(w, "reason", d[i].reason);
            leat__json_end(w);
        }
        j->decided = d[count - 1].number + 1;
    }
    leat__json_end(w);
}

static void put_device(const job *j, leat__json *w, const leat_loader_stats *s)
{
    leat__json_ku64(w, "device", (uint64_t)leat_loader_device(j->loader));
    leat__json_kbool(w, "page_locked", s->page_locked != 0);
    leat__json_ku64(w, "device_peak_bytes", s->device_peak);
    leat__json_ku64(w, "device_limit_bytes", s->device_limit);
    leat__json_ku64(w, "copied_bytes", s->copied_bytes);
    leat__json_kdouble(w, "copy_seconds", (double)s->copy_ns / 1e9);
    leat__json_kdouble(w, "copy_wait_seconds", (double)s->copy_wait_ns / 1e9);
    leat__json_ku64(w, "device_images", s->device_images);
    leat__json_kdouble(w, "device_decode_seconds", (double)s->device_decode_ns / 1e9);
    leat__json_kdouble(w, "device_share", s->device_share);
    leat__json_kdouble(w, "device_overlap_seconds", (double)s->device_overlap_ns / 1e9);
    leat__json_ku64(w, "device_cached_images", s->device_cached_images);
    leat__json_ku64(w, "device_cached_bytes", s->device_cached_bytes);
}

/* Reports the network traffic, and its cost where prices are known. */
static void print_traffic(job *j, const leat_loader_stats *s)
{
    char bytes[24], each[24];
    double batches = s->batches > 0 ? (double)s->batches : 1;
    leat__traffic_price price;
    if (s->remote_requests == 0) return;
    cli_out(j->c,
            "network: %s in %" PRIu64 " request%s (%" PRIu64 " repeated, %" PRIu64
            " hedged), %s and %.1f requests a batch",
            leat__format_bytes(s->remote_bytes, bytes, sizeof bytes), s->remote_requests,
            cli_s(s->remote_requests), s->remote_retries, s->remote_hedged,
            leat__format_bytes((uint64_t)((double)s->remote_bytes / batches), each, sizeof each),
            (double)s->remote_requests / batches);
    if (leat__traffic_price_of(cli_arg(j->c, 0), s->remote_bytes, s->remote_requests, &price))
        cli_out(j->c,
                "; by list prices of " LEAT__TRAFFIC_DATE
                " $%.4f in the bucket's region, $%.4f from another, $%.4f over the internet",
                price.same_region, price.other_region, price.internet);
    cli_out(j->c, "\n");
}

static void put_price(job *j, leat__json *w, const leat_loader_stats *s)
{
    leat__traffic_price price;
    if (!leat__traffic_price_of(cli_arg(j->c, 0), s->remote_bytes, s->remote_requests, &price)) return;
    leat__json_kdouble(w, "usd_same_region", price.same_region);
    leat__json_kdouble(w, "usd_other_region", price.other_region);
    leat__json_kdouble(w, "usd_internet", price.internet);
    leat__json_kstr(w, "price_date", LEAT__TRAFFIC_DATE);
}

static void print_epoch(job *j)
{
    leat_loader_stats s;
    double seconds = (double)(leat__clock_ns() - j->begin_ns) / 1e9;
    double cpu = (double)(leat__clock_process_ns() - j->cpu_begin_ns) / 1e9;
    double rate = seconds > 0 ? (double)j->rows / seconds : 0;

    if (leat_loader_read(j->loader, &s, sizeof s) != 0) return;
    j->bad += s.bad_samples;
    if (j->c->json) {
        char hex[20];
        leat__buf out;
        leat__json w;
        leat__buf_init(&out, LEAT__MEM_MISC, 65536);
        leat__json_init(&w, &out, 0);
        leat__json_object(&w);
        leat__json_ku64(&w, "epoch", j->epoch);
        leat__json_ku64(&w, "samples", j->samples);
        leat__json_ku64(&w, "bad_samples", s.bad_samples);
        leat__json_kdouble(&w, "seconds", seconds);
        leat__json_kdouble(&w, "samples_per_s", rate);
        leat__json_kdouble(&w, "cpu_seconds", cpu);
        leat__json_ku64(&w, "peak_rss_bytes", leat__process_peak_rss());
        leat__json_ku64(&w, "budget_peak_bytes", s.budget_peak);
        leat__json_ku64(&w, "budget_limit_bytes", s.budget_limit);
        leat__json_kdouble(&w, "first_batch_s", (double)(j->first_ns - j->begin_ns) / 1e9);
        leat__json_kdouble(&w, "wait_seconds", (double)s.wait_ns / 1e9);
        leat__json_ku64(&w, "batches", s.batches);
        leat__json_ku64(&w, "read_bytes", s.read_bytes);
        leat__json_ku64(&w, "cache_hits", s.cache_hits);
        leat__json_ku64(&w, "cache_misses", s.cache_misses);
        leat__json_kdouble(&w, "read_seconds", (double)s.read_ns / 1e9);
        leat__json_kdouble(&w, "decode_seconds", (double)s.decode_ns / 1e9);
        leat__json_ku64(&w, "remote_requests", s.remote_requests);
        leat__json_ku64(&w, "remote_retries", s.remote_retries);
        leat__json_ku64(&w, "remote_bytes", s.remote_bytes);
        leat__json_ku64(&w, "remote_hedged", s.remote_hedged);
        put_price(j, &w, &s);
        leat__json_ku64(&w, "disk_cache_hits", s.disk_cache_hits);
        leat__json_ku64(&w, "threads", s.threads);
        leat__json_ku64(&w, "io_depth", s.io_depth);
        leat__json_ku64(&w, "prefetch", s.prefetch);
        if (leat_loader_device(j->loader) >= 0) put_device(j, &w, &s);
        snprintf(hex, sizeof hex, "%016" PRIx64, j->digest);
        leat__json_kstr(&w, "digest", j->digest_on ? hex : NULL);
        put_decisions(j, &w);
        leat__json_end(&w);
        cli_json(j->c, &out);
        return;
    }
    char count[16], per_s[16], time[16], rss[24], used[24], limit[24];
    cli_out(j->c,
            "epoch %" PRIu64 ": %s samples in %s, %s samples/s, cpu %.2f s, peak RSS %s, budget %s of %s",
            j->epoch, leat__format_count((double)j->samples, count, sizeof count),
            leat__format_seconds(seconds, time, sizeof time), leat__format_count(rate, per_s, sizeof per_s),
            cpu, leat__format_bytes(leat__process_peak_rss(), rss, sizeof rss),
            leat__format_bytes(s.budget_peak, used, sizeof used),
            leat__format_bytes(s.budget_limit, limit, sizeof limit));
    if (s.bad_samples > 0) cli_out(j->c, ", %" PRIu64 " bad samples", s.bad_samples);
    if (j->digest_on) cli_out(j->c, ", digest %016" PRIx64, j->digest);
    cli_out(j->c, "\n");
    print_traffic(j, &s);
}

/* Delivers batches until the epoch or the sample limit ends, or the user stops it. */
static int run_epoch(job *j, bool *stopped, leat_error *err)
{
    leat_batch *b = NULL;
    int rc;

    while ((rc = leat_loader_next(j->loader, &b, 200, err)) == 0 || rc == LEAT_ETIMEDOUT ||
           rc == LEAT_EAGAIN) {
        live_tick(j->live);
        if (cli_interrupted(j->c)) {
            leat_batch_release(&b);
            *stopped = true;
            return leat__fail(err, LEAT_ECANCELED, "interrupted");
        }
        if (rc != 0) continue;
        if (b == NULL) return 0;
        if (j->first_ns == 0) j->first_ns = leat__clock_ns();
        uint32_t take = b->samples;
        if (j->stop_after > 0 && take > j->stop_after - j->total) take = (uint32_t)(j->stop_after - j->total);
        if (j->digest_on) fold_digest(j, b, take);
        for (uint32_t f = 0; f < b->field_count; f++)
            j->bytes += (uint64_t)b->fields[f].shape[0] * (uint64_t)b->fields[f].strides[0] *
                        leat_dtype_size(b->fields[f].dtype);
        j->samples += take;
        j->rows += take == b->samples ? b->rows : take;
        j->total += take;
        if (j->step_s > 0) leat__sleep_ns((uint64_t)(j->step_s * 1e9));
        leat_batch_release(&b);
        cli_progress_at(&j->bar, j->samples, j->bytes, 0);
        if (j->stop_after > 0 && j->total >= j->stop_after) {
            *stopped = true;
            return 0;
        }
    }
    return rc;
}

static int run_job(job *j, leat_error *err)
{
    const char *from = cli_str(j->c, "resume"), *to = cli_str(j->c, "state");
    bool stopped = false;
    int rc = 0;

    j->run_ns = leat__clock_ns();
    for (j->epoch = 0; j->epoch < j->flags.epochs && !stopped && rc == 0; j->epoch++) {
        j->begin_ns = leat__clock_ns();
        j->cpu_begin_ns = leat__clock_process_ns();
        j->first_ns = j->rows = j->bytes = 0;
        if (from != NULL) {
            LEAT_TRY(resume(j, from, err));
            from = NULL;
        } else {
            j->samples = j->digest = 0;
            LEAT_TRY(leat_loader_begin(j->loader, j->epoch, err));
        }
        if (!live_draws(j->live))
            cli_progress_begin(&j->bar, j->c, "loading", "samples", leat_loader_samples(j->loader));
        rc = run_epoch(j, &stopped, err);
        cli_progress_end(&j->bar);
        if (j->first_ns == 0) j->first_ns = leat__clock_ns();
        if (rc == 0 || rc == LEAT_ECANCELED) print_epoch(j);
    }
    if (to != NULL && (rc == 0 || rc == LEAT_ECANCELED)) LEAT_TRY(write_state(j, to, err));
    return rc;
}

/* Removes the default ops for a pack without images, unless a flag requests images. */
static int drop_default_ops(job *j, leat_error *err)
{
    static const char *const asks[] = {"ops", "size", "crop", "flip", "dtype", "layout", "like"};
    leat_pack *pack = NULL;
    bool images = false;
    for (size_t i = 0; i < LEAT_COUNT(asks); i++)
        if (cli_given(j->c, asks[i])) return 0;
    LEAT_TRY(load_open_packs(&pack, j->c, err));
    for (uint32_t f = 0; f < leat_pack_field_count(pack); f++)
        images |= leat_pack_field(pack, f)->type == LEAT_FIELD_IMAGE;
    leat_pack_close(&pack);
    if (!images) j->flags.opts.ops = NULL;
    return 0;
}

static int run(cli *c)
{
    job j = {.c = c, .digest_on = cli_flag(c, "digest"), .stop_after = (uint64_t)cli_int(c, "stop-after")};
    static const live_output written[] = {
        {LIVE_REPORT}, {LIVE_TRACE}, {"run-file", "{\"run\":"}, {"state", "{\"loader\":"}, {LIVE_QUARANTINE}};
    static const char *const others[] = {"keys", "config"};
    leat_error err = {0};
    int rc = load_flags_read(&j.flags, c, &err);

    if (rc == 0) /* fail now, not after hours */
        rc = live_check_outputs(c, written, LEAT_COUNT(written), others, LEAT_COUNT(others), &err);
    if (rc == 0) rc = load_flags_keys(&j.flags, c, &err);
    if (rc == 0) rc = load_mix_read(&j.mix, &j.flags, c, &err);
    if (rc == 0) rc = drop_default_ops(&j, &err);
    if (rc == 0) {
        j.step_s = j.flags.step_s;
        j.flags.opts.digest = j.digest_on;
        rc = leat_loader_open(&j.loader, NULL, &j.flags.opts, &err);
    }
    if (rc == 0) rc = live_open(&j.live, c, j.loader, &err);
    if (rc == 0) rc = run_job(&j, &err);
    int looked = live_close(&j.live, rc == 0 ? &err : NULL);
    if (rc == 0) rc = looked;
    leat_loader_close(&j.loader);
    load_mix_reset(&j.mix);
    load_flags_reset(&j.flags);
    if (cli_is_stop(c, &err))
        cli_say(c, "stopped by a signal after %" PRIu64 " sample%s%s%s", j.total, cli_s(j.total),
                cli_str(c, "state") != NULL ? "; --resume continues from " : "",
                cli_str(c, "state") != NULL ? cli_str(c, "state") : "");
    if (rc != 0) return cli_fail(c, &err);
    return j.bad > 0 ? CLI_FINDING : CLI_OK;
}

const cli_command cli_cmd_load = {
    .name = "load",
    .summary = "run a loader over a pack and measure it",
    .examples =
        (const cli_example[]){
            {"leat load train.leat", "random resized crops of 224, all cores, one epoch"},
            {"leat load train.leat --crop center --order sequential --digest", "an evaluation pass"},
            {"leat load train.leat --order quasi_random --cache process --memory 4G",
             "a pack larger than memory"},
            {"leat load train.leat --stop-after 5000 --state s.json", "stop in mid-epoch, save the position"},
            {"leat load train.leat --resume s.json", "continue from that position"},
            {"leat load train.leat --epochs 10 --step-ms 55 --live --serve 8080",
             "with a simulated trainer, watched in the terminal and the browser"},
            {"leat load train.leat --rank 1 --world 4 --batch 64", "the second of four ranks"},
            {"leat load a.leat b.leat --mix 0.7,0.3 --mix-batches stratified",
             "two packs, 70 and 30 % of every batch"},
            {NULL, NULL}},
    .description =
        "Opens the pack, decodes and augments every sample as a training loop would get it, and "
        "prints one line per epoch. What is delivered depends on the pack, the seed and the epoch "
        "only: never on threads, memory, cache or timing. A pack without images is loaded as it is. "
        "Exit code 1 means that bad samples were skipped or replaced (--on-error).\n\n"
        "--digest hashes every row delivered (pixels, labels, sample ids) and folds the hashes in "
        "order: equal digests mean equal training input, whatever the batch size; a run that is resumed with "
        "--state and the same --rank and --world ends with the digest of the uninterrupted one.\n\n"
        "--state writes the position to a small JSON file at the end or after Ctrl-C; --resume reads it, and "
        "also the JSON of state_dict() of leat.Loader in Python. Packs, order, seed, --batch x --world, the "
        "subset, "
        "weights, the mix and --drop-last must be those of the run that wrote it: otherwise the command "
        "fails and names the first that differs. Ops, threads, memory and cache may differ.\n\n"
        "Of several packs every sample comes once per epoch, unless --mix, --repeat or --choose say "
        "otherwise. Then each pack comes as often as its number says. Without --replacement a "
        "sample comes again only when all samples of its pack have come, also across epochs. Fields are "
        "matched by name.",
    .args = (const cli_arg_spec[]){{.name = "PACK",
                                    .path = true,
                                    .many = true,
                                    .help = "packs or sets of shards; several come as one, or mixed"},
                                   {.name = NULL}},
    .options = {{"What is delivered", cli_load_options},
                {"Several packs", cli_mix_options},
                {"How", cli_load_machine},
                {"This run", options},
                {"Watching the run", cli_live_options}},
    .json =
        (const cli_key[]){
            {"epoch", "number of the epoch; one line of JSON per epoch"},
            {"samples", "samples delivered in the epoch, those before a resume of the same rank included"},
            {"bad_samples", "samples skipped or replaced"},
            {"seconds", "wall time of the epoch"},
            {"samples_per_s", "samples of this run per second"},
            {"cpu_seconds", "CPU time of the process in the epoch"},
            {"peak_rss_bytes", "highest resident memory of the process so far"},
            {"budget_peak_bytes", "highest charge to the byte budget so far"},
            {"budget_limit_bytes", "the byte budget"},
            {"first_batch_s", "time until the first batch"},
            {"wait_seconds", "time spent waiting for batches"},
            {"batches", "batches delivered"},
            {"read_bytes", "bytes read from the file"},
            {"cache_hits", "samples found in the page cache of the process"},
            {"cache_misses", "samples that were not"},
            {"read_seconds", "time of all reads together"},
            {"decode_seconds", "time of all workers in decoding and augmenting"},
            {"remote_requests", "requests to a bucket or web server, repeated ones too"},
            {"remote_retries", "requests that were repeated"},
            {"remote_bytes", "bytes received over the network"},
            {"remote_hedged", "second requests for ranges that were late"},
            {"usd_same_region", "cost of the traffic by list prices, from a machine in the bucket's region"},
            {"usd_other_region", "the same from another region of the same cloud"},
            {"usd_internet", "the same over the internet"},
            {"price_date", "of the prices; these four only for Amazon, Google and Azure"},
            {"disk_cache_hits", "pages and samples that came from the disk cache"},
            {"threads", "CPU workers at the end"},
            {"io_depth", "reads in flight at the end"},
            {"prefetch", "batches made ahead at the end"},
            {"device, page_locked", "with --device cuda: the GPU; whether batches are page-locked"},
            {"device_peak_bytes, device_limit_bytes", "highest use of its memory, and the limit"},
            {"copied_bytes, copy_seconds", "copied to the GPU in the epoch; time of the copies on the GPU"},
            {"copy_wait_seconds", "time a batch waited for memory of the GPU"},
            {"device_images, device_share",
             "images the GPU decoded in the epoch; its share of the last batches"},
            {"device_decode_seconds", "time on the GPU of the decoding kernels"},
            {"device_overlap_seconds", "copies and kernels that ran beside those of the batch before"},
            {"device_cached_images, device_cached_bytes", "with --cache device: what stays on the GPU"},
            {"digest", "hash of everything delivered in the epoch, or null"},
            {"decisions[]", "what the controller changed in the epoch: at_s (since the start), "
                            "knob, from, to, reason"},
            {NULL, NULL}},
    .config = true,
    .remote = true,
    .run = run,
};
