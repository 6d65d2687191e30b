/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include <zlib.h>

#include "curate/text_files.h"

static int open_files(leat__text_files *f, const char *a, const char *b, uint64_t max, leat_error *err)
{
    const char *in[] = {in_box(a), b ? in_box(b) : NULL};
    return leat__text_files_open(f, in, b ? 2 : 1, max, err);
}

static void finding(void **state)
{
    leat__text_files f;
    leat_error err = {0};
    put_text("in/b.jsonl", "{}\n");
    put_text("in/a.jsonl.gz", "");
    put_text("in/deep/c.ndjson", "{}\n");
    put_text("in/notes.txt", "no");
    put_text("in/.hidden.jsonl", "no");
    assert_int_equal(open_files(&f, "in", "in/b.jsonl", 1 << 20, &err), 0);
    assert_int_equal(f.count, 4);
    assert_non_null(strstr(f.path[0], "a.jsonl.gz"));
    assert_non_null(strstr(f.path[2], "deep/c.ndjson"));
    leat__text_files_reset(&f);
    assert_int_equal(open_files(&f, "in/[ab].jsonl*", NULL, 1 << 20, &err), 0);
    assert_int_equal(f.count, 2);
    leat__text_files_reset(&f);
    assert_int_equal(open_files(&f, "in/x*.jsonl", NULL, 1 << 20, &err), LEAT_ENOENT);
    assert_int_equal(open_files(&f, "nowhere.jsonl", NULL, 1 << 20, &err), LEAT_ENOENT);
    put_text("empty/readme", "");
    assert_int_equal(open_files(&f, "empty", NULL, 1 << 20, &err), LEAT_ENOENT);
    assert_non_null(strstr(err.message, ".jsonl"));
}

static void other_formats_are_refused(void **state)
{
    static const char *const heads[][2] = {
        {"PAR1....", "Parquet"}, {"BZh91AY", "bzip2"}, {"\xff\xfe{", "UTF-16"}};
    leat__text_files f;
    leat_error err = {0};
    for (size_t i = 0; i < LEAT_COUNT(heads); i++) {
        put_text("other.jsonl", heads[i][0]);
        assert_int_equal(open_files(&f, "other.jsonl", NULL, 1 << 20, &err), LEAT_EFORMAT);
        if (!strstr(err.message, heads[i][1])) fail_msg("%s", err.message);
    }
}

static void note_warning(void *cookie, leat_log_level level, const char *line)
{
    snprintf(cookie, 256, "%s", line);
}

static void files_beside_kept_ones_are_named(void **state)
{
    leat__text_files f;
    char warning[256] = "";
    const leat_log log = {.write = note_warning, .cookie = warning};
    put_text("made/kept-00000.jsonl", "{}\n");
    put_text("made/reasons.jsonl", "{}\n");
    put_text("made/report.json", "{}\n");
    assert_int_equal(open_files(&f, "made", NULL, 1 << 20, NULL), 0);
    leat__text_files_warn(&f, &log);
    assert_string_equal(warning, "");
    leat__text_files_reset(&f);
    put_text("made/new.jsonl", "{}\n");
    assert_int_equal(open_files(&f, "made", NULL, 1 << 20, NULL), 0);
    assert_int_equal(f.count, 1);
    leat__text_files_warn(&f, &log);
    assert_non_null(strstr(warning, "made/new.jsonl: not read"));
    leat__text_files_reset(&f);
}

