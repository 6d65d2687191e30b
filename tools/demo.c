/* SPDX-License-Identifier: Apache-2.0
 *
 * leat demo: runs every step on generated data. Pictures are made by a flow of the engine (number ->
 * drawing -> JPEG -> file). After that every step is the command a user would type, shown and run as a
 * separate process.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <leat/flow.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/str.h"
#include "cli.h"
#include "codec/jpeg_encode.h"
#include "io/dir.h"
#include "io/file.h"

#define OCTAVES 6
#define ARGS_MAX 24

static const leat__param options[] = {
    CLI_PATH("dir", 'd', "demo-out", "DIR", "where to put everything"),
    CLI_INT("images", 'n', "2000", 16, 10000000, "N", "how many pictures to make"),
    CLI_INT("classes", 0, "20", 1, 10000, "N", "in how many classes"),
    CLI_END,
};

/* ---- drawing ------------------------------------------------------------------------------ */

typedef struct picture {
    uint64_t number;
    char path[1024];
} picture;

typedef struct maker {
    cli *c;
    const char *dir;
    uint64_t next, images, classes;
    _Atomic uint64_t done, bytes;
    cli_progress bar;
} maker;

/* Returns value noise on an integer grid, smooth between its points. */
static float noise(uint32_t seed, float x, float y)
{
    int ix = (int)floorf(x), iy = (int)floorf(y);
    float fx = x - (float)ix, fy = y - (float)iy, corner[4];
    for (int k = 0; k < 4; k++) {
        uint32_t h = seed ^ (uint32_t)(ix + (k & 1)) * 0x9e3779b1u ^ (uint32_t)(iy + (k >> 1)) * 0x85ebca77u;
        h = (h ^ h >> 15) * 0x2c1b3c6du;
        corner[k] = (float)((h ^ h >> 12) & 0xffff) / 65535.0f;
    }
    fx = fx * fx * (3 - 2 * fx);
    fy = fy * fy * (3 - 2 * fy);
    float top = corner[0] + (corner[1] - corner[0]) * fx, low = corner[2] + (corner[3] - corner[2]) * fx;
    return top + (low - top) * fy;
}

/* Draws something like a photograph: light from one side, textures of several scales, a few objects
 * with edges, and grain. The class determines its colours. */
static void draw(uint64_t number, uint64_t class, leat__planes *image)
{
    leat__rng r;
    float thing[5][4], tint[3];

    leat__rng_init(&r, 2026, 0, number, 1);
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 4; k++) thing[i][k] = leat__rng_float(&r);
    for (int c = 0; c < 3; c++)
        tint[c] = 0.35f + 0.65f * noise((uint32_t) class * 3 + (uint32_t)c, 0.5f, 0.5f);
    uint32_t seed = leat__rng_u32(&r);
    for (uint32_t y = 0; y < image->height; y++) {
        for (uint32_t x = 0; x < image->width; x++) {
            float v = 0, weight = 0.5f, scale = 1.0f / 160;
            for (int o = 0; o < OCTAVES; o++, weight *= 0.55f, scale *= 2.1f)
                v += weight * noise(seed + (uint32_t)o, (float)x * scale, (float)y * scale);
            float light = 0.5f + 0.5f * (float)y / (float)image->height;
            for (int i = 0; i < 5; i++) {
                float dx = (float)x / (float)image->width - thing[i][0];
                float dy = (float)y / (float)image->height - thing[i][1];
                float radius = 0.03f + 0.15f * thing[i][2];
                if (dx * dx + dy * dy < radius * radius) v = 0.6f * v + 0.6f * thing[i][3];
            }
            uint32_t grain = (seed ^ (x * 73856093u) ^ (y * 19349663u)) * 0x2c1b3c6du >> 27;
            for (int c = 0; c < 3; c++) {
                float p = 255.0f * v * light * tint[c] + (float)grain * 0.5f - 8;
                image->plane[c][y * image->stride + x] = (uint8_t)(p < 0 ? 0 : p > 255 ? 255 : p);
            }
        }
    }
}

static int next_picture(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    maker *m = cookie;

    (void)ctx;
    if (m->next == m->images || cli_interrupted(m->c)) return LEAT_FLOW_END;
    picture *p = LEAT_NEW(MISC, picture);
    if (p == NULL) return leat__fail_nomem(err, sizeof *p, "a picture");
    p->number = m->next++;
    snprintf(p->path, sizeof p->path, "%s/photos/class-%03u/%06u.jpg", m->dir,
             (unsigned)(p->number % m->classes), (unsigned)p->number);
    task->data = p;
    task->release = NULL;
    return 0;
}

