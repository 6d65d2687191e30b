/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

#include <leat/machine.h>

#include "base/clock.h"
#include "io/inject.h"
#include "loader/tiny_pack.h"

#define PACK "doctor-watch.leat"
#define RUN "doctor-watch.jsonl"

static int setup(void **state)
{
    (void)state;
    tiny_pack(PACK, &(tiny_opts){.samples = 200, .classes = 2, .bad_every = 20});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(PACK);
}

static leat_loader *opened(void)
{
    leat_loader_opts o;
    leat_loader *l;
    leat_loader_opts_init(&o);
    o.batch_size = 20;
    o.ops = "RandomResizedCrop(16)";
    o.threads = 2;
    o.memory = 64 << 20;
    o.on_error = LEAT_ON_ERROR_REPLACE;
    assert_ok(leat_loader_open(&l, PACK, &o, NULL));
    return l;
}

static void epoch_of(leat_loader *l, uint64_t epoch, uint64_t step_ns)
{
    leat_batch *b = NULL;
    assert_ok(leat_loader_begin(l, epoch, NULL));
    for (;;) {
        assert_ok(leat_loader_next(l, &b, -1, NULL));
        if (b == NULL) return;
        leat__sleep_ns(step_ns);
        leat_batch_release(&b);
    }
}

/* Reads of 20 ms, four at once: the controller asks for more, and the facts say when and why. */
static void decisions_are_among_the_facts(void **state)
{
    leat_loader *l = opened();
    leat_doctor_watch *w;
    leat_doctor_facts f;
    uint64_t begin = leat__clock_ns();
    (void)state;
    assert_ok(leat__io_inject(&(leat__inject_rule){.path = PACK, .delay_ns = 20 * LEAT_NS_PER_MS}, NULL));
    assert_ok(leat_doctor_watch_open(&w, l, 0, NULL));
    f.decision_count = 0;
    for (uint64_t e = 0; f.decision_count == 0 && leat__clock_ns() - begin < 20 * LEAT_NS_PER_S; e++) {
        epoch_of(l, e, 0);
        assert_ok(leat_doctor_watch_facts(w, &f, NULL));
    }
    leat__io_inject_clear();
    assert_true(f.decision_count > 0);
    assert_true(f.decisions_made >= f.decision_count);
    assert_string_equal(f.decisions[0].knob, "io_depth");
    assert_true(f.decisions[0].to > f.decisions[0].from);
    assert_true(f.decisions[0].at_s > 0 && f.decisions[0].at_s < 21);
    assert_contains(f.decisions[0].reason, "read had tasks waiting");
    assert_true(f.in_flight >= 1 && f.read_ms >= 20);
    assert_int_equal(judge(f).limit, LEAT_LIMIT_IO);
    leat_doctor_watch_close(&w);
    leat_loader_close(&l);
}

/* Nothing is read from storage where the pack is in a file system in memory: idle CPUs do not speak for
 * storage. */
static void a_pack_in_a_memory_file_system_is_cached(void **state)
{
    static const char *const path = "/dev/shm/leat-doctor-watch.leat";
    leat_loader_opts o;
    leat_loader *l;
    leat_doctor_watch *w;
    leat_doctor_facts f;
    leat_disk disk;
    (void)state;
    if (leat_disk_read(&disk, "/dev/shm", NULL) != 0 || strcmp(disk.filesystem, "tmpfs") != 0) skip();
    tiny_pack(path, &(tiny_opts){.samples = 40, .classes = 2});
    leat_loader_opts_init(&o);
    o.batch_size = 10;
    o.ops = "RandomResizedCrop(16)";
    assert_ok(leat_loader_open(&l, path, &o, NULL));
    assert_ok(leat_doctor_watch_open(&w, l, 0, NULL));
    epoch_of(l, 0, LEAT_NS_PER_MS);
    assert_ok(leat_doctor_watch_facts(w, &f, NULL));
    assert_near(f.cached, 1, 0);
    f.decode_ready = 0.01;
    f.cpu_used = 0.1;
    f.run_delay = 0;
    assert_int_not_equal(judge(f).limit, LEAT_LIMIT_IO);
    leat_doctor_watch_close(&w);
    leat_loader_close(&l);
    unlink(path);
}