/* All lines of a file, whatever their lengths, with numbers and offsets. */
static void lines_are_whole(void **state)
{
    static const size_t lengths[] = {10,     0,      1 << 20, 3 << 20, 5, (1 << 20) - 1, (1 << 20) - 17,
                                     700000, 700000, 2};
    enum { N = sizeof lengths / sizeof lengths[0] };
    leat__buf data;
    leat__buf_init(&data, LEAT__MEM_MISC, 1u << 28);
    for (size_t i = 0; i < N; i++) {
        for (size_t k = 0; k < lengths[i]; k++) leat__buf_putc(&data, (char)('a' + i));
        if (i + 1 < N) leat__buf_putc(&data, '\n');
    }
    put_file("long.jsonl", data.data, data.len);
    leat__text_files f;
    assert_int_equal(open_files(&f, "long.jsonl", "long.jsonl", 8 << 20, NULL), 0);
    for (int again = 0; again < 2; again++) {
        size_t seen = 0, expect = 0;
        for (;;) {
            bool end;
            leat__text_chunk *c = leat__text_chunk_new();
            assert_int_equal(leat__text_files_read(&f, c, &end, NULL), 0);
            leat__line line;
            size_t at = 0;
            while (!end && leat__text_chunk_next(c, &at, &line)) {
                if (lengths[expect % N] == 0) expect++; /* blank */
                assert_int_equal(line.number, expect % N + 1);
                assert_int_equal(line.document, expect);
                assert_int_equal(line.len, lengths[expect % N]);
                assert_memory_equal(line.text, data.data + line.offset, line.len);
                assert_true(line.text[line.len] == '\n' || line.text[line.len] == 0);
                expect++;
                seen++;
            }
            leat__text_chunk_free(c);
            if (end) break;
        }
        assert_int_equal(seen, 2 * (N - 1));
        leat__text_files_rewind(&f);
    }
    leat__text_files_reset(&f);
    leat__buf_reset(&data);
}

/* A chunk has at most LEAT__CHUNK_LINES lines; none is lost where it is cut. */
static void chunks_of_short_lines(void **state)
{
    enum { LINES = 3 * LEAT__CHUNK_LINES + 5 };
    FILE *file = fopen(in_box("short.jsonl"), "wb");
    for (int i = 0; i < LINES; i++) fprintf(file, "%d%s", i, i + 1 < LINES ? "\n" : "");
    fclose(file);
    const char *path = in_box("short.jsonl");
    leat__text_files f;
    leat_error err = {0};
    leat__line line;
    int next = 0;
    bool end = false;
    assert_int_equal(leat__text_files_open(&f, &path, 1, 1u << 20, &err), 0);
    for (;;) {
        leat__text_chunk *c = leat__text_chunk_new();
        size_t at = 0;
        assert_int_equal(leat__text_files_read(&f, c, &end, &err), 0);
        if (!end) assert_in_range(c->lines, 1, LEAT__CHUNK_LINES);
        for (; !end && leat__text_chunk_next(c, &at, &line); next++) {
            assert_int_equal(line.number, next + 1);
            assert_int_equal(strtol((const char *)line.text, NULL, 10), next);
        }
        leat__text_chunk_free(c);
        if (end) break;
    }
    assert_int_equal(next, LINES);
    leat__text_files_reset(&f);
}

static void a_line_can_be_too_long(void **state)
{
    leat__buf data;
    leat__buf_init(&data, LEAT__MEM_MISC, 1u << 28);
    leat__buf_puts(&data, "first\n");
    for (size_t k = 0; k < 5u << 20; k++) leat__buf_putc(&data, 'x');
    leat__buf_puts(&data, "\nlast\n");
    put_file("big.jsonl", data.data, data.len);
    leat__text_files f;
    assert_int_equal(open_files(&f, "big.jsonl", NULL, 2 << 20, NULL), 0);
    uint64_t too_long = 0, lines = 0;
    for (bool end = false; !end;) {
        leat__text_chunk *c = leat__text_chunk_new();
        assert_int_equal(leat__text_files_read(&f, c, &end, NULL), 0);
        leat__line line;
        size_t at = 0;
        if (c->too_long) {
            too_long = c->too_long;
            assert_int_equal(c->line, 2);
        }
        while (!end && leat__text_chunk_next(c, &at, &line)) {
            assert_int_equal(line.number, lines == 0 ? 1 : 3);
            assert_memory_equal(line.text, lines == 0 ? "first" : "last", 4);
            lines++;
        }
        leat__text_chunk_free(c);
    }
    assert_int_equal(lines, 2);
    assert_int_equal(too_long, (5u << 20) + 1);
    leat__text_files_reset(&f);
    leat__buf_reset(&data);
}