static int make_picture(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    maker *m = cookie;
    picture *p = task->data;
    leat__planes image = {0};
    leat__buf jpeg;
    leat__rng r;
    int rc;

    (void)ctx;
    leat__buf_init(&jpeg, LEAT__MEM_MISC, (size_t)64 << 20);
    leat__rng_init(&r, 2026, 0, p->number, 0);
    uint32_t width = 320 + (uint32_t)leat__rng_below(&r, 240),
             height = 240 + (uint32_t)leat__rng_below(&r, 180);
    leat__encode_opts opts = {.quality = 80 + (uint32_t)leat__rng_below(&r, 16),
                              .subsampling = leat__rng_below(&r, 4) ? 420 : 444};
    LEAT_GO(rc, out, leat__planes_resize(&image, width, height, 3, err));
    draw(p->number, p->number % m->classes, &image);
    LEAT_GO(rc, out, leat__jpeg_encode(&image, &opts, &jpeg, err));
    leat__file *f = NULL;
    LEAT_GO(rc, out,
            leat__file_open(&f, p->path, LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_TRUNCATE, err));
    rc = leat__file_pwrite(f, jpeg.data, jpeg.len, 0, err);
    leat__file_close(&f);
    uint64_t bytes = atomic_fetch_add(&m->bytes, jpeg.len) + jpeg.len;
    cli_progress_at(&m->bar, atomic_fetch_add(&m->done, 1) + 1, bytes, 0);
out:
    leat__planes_reset(&image);
    leat__buf_reset(&jpeg);
    leat__free(p);
    task->data = NULL;
    return rc;
}

static int make_photos(maker *m, leat_error *err)
{
    leat_flow *flow = NULL;
    leat_flow_opts opts;
    leat_stage source, sink;
    int rc = 0;

    for (uint64_t i = 0; i < m->classes && i < m->images; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/photos/class-%03u", m->dir, (unsigned)i);
        LEAT_TRY(leat__path_mkdir(path, err));
    }
    leat_flow_opts_init(&opts);
    opts.name = "photos";
    LEAT_GO(rc, out, leat_flow_open(&flow, &opts, err));
    leat_stage_init(&source);
    source.kind = LEAT_STAGE_SOURCE;
    source.name = "number";
    source.cookie = m;
    source.process = next_picture;
    LEAT_GO(rc, out, leat_flow_add(flow, &source, err));
    leat_stage_init(&sink);
    sink.kind = LEAT_STAGE_SINK;
    sink.name = "draw";
    sink.cookie = m;
    sink.scratch = 4 << 20;
    sink.process = make_picture;
    LEAT_GO(rc, out, leat_flow_add(flow, &sink, err));
    LEAT_GO(rc, out, leat_flow_start(flow, err));
    cli_progress_begin(&m->bar, m->c, "drawing", "pictures", m->images);
    rc = leat_flow_wait(flow, -1, err);
    cli_progress_end(&m->bar);
out:
    leat_flow_close(&flow);
    if (rc == 0 && cli_interrupted(m->c)) rc = leat__fail(err, LEAT_ECANCELED, "canceled");
    return rc;
}

/* ---- what is there ------------------------------------------------------------------------ */

/* True for names that the demo creates: "class-000", or "000000.jpg". */
static bool is_name(const char *name, const char *begin, const char *end)
{
    if (!leat__str_starts(name, begin)) return false;
    name += strlen(begin);
    size_t digits = strspn(name, "0123456789");
    return digits >= 3 && leat__str_eq(name + digits, end);
}

/* Fails when `path` has an entry that is not from a demo; a missing folder is empty. */
static int check_folder(const char *path, bool classes, leat_error *err)
{
    leat__dir dir = {0};
    bool there = false;
    LEAT_TRY(leat__path_exists(path, &there, err));
    int rc = there ? leat__dir_read(&dir, path, false, err) : 0;
    for (size_t i = 0; i < dir.count && rc == 0; i++) {
        const char *name = leat__dir_name(&dir, i);
        char below[1024];
        bool ours = classes ? dir.entries[i].kind == LEAT__ENTRY_FOLDER && is_name(name, "class-", "")
                            : dir.entries[i].kind == LEAT__ENTRY_FILE && is_name(name, "", ".jpg");
        snprintf(below, sizeof below, "%s/%s", path, name);
        if (!ours)
            rc = leat__fail(err, LEAT_EEXIST,
                            "%s: is not from a demo, and the demo draws into this folder; give another --dir",
                            below);
        else if (classes) rc = check_folder(below, false, err);
    }
    leat__dir_reset(&dir);
    return rc;
}