/* A second passes between opening the loader and the first epoch, as while a model is made: the CPUs were not
 * idle for want of data. */
static void time_before_the_first_epoch_does_not_count(void **state)
{
    leat_loader *l = opened();
    leat_doctor_watch *w;
    leat_doctor_facts f;
    (void)state;
    assert_ok(leat_doctor_watch_open(&w, l, 5, NULL));
    leat__sleep_ns(LEAT_NS_PER_S);
    uint64_t wall = leat__clock_ns(), cpu = leat__clock_process_ns();
    for (uint64_t e = 0; leat__clock_ns() - wall < LEAT_NS_PER_S / 4; e++) epoch_of(l, e, 0);
    assert_ok(leat_doctor_watch_facts(w, &f, NULL));
    double used = (double)(leat__clock_process_ns() - cpu) / (double)(leat__clock_ns() - wall);
    if (f.cpu_used < 0.6 * used) fail_msg("%.2f CPUs, %.2f while it ran", f.cpu_used, used);
    leat_doctor_watch_close(&w);
    leat_loader_close(&l);
}

/* Counters of the loader restart with each epoch; the watch adds them up. */
static void epochs_add_up(void **state)
{
    leat_loader *l = opened();
    leat_doctor_watch *w;
    leat_doctor_facts f;
    leat_doctor_frame frames[64];
    (void)state;
    assert_ok(leat_doctor_watch_open(&w, l, 5, NULL));
    for (uint64_t e = 0; e < 3; e++) epoch_of(l, e, 8 * LEAT_NS_PER_MS);
    assert_ok(leat_doctor_watch_facts(w, &f, NULL));
    size_t n = leat_doctor_watch_frames(w, frames, LEAT_COUNT(frames));
    assert_true(n >= 3);
    for (size_t i = 1; i < n; i++) {
        assert_true(frames[i].at_s > frames[i - 1].at_s);
        assert_true(frames[i].samples >= frames[i - 1].samples);
        assert_true(frames[i].lost >= 0 && frames[i].lost <= 1);
    }
    /* 9 of 10 steps count in each epoch, and the training after the last */
    assert_in_range((uint64_t)f.steps, 24, 27);
    assert_near(f.batch, 20, 1);
    assert_true(f.batch_ms >= 8 && f.batch_ms < 200);
    assert_true(f.data_ms >= 0);
    assert_true(f.bad > 0.02 && f.bad < 0.08);
    assert_near(f.threads, 2, 0);
    assert_near(f.budget, 64 << 20, 0);
    assert_true(f.read_bytes > 100);
    assert_true(f.cpu_used > 0 && f.decode_ready >= 0 && f.blocked >= 0);
    assert_true(f.cpu_all > 0 && f.io_cold < 0); /* workers were seen busy, reads alone never */
    leat_doctor_diagnosis d = judge(f);
    assert_true(d.limit != LEAT_LIMIT_NONE);
    leat_doctor_watch_close(&w);
    leat_loader_close(&l);
    assert_no_leaks();
}

static void known_facts_are_used(void **state)
{
    leat_loader *l = opened();
    leat_doctor_watch *w;
    leat_doctor_facts ceilings, f;
    (void)state;
    leat_doctor_facts_init(&ceilings);
    ceilings.cpu_all = 1234;
    ceilings.threads = 99; /* the watch sees these itself */
    assert_ok(leat_doctor_watch_open(&w, l, 5, NULL));
    leat_doctor_watch_known(w, &ceilings);
    epoch_of(l, 0, 0);
    assert_ok(leat_doctor_watch_facts(w, &f, NULL));
    assert_near(f.cpu_all, 1234, 0);
    assert_near(f.threads, 2, 0);
    leat_doctor_watch_close(&w);
    leat_loader_close(&l);
}