/* A folder written by a run: its lists are not documents. */
static void output_of_a_run(void **state)
{
    leat__text_files f;
    put_text("out/kept-00000.jsonl", "{}\n");
    put_text("out/kept-00001.jsonl.gz", "");
    put_text("out/reasons.jsonl", "{}\n");
    put_text("out/bad.jsonl", "{}\n");
    assert_int_equal(open_files(&f, "out", NULL, 1 << 20, NULL), 0);
    assert_int_equal(f.count, 4);
    leat__text_files_reset(&f);
    put_text("out/report.json", "{}\n");
    assert_int_equal(open_files(&f, "out", NULL, 1 << 20, NULL), 0);
    assert_int_equal(f.count, 2);
    assert_non_null(strstr(f.path[1], "kept-00001.jsonl.gz"));
    leat__text_files_reset(&f);
}

/* Outputs below an input folder are left out beside other files, which they may be made of. */
static void output_below_an_input(void **state)
{
    static const char *const report = "{\"documents\":1,\"kept\":1,\"bad\":0,\"written\":[]}\n";
    leat__text_files f;
    char warning[256] = "";
    const leat_log log = {.write = note_warning, .cookie = warning};
    put_text("top/b/kept-00000.jsonl", "{}\n");
    put_text("top/b/report.json", report);
    put_text("top/c/scores-00000.jsonl", "{}\n");
    put_text("top/c/report.json", report);
    assert_int_equal(open_files(&f, "top", NULL, 1 << 20, NULL), 0); /* nothing else: they are read */
    assert_non_null(strstr(f.path[0], "top/b/kept-00000.jsonl"));
    leat__text_files_warn(&f, &log);
    assert_string_equal(warning, "");
    leat__text_files_reset(&f);
    put_text("top/d/e.jsonl", "{}\n");
    assert_int_equal(open_files(&f, "top", NULL, 1 << 20, NULL), 0);
    assert_int_equal(f.count, 1);
    assert_non_null(strstr(f.path[0], "top/d/e.jsonl"));
    leat__text_files_warn(&f, &log);
    if (!strstr(warning, "top/b and 1 more folder: not read")) fail_msg("%s", warning);
    leat__text_files_reset(&f);
    assert_int_equal(open_files(&f, "top", "top/b", 1 << 20, NULL), 0);
    assert_int_equal(f.count, 2);
    leat__text_files_reset(&f);
    put_text("top/b/raw.jsonl", "{}\n"); /* not of the run, and in a folder below it */
    put_text("top/b/more/raw.jsonl", "{}\n");
    assert_int_equal(open_files(&f, "top", NULL, 1 << 20, NULL), 0);
    assert_int_equal(f.count, 3);
    assert_non_null(strstr(f.path[0], "top/b/more/raw.jsonl"));
    assert_non_null(strstr(f.path[1], "top/b/raw.jsonl"));
    leat__text_files_reset(&f);
}

/* An empty file has no documents: the outputs beside it are the input. */
static void empty_files_beside_outputs(void **state)
{
    leat__text_files f;
    put_text("thin/a.jsonl", "");
    put_text("thin/b/kept-00000.jsonl", "{}\n");
    put_text("thin/b/report.json", "{\"documents\":1,\"kept\":1,\"bad\":0,\"written\":[]}\n");
    assert_int_equal(open_files(&f, "thin", NULL, 1 << 20, NULL), 0);
    assert_int_equal(f.count, 2);
    assert_non_null(strstr(f.path[1], "thin/b/kept-00000.jsonl"));
    assert_null(f.skipped);
    leat__text_files_reset(&f);
}