/* Called before anything is drawn: the demo never writes to a user's folder and replaces nothing. */
static int check_dir(const char *dir, leat_error *err)
{
    static const char *const made[] = {"photos.leat", "photos-keep.leat", "exported", "report.html"};
    char path[1024];
    snprintf(path, sizeof path, "%s/photos", dir);
    LEAT_TRY(check_folder(path, true, err));
    for (size_t i = 0; i < LEAT_COUNT(made); i++) {
        bool there;
        snprintf(path, sizeof path, "%s/%s", dir, made[i]);
        LEAT_TRY(leat__path_exists(path, &there, err));
        if (there) return leat__fail(err, LEAT_EEXIST, "%s: already exists; give another --dir", path);
    }
    return 0;
}

/* ---- commands ----------------------------------------------------------------------------- */

/* The words of a step, each ended by a NUL, with "%" replaced by the folder; and the line as a user
 * types it. */
typedef struct step_words {
    leat__buf words, line;
    size_t count;
} step_words;

static int write_words(step_words *s, const char *line, const char *dir, leat_error *err)
{
    leat__buf_init(&s->words, LEAT__MEM_MISC, 1u << 20);
    leat__buf_init(&s->line, LEAT__MEM_MISC, 1u << 20);
    s->count = 0;
    for (const char *p = line; *p; s->count++) {
        const size_t begin = s->words.len, end = strcspn(p, " ");
        for (size_t i = 0; i < end; i++)
            if (p[i] == '%') leat__buf_puts(&s->words, dir);
            else leat__buf_putc(&s->words, p[i]);
        leat__buf_putc(&s->words, '\0');
        if (s->words.status != 0) break;
        leat__buf_puts(&s->line, s->count ? " " : "");
        if (memchr(p, '%', end)) leat__str_shell(&s->line, (char *)s->words.data + begin);
        else leat__buf_puts(&s->line, (char *)s->words.data + begin);
        p += end + (p[end] == ' ');
    }
    return s->words.status || s->line.status ? leat__fail_nomem(err, s->words.len, "a command") : 0;
}

static void drop_words(step_words *s)
{
    leat__buf_reset(&s->words);
    leat__buf_reset(&s->line);
}

/* Starts a command in a separate process group. A signal sent to the whole group of the terminal then
 * reaches it only once, through cli_child. SIGTTOU is blocked so that it may still write to the
 * terminal. */
static int start(pid_t *child, const char *program, char **argv)
{
    posix_spawnattr_t attr;
    sigset_t mask;
    int rc = posix_spawnattr_init(&attr);
    if (rc != 0) return rc;
    sigemptyset(&mask);
    sigaddset(&mask, SIGTTOU);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setsigmask(&attr, &mask);
    rc = posix_spawnp(child, program, NULL, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    return rc;
}

/* Waits for the child, which meanwhile gets the signals of this process. */
static int wait_for(pid_t child, int *status)
{
    siginfo_t ended;
    int rc;
    cli_child(child);
    do rc = waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT); /* the process id stays reserved */
    while (rc < 0 && errno == EINTR);
    cli_child(0);
    do rc = waitpid(child, status, 0);
    while (rc < 0 && errno == EINTR);
    return rc < 0 ? errno : 0;
}

/* Runs leat with these words and waits for it. */
static int run_words(cli *c, const char *title, const step_words *s, int *status, leat_error *err)
{
    static const char *const this_program[] = {"leat", NULL};
    char *argv[ARGS_MAX], *word = (char *)s->words.data;
    size_t n = 0;
    pid_t child;

    cli_out(c, "\n%s# %s%s\n$ leat %s\n", cli_styled(c, CLI_DIM), title, cli_styled(c, CLI_PLAIN),
            leat__buf_str(&s->line));
    fflush(stdout);
    for (const char *const *w = c->self ? c->self : this_program; *w != NULL && n + 1 < ARGS_MAX; w++)
        argv[n++] = (char *)*w;
    for (size_t i = 0; i < s->count && n + 1 < ARGS_MAX; i++, word += strlen(word) + 1) argv[n++] = word;
    argv[n] = NULL;
    int rc = start(&child, c->self ? argv[0] : "/proc/self/exe", argv);
    if (rc != 0) return leat__fail_errno(err, rc, "cannot start %s", argv[0]);
    rc = wait_for(child, status);
    return rc == 0 ? 0 : leat__fail_errno(err, rc, "waiting for %s", argv[0]);
}