static void another_loader_of_the_process_is_seen(void **state)
{
    leat_loader *l = opened(), *other = opened();
    leat_doctor_watch *w;
    leat_doctor_facts f;
    (void)state;
    epoch_of(other, 0, 0); /* before the watch: not counted */
    assert_ok(leat_doctor_watch_open(&w, l, 5, NULL));
    epoch_of(l, 0, 0);
    assert_ok(leat_doctor_watch_facts(w, &f, NULL));
    assert_near(f.siblings, 0, 1e-9);
    epoch_of(other, 1, 0);
    assert_ok(leat_doctor_watch_facts(w, &f, NULL));
    assert_true(f.siblings > 0 && f.siblings <= f.cpu_used);
    leat_doctor_watch_close(&w);
    leat_loader_close(&other);
    leat_loader_close(&l);
    assert_no_leaks();
}

/* Threads read while epochs begin and end: no torn values (TSan checks this). */
static void many_epochs_under_watch(void **state)
{
    leat_loader *l = opened();
    leat_doctor_watch *w;
    leat_doctor_facts f;
    (void)state;
    assert_ok(leat_doctor_watch_open(&w, l, 1, NULL));
    for (uint64_t e = 0; e < 10; e++) {
        epoch_of(l, e, 0);
        assert_ok(leat_doctor_watch_facts(w, &f, NULL));
        assert_true(f.blocked <= 1 && f.decode_ready <= 1 && f.decode_share <= 1);
    }
    leat_doctor_watch_close(&w);
    leat_loader_close(&l);
    assert_no_leaks();
}

/* The run file has what the watch saw, while it runs and at the end. */
static void a_run_is_recorded(void **state)
{
    static leat_doctor_frame seen[512], kept[512];
    leat_loader *l = opened();
    leat_doctor_watch *w;
    leat_doctor_run *run;
    leat_error err = {0};
    (void)state;
    assert_ok(leat_doctor_watch_open(&w, l, 5, NULL));
    assert_code(leat_doctor_watch_record(w, "no-such-folder/run", &err), LEAT_ENOENT);
    assert_ok(leat_doctor_watch_record(w, RUN, NULL));
    assert_ok(leat_doctor_run_open(&run, RUN, NULL));
    epoch_of(l, 0, 8 * LEAT_NS_PER_MS);
    assert_ok(leat_doctor_run_look(run, NULL, NULL));
    assert_true(leat_doctor_run_frames(run, seen, 512) >= 3);
    assert_int_equal(leat_doctor_run_ended(run), 0);
    assert_ok(leat_doctor_watch_record(w, NULL, NULL));
    size_t all = leat_doctor_watch_frames(w, kept, 512);
    leat_doctor_watch_close(&w);
    assert_ok(leat_doctor_run_look(run, NULL, NULL));
    size_t n = leat_doctor_run_frames(run, seen, 512);
    assert_int_equal(leat_doctor_run_ended(run), 1);
    assert_true(leat_doctor_run_diagnosis(run)->facts.steps > 5);
    leat_loader_stats stats;
    assert_ok(leat_loader_read_all(l, &stats, sizeof stats));
    assert_int_equal(seen[n - 1].samples, stats.samples); /* the last frame has all of them */
    for (size_t i = 0, at = 0; i < n; i++) {              /* each frame written was also seen */
        while (at < all && kept[at].at_s != seen[i].at_s) at++;
        assert_true(at < all);
        assert_int_equal(kept[at].samples, seen[i].samples);
    }
    leat_doctor_run_close(&run);
    leat_loader_close(&l);
    unlink(RUN);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pack_in_a_memory_file_system_is_cached),
        cmocka_unit_test(epochs_add_up),
        cmocka_unit_test(time_before_the_first_epoch_does_not_count),
        cmocka_unit_test(a_run_is_recorded),
        cmocka_unit_test(decisions_are_among_the_facts),
        cmocka_unit_test(known_facts_are_used),
        cmocka_unit_test(another_loader_of_the_process_is_seen),
        cmocka_unit_test(many_epochs_under_watch),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