/* A folder whose run was killed while it replaced the files: it has files of two runs, or too few. */
static void output_of_a_killed_run(void **state)
{
    static const char *const inputs[] = {"half", "half/kept-*", "half/kept-00000.jsonl", "above"};
    leat__text_files f;
    leat_error err = {0};
    put_text("half/kept-00000.jsonl", "{}\n");
    put_text("half/mine.jsonl", "{}\n");
    put_text("half/.leat-lock", "1\nfiles of leat\n");
    put_text("above/half/kept-00001.jsonl", "{}\n");
    put_text("above/half/.leat-lock", "1\nfiles of leat\n");
    for (size_t i = 0; i < LEAT_COUNT(inputs); i++) {
        assert_int_equal(open_files(&f, inputs[i], NULL, 1 << 20, &err), LEAT_EDATA);
        if (!strstr(err.message, "half: incomplete output")) fail_msg("%s", err.message);
    }
    assert_int_equal(open_files(&f, "half/mine.jsonl", NULL, 1 << 20, NULL), 0);
    leat__text_files_reset(&f);
    put_text("half/.leat-lock", "1\n"); /* killed before it replaced anything */
    assert_int_equal(open_files(&f, "half", NULL, 1 << 20, NULL), 0);
    leat__text_files_reset(&f);
}

/* A run must not replace what it reads. */
static void outputs_that_are_inputs(void **state)
{
    leat__text_files f;
    leat_error err = {0};
    char link[256], reports[600];
    put_text("own/kept-00000.jsonl", "{}\n");
    put_text("own/report.json", "{}");
    put_text("own/plain.json", "{}\n");
    assert_int_equal(open_files(&f, "own", NULL, 1 << 20, &err), 0);
    assert_int_equal(f.count, 1);
    assert_int_equal(leat__text_files_check(&f, NULL, NULL, &err), 0);
    assert_int_equal(leat__text_files_check(&f, in_box("other"), NULL, &err), 0);
    assert_int_equal(leat__text_files_check(&f, in_box("own/deep"), NULL, &err), 0);
    assert_int_equal(leat__text_files_check(&f, in_box("own/"), NULL, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "kept-00000.jsonl: is an input"));
    snprintf(link, sizeof link, "%s", in_box("link"));
    assert_int_equal(symlink(in_box("own"), link), 0);
    assert_int_equal(leat__text_files_check(&f, link, NULL, &err), LEAT_EINVAL);
    leat__text_files_reset(&f);
    assert_int_equal(open_files(&f, "own/plain.json", NULL, 1 << 20, &err), 0);
    assert_int_equal(leat__text_files_check(&f, in_box("own"), in_box("own/new.json"), &err), 0);
    snprintf(reports, sizeof reports, "%s.html,%s/plain.json", link, link);
    assert_int_equal(leat__text_files_check(&f, NULL, reports, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "is an input"));
    leat__text_files_reset(&f);
}

static void a_link_to_a_folder_above_is_named(void **state)
{
    leat__text_files f;
    leat_error err = {0};
    put_text("loop/deep/a.jsonl", "{}\n");
    assert_int_equal(symlink("../../loop", in_box("loop/deep/back")), 0);
    assert_int_equal(open_files(&f, "loop", NULL, 1 << 20, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "loop/deep/back: a link leads back to a folder above it"));
}

static void byte_order_mark(void **state)
{
    leat__text_files f;
    leat__line line;
    bool end;
    put_text("bom.jsonl", "\xef\xbb\xbf{}\n\xef\xbb\xbf{}\n");
    put_text("only.jsonl", "\xef\xbb\xbf");
    assert_int_equal(open_files(&f, "bom.jsonl", "only.jsonl", 1 << 20, NULL), 0);
    leat__text_chunk *c = leat__text_chunk_new();
    size_t at = 0;
    assert_int_equal(leat__text_files_read(&f, c, &end, NULL), 0);
    assert_true(leat__text_chunk_next(c, &at, &line));
    assert_int_equal(line.offset, 3);
    assert_int_equal(line.len, 2);
    assert_true(leat__text_chunk_next(c, &at, &line)); /* elsewhere it is part of the line */
    assert_int_equal(line.len, 5);
    leat__text_chunk_clear(c);
    at = 0;
    assert_int_equal(leat__text_files_read(&f, c, &end, NULL), 0);
    assert_false(end);
    assert_false(leat__text_chunk_next(c, &at, &line));
    leat__text_chunk_free(c);
    leat__text_files_reset(&f);
}