/* Removes unfinished packs after a signal. A stopped step keeps them for --resume, which the demo does not
 * use. */
static void remove_unfinished(cli *c, const char *dir)
{
    static const char *const names[] = {"photos.leat.partial", "photos.leat.journal",
                                        "photos-keep.leat.partial", "photos-keep.leat.journal"};
    char path[1024];
    bool there, some = false;
    for (size_t i = 0; i < LEAT_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        some |= leat__path_exists(path, &there, NULL) == 0 && there && leat__path_unlink(path, NULL) == 0;
    }
    if (some) cli_say(c, "the demo was stopped, and its unfinished pack removed");
}

static const struct step {
    const char *title, *line;
    bool finding; /* exit code 1 is a result, not a failure */
} steps[] = {
    {"what this machine gives us", "machine", false},
    {"one file from all pictures, in tiles that decode fast; every picture is checked",
     "pack %/photos -o %/photos.leat --images tiled", false},
    {"the same pictures as plain JPEG, to compare", "pack %/photos -o %/photos-keep.leat --images keep",
     false},
    {"what is in it", "info %/photos.leat", false},
    {"every byte checked", "verify %/photos.leat", false},
    {"the original files back, byte for byte", "export %/photos.leat -o %/exported", false},
    {"what training on it will take", "plan --dataset %/photos.leat --model resnet50 --batch 256", true},
    {"plain JPEG: random crops, two epochs", "load %/photos-keep.leat --epochs 2 --batch 128 --digest",
     false},
    {"tiles: the same pixels, faster", "load %/photos.leat --epochs 2 --batch 128 --digest", false},
    {"the bottleneck of a trainer with 20 ms a step, and a report as a page",
     "doctor %/photos.leat --step-ms 20 --batch 64 --seconds 6 --report %/report.html", true},
};

/* Runs a step; returns CLI_OK unless it failed. */
static int run_step(cli *c, const struct step *step, const char *dir)
{
    leat_error err = {0};
    step_words s;
    int status, exit_code = CLI_OK, rc = write_words(&s, step->line, dir, &err);
    if (rc == 0) rc = run_words(c, step->title, &s, &status, &err);
    if (rc != 0) {
        exit_code = cli_fail(c, &err);
    } else if (!cli_interrupted(c)) {
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (code != 0 && !(step->finding && (code == CLI_FINDING || code == CLI_FIT)))
            exit_code = cli_failf(c, code, "this step failed: leat %s", leat__buf_str(&s.line));
    }
    drop_words(&s);
    return exit_code;
}

static int run(cli *c)
{
    maker m = {.c = c,
               .dir = cli_str(c, "dir"),
               .images = (uint64_t)cli_int(c, "images"),
               .classes = (uint64_t)cli_int(c, "classes")};
    leat_error err = {0};
    char bytes[24];
    int exit_code = CLI_OK;

    if (check_dir(m.dir, &err) != 0) return cli_fail(c, &err);
    cli_out(c, "%s# %llu picture%s in %llu class%s, drawn into %s/photos%s\n", cli_styled(c, CLI_DIM),
            (unsigned long long)m.images, cli_s(m.images), (unsigned long long)m.classes,
            m.classes == 1 ? "" : "es", m.dir, cli_styled(c, CLI_PLAIN));
    fflush(stdout);
    if (make_photos(&m, &err) != 0) return cli_fail(c, &err);
    cli_out(c, "%llu picture%s, %s\n", (unsigned long long)m.done, cli_s(m.done),
            leat__format_bytes(m.bytes, bytes, sizeof bytes));
    for (size_t i = 0; i < LEAT_COUNT(steps) && exit_code == CLI_OK && !cli_interrupted(c); i++)
        exit_code = run_step(c, &steps[i], m.dir);
    if (cli_interrupted(c)) remove_unfinished(c, m.dir);
    return exit_code;
}

const cli_command cli_cmd_demo = {
    .name = "demo",
    .summary = "run every step on generated data",
    .examples = (const cli_example[]){{"leat demo", "write everything to demo-out"},
                                      {"leat demo --images 200 --dir /tmp/demo", "a smaller one"},
                                      {NULL, NULL}},
    .description = "Draws pictures that look enough like photographs, then packs, checks, exports, plans, "
                   "loads and diagnoses them. Every step is an ordinary leat command, shown before it runs. "
                   "A folder with other files in photos, or with the results of a demo, is refused.",
    .options = {{"Demo", options}},
    .run = run,
};