static void damaged_gzip_is_an_error(void **state)
{
    gzFile z = gzopen(in_box("cut.jsonl.gz"), "wb");
    for (int i = 0; i < 10000; i++) gzprintf(z, "{\"text\":\"%d\"}\n", i * 7919);
    gzclose(z);
    assert_int_equal(truncate(in_box("cut.jsonl.gz"), 9000), 0);
    leat__text_files f;
    leat_error err = {0};
    assert_int_equal(open_files(&f, "cut.jsonl.gz", NULL, 1 << 20, &err), 0);
    leat__text_chunk *c = leat__text_chunk_new();
    bool end;
    assert_int_equal(leat__text_files_read(&f, c, &end, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "cut.jsonl.gz"));
    leat__text_chunk_free(c);
    leat__text_files_reset(&f);
}

/* Reading that begins at a cut gives the chunks of reading from the start. */
/* The size of a file is that of the list, from which a run has its total. */
static void a_file_of_another_size_has_changed(void **state)
{
    static const char *const now[] = {"{}\n", "{}\n{}\n{}\n"};
    leat__text_chunk *c = leat__text_chunk_new();
    for (size_t i = 0; i < LEAT_COUNT(now); i++) {
        leat__text_files f;
        leat_error err = {0};
        bool end = false;
        put_text("first.jsonl", "{}\n");
        put_text("second.jsonl", "{}\n{}\n");
        assert_int_equal(open_files(&f, "first.jsonl", "second.jsonl", 1 << 20, &err), 0);
        put_text("second.jsonl", now[i]);
        leat__text_chunk_clear(c);
        assert_int_equal(leat__text_files_read(&f, c, &end, &err), 0);
        leat__text_chunk_clear(c);
        assert_int_equal(leat__text_files_read(&f, c, &end, &err), LEAT_EDATA);
        assert_non_null(strstr(err.message, "second.jsonl: changed since the run began"));
        assert_null(strstr(err.message, "force")); /* without checksums there is nothing to resume */
        leat__text_files_reset(&f);
    }
    leat__text_chunk_free(c);
}

static void cuts_keep_chunks(void **state)
{
    leat__buf data;
    leat__text_files f;
    leat__text_cut *cuts;
    size_t n;
    leat__buf_init(&data, LEAT__MEM_MISC, 1u << 26);
    for (int i = 0; i < 30000; i++) {
        int len = i == 9000 ? 3 << 20 : i == 12000 ? 6 << 20 : i % 100 == 0 ? 9000 : 20 + i % 90;
        for (int k = 0; k < len; k++) leat__buf_putc(&data, (char)('a' + i % 26));
        if (i < 29999) leat__buf_putc(&data, '\n');
    }
    put_file("cuts.jsonl", data.data, data.len);
    leat__buf_reset(&data);
    assert_int_equal(open_files(&f, "cuts.jsonl", NULL, 4 << 20, NULL), 0);
    assert_int_equal(leat__text_files_cut(&f, 1, true, &cuts, &n, NULL), 0);
    assert_true(n > 8);
    leat__text_files part;
    assert_int_equal(open_files(&part, "cuts.jsonl", NULL, 4 << 20, NULL), 0);
    leat__text_chunk *a = leat__text_chunk_new(), *b = leat__text_chunk_new();
    bool end = false, part_end;
    for (size_t i = 0; i <= n; i++) {
        assert_int_equal(leat__text_files_seek(&part, 0, i ? cuts[i - 1].offset : 0, i ? cuts[i - 1].line : 1,
                                               i ? cuts[i - 1].line - 1 : 0, NULL),
                         0);
        part.end_file = i < n ? 0 : 1;
        part.end_offset = i < n ? cuts[i].offset : 0;
        for (;;) {
            leat__text_chunk_clear(b);
            assert_int_equal(leat__text_files_read(&part, b, &part_end, NULL), 0);
            if (part_end) break;
            leat__text_chunk_clear(a);
            assert_int_equal(leat__text_files_read(&f, a, &end, NULL), 0);
            assert_false(end);
            assert_int_equal(a->offset, b->offset);
            assert_int_equal(a->line, b->line);
            assert_int_equal(a->document, b->document);
            assert_int_equal(a->lines, b->lines);
            assert_int_equal(a->too_long, b->too_long);
            assert_int_equal(a->len, b->len);
            assert_memory_equal(a->data, b->data, a->len);
        }
    }
    leat__text_chunk_clear(a);
    assert_int_equal(leat__text_files_read(&f, a, &end, NULL), 0);
    assert_true(end);
    leat__text_chunk_free(a);
    leat__text_chunk_free(b);
    leat__free(cuts);
    leat__text_files_reset(&part);
    leat__text_files_reset(&f);
}

/* Cuts at any line: parts have all lines, each once, for any step. */
static void cuts_at_lines(void **state)
{
    leat__buf data;
    leat__buf_init(&data, LEAT__MEM_MISC, 1u << 26);
    for (int i = 0; i < 3000; i++) {
        int len = i == 900 ? 2 << 20 : i == 1200 || i == 1201 ? 5 << 20 : i % 100 == 0 ? 90000 : i % 90;
        for (int k = 0; k < len; k++) leat__buf_putc(&data, (char)('a' + i % 26));
        if (i < 2999) leat__buf_putc(&data, '\n');
    }
    put_file("lines.jsonl", data.data, data.len);
    static const uint64_t steps[] = {1000, 70000, 1 << 20, 3 << 20, 1 << 28};
    for (size_t s = 0; s < LEAT_COUNT(steps); s++) {
        leat__text_files f;
        leat__text_cut *cuts;
        size_t n;
        assert_int_equal(open_files(&f, "lines.jsonl", NULL, 4 << 20, NULL), 0);
        assert_int_equal(leat__text_files_cut(&f, steps[s], false, &cuts, &n, NULL), 0);
        assert_true(steps[s] == 1 << 28 ? n == 0 : n > 0);
        leat__text_chunk *c = leat__text_chunk_new();
        uint64_t at = 0, line = 1, count;
        for (size_t i = 0; i <= n; i++) {
            uint64_t from = i ? cuts[i - 1].offset : 0, to = i < n ? cuts[i].offset : data.len;
            bool end;
            assert_true(i == n || (to - from >= steps[s] && data.data[to - 1] == '\n' && cuts[i].line == 0));
            assert_int_equal(leat__text_count_lines(in_box("lines.jsonl"), 0, from, &count, NULL), 0);
            assert_int_equal(count + 1, line);
            assert_int_equal(leat__text_files_seek(&f, 0, from, line, line - 1, NULL), 0);
            f.end_file = i < n ? 0 : 1;
            f.end_offset = i < n ? to : 0;
            for (;;) {
                leat__text_chunk_clear(c);
                assert_int_equal(leat__text_files_read(&f, c, &end, NULL), 0);
                if (end) break;
                assert_int_equal(c->offset, at);
                assert_int_equal(c->line, line);
                if (!c->too_long) assert_memory_equal(c->data, data.data + at, c->len);
                at += c->len + c->too_long;
                line += c->lines;
            }
            assert_int_equal(at, to);
        }
        assert_int_equal(line, 3001);
        leat__text_chunk_free(c);
        leat__free(cuts);
        leat__text_files_reset(&f);
    }
    leat__buf_reset(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finding),
        cmocka_unit_test(other_formats_are_refused),
        cmocka_unit_test(files_beside_kept_ones_are_named),
        cmocka_unit_test(a_link_to_a_folder_above_is_named),
        cmocka_unit_test(lines_are_whole),
        cmocka_unit_test(a_line_can_be_too_long),
        cmocka_unit_test(chunks_of_short_lines),
        cmocka_unit_test(output_of_a_run),
        cmocka_unit_test(output_below_an_input),
        cmocka_unit_test(empty_files_beside_outputs),
        cmocka_unit_test(output_of_a_killed_run),
        cmocka_unit_test(outputs_that_are_inputs),
        cmocka_unit_test(byte_order_mark),
        cmocka_unit_test(damaged_gzip_is_an_error),
        cmocka_unit_test(a_file_of_another_size_has_changed),
        cmocka_unit_test(cuts_keep_chunks),
        cmocka_unit_test(cuts_at_lines),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
