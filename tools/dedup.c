/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat dedup`: removes duplicate documents from JSONL files. Images: dedup_images.c.
 */
#include <leat/text.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "cli.h"
#include "cli_python.h"
#include "curate/dedup.h"
#include "dedup_images.h"
#include "dedup_semantic.h"

static const leat__param finding[] = {
    CLI_PATH("output", 'o', NULL, "DIR",
             "write kept documents, clusters, bad lines and the report here; images: a pack; only --plan "
             "needs none"),
    CLI_FLAG("normalize", 0, "exact: compare words only, without case, punctuation and white space"),
    CLI_CHOICE("level", 0, "document", "document|line|paragraph",
               "exact: take repeated lines or paragraphs out of the texts instead of whole documents"),
    CLI_INT("words", 0, "0", 0, 4096, "N",
            "fuzzy: words of a shingle, at most 64, 0 = 5; substring: words that must be equal, 0 = 50"),
    CLI_INT("chars", 0, "0", 0, 1024, "N", "fuzzy: shingles of this many characters instead of words"),
    CLI_INT("bands", 0, "0", 0, 256, "N", "fuzzy: bands of a sketch, 0 = 14"),
    CLI_INT("rows", 0, "0", 0, 256, "N", "fuzzy: values of a band, 0 = 8"),
    CLI_FLOAT("threshold", 0, "0", 0, 1, "J",
              "least similarity of duplicates, above 0; without it 0.7, semantic 0.95"),
    CLI_CHOICE("compatible", 0, "none", "none|datasketch|datasketch-legacy|datatrove",
               "fuzzy: make this tool's signatures; documents that share a band are duplicates, "
               "unless --threshold is given"),
    CLI_CHOICE("clusters", 0, "star", "star|components",
               "star: every removed document is similar to the kept one; components: chains count"),
    CLI_CHOICE("keep", 0, "first", "first|longest|field|largest|quality|pack|outer|central",
               "which one of a cluster is kept; images: first, largest (their default), quality, or of "
               "the pack named first; vectors: first, farthest from the centre, or nearest to it"),
    CLI_STRING("keep-field", 0, NULL, "NAME", "keep the largest number of this key, with --keep field"),
    CLI_FLAG("index", 0, "save an index of the kept documents, for --against of later runs"),
    CLI_PATH("against", 0, NULL, "DIR", "also remove what is like a document of the index in DIR"),
    CLI_STRING("profile", 'p', NULL, "NAMES",
               "documents: first drop those that violate a rule of these profiles of leat filter"),
    CLI_STRING("set", 0, NULL, "RULES", "change thresholds of these rules or add rules: words.min=20"),
    CLI_STRING("report", 0, NULL, "FILES",
               "write a page with cluster sizes and similarities (NAME.html), or its data (NAME.json)"),
    CLI_PATH("config", 'c', NULL, "FILE", "read options from this YAML file; given options win"),
    CLI_FLAG("plan", 0, "print the plan and the chances of being found, and stop"),
    CLI_END,
};

static const leat__param files[] = {
    CLI_TEXT_FILES,
    CLI_FLAG("resume", 0, "resume an interrupted run"),
    CLI_THREADS,
    CLI_BYTES("memory", 0, "0", 0, 1e15, "hard memory limit, 0 = half of what is available"),
    CLI_INT("bands-per-iteration", 0, "0", 0, 256, "N",
            "fuzzy: bands on disk at once; fewer take less disk and more passes, 0 = all"),
    CLI_BYTES("checkpoint", 0, "512MiB", 1, 1e15, "save the state after this much input"),
    CLI_STRING("on", 0, NULL, "CLUSTER", "run on the nodes of a cluster: ray, ray://HOST:PORT"),
    CLI_BYTES("task-bytes", 0, "0", 0, 1e15, "input of a task with --on, 0 = by its size and the nodes"),
    CLI_END,
};

static const leat__param vectors[] = {
    CLI_FLOAT("keep-share", 0, "0", 0, 1, "P", "keep this share of the rows, instead of --threshold"),
    CLI_STRING("field", 0, NULL, "NAME", "field of the vectors, when the pack has several"),
    CLI_INT("centres", 0, "0", 0, 1e6, "N", "clusters of k-means, 0 = square root of the number of rows"),
    CLI_STRING("device", 0, NULL, "DEVICE", "run in PyTorch on this device, such as cuda"),
    CLI_END,
};

static const leat__param images[] = {
    CLI_PATH("csv", 0, NULL, "FILE", "write the pairs, the most similar first"),
    CLI_CHOICE("orientations", 0, "2", "1|2|8", "find images as they are, also mirrored, also turned"),
    CLI_FLAG("windows", 0, "also find large crops; takes about five times as long"),
    CLI_FLAG("across", 0, "find only pairs of different inputs, such as test images among train images"),
    CLI_FLAG("list-probable", 0, "list pairs that are probably duplicates in the CSV file, too"),
    CLI_END,
};

static void fill(cli *c, leat_dedup_opts *o)
{
    leat_dedup_opts_init(o);
    CLI_FILL_TEXT_FILES(o, c, NULL);
    o->kind = leat__str_eq(cli_arg(c, 0), "fuzzy") ? LEAT_DEDUP_FUZZY : LEAT_DEDUP_EXACT;
    o->normalize = cli_flag(c, "normalize");
    o->shingle_words = (uint32_t)cli_int(c, "words");
    o->shingle_chars = (uint32_t)cli_int(c, "chars");
    o->bands = (uint32_t)cli_int(c, "bands");
    o->rows = (uint32_t)cli_int(c, "rows");
    o->threshold = cli_float(c, "threshold");
    o->clusters = (uint32_t)cli_choice(c, "clusters");
    o->compatible = (uint32_t)cli_choice(c, "compatible");
    o->keep = (uint32_t)cli_choice(c, "keep");
    o->keep_field = cli_str(c, "keep-field");
    o->plan_only = cli_flag(c, "plan");
    o->index = cli_flag(c, "index");
    o->level =
        leat__str_eq(cli_arg(c, 0), "substring") ? LEAT_LEVEL_SUBSTRING : (uint32_t)cli_choice(c, "level");
    o->report = cli_str(c, "report");
    o->profile = cli_str(c, "profile");
    o->set = cli_str(c, "set");
    o->against = cli_str(c, "against");
    o->resume = cli_flag(c, "resume");
    o->bands_per_iteration = (uint32_t)cli_int(c, "bands-per-iteration");
    o->checkpoint_bytes = cli_bytes(c, "checkpoint");
}

static void print_plan(cli *c, const leat_dedup_stats *st)
{
    char memory[24], disk[24];
    cli_out(c,
            "about %llu document%s: %s of memory, %s of disk besides the output, %u pass%s for %s and 1 to "
            "write\n",
            (unsigned long long)st->plan_documents, cli_s(st->plan_documents),
            leat__format_bytes(st->plan_memory, memory, sizeof memory),
            leat__format_bytes(st->plan_disk, disk, sizeof disk), st->passes, st->passes == 1 ? "" : "es",
            st->rows ? "sketches" : "hashes");
    if (st->rows == 0) return;
    cli_out(c, "%u band%s of %u: chance to be compared", st->bands, cli_s(st->bands), st->rows);
    for (int i = 4; i <= 9; i++)
        cli_out(c, "%s %.2f at %.1f", i > 4 ? "," : "", leat_dedup_chance(i / 10.0, st->bands, st->rows),
                i / 10.0);
    cli_out(c, "\n");
}

static void print_text(cli *c, const leat_dedup_stats *st)
{
    char in[24], took[24], disk[24], words[160];
    cli_out(c, "%llu document%s: ", (unsigned long long)st->documents, cli_s(st->documents));
    if (st->rule_count) cli_out(c, "%llu dropped by rules, ", (unsigned long long)st->dropped);
    cli_out(c, "%llu kept, %llu removed in %llu cluster%s", (unsigned long long)st->kept,
            (unsigned long long)st->removed, (unsigned long long)st->clusters, cli_s(st->clusters));
    if (st->against)
        cli_out(c, ", %llu for one of %llu in the index", (unsigned long long)st->removed_against,
                (unsigned long long)st->against);
    if (st->below_threshold)
        cli_out(c, " (%llu of them below the threshold to the kept one)",
                (unsigned long long)st->below_threshold);
    cli_out(c, "\n%s of text, %s, %.0f MB per CPU-second; %llu comparison%s%s, %llu %s; %s on disk\n",
            leat__format_bytes(st->text_bytes, in, sizeof in),
            leat__format_seconds(st->seconds, took, sizeof took),
            st->cpu_seconds > 0 ? (double)st->text_bytes / 1e6 / st->cpu_seconds : 0.0,
            (unsigned long long)st->candidates, cli_s(st->candidates), st->rows ? " in bands" : "",
            (unsigned long long)st->verified, st->rows ? "similar" : "equal",
            leat__format_bytes(st->disk_bytes, disk, sizeof disk));
    if (st->load.limit) cli_out(c, "%s\n", leat__text_load_words(&st->load, words));
}

static void print_pieces(cli *c, const leat_dedup_opts *o, const leat_dedup_stats *st)
{
    char in[24], out[24], took[24];
    if (o->level == LEAT_LEVEL_SUBSTRING)
        cli_out(c, "%llu sequence%s of words: %llu span%s removed", (unsigned long long)st->pieces,
                cli_s(st->pieces), (unsigned long long)st->pieces_removed, cli_s(st->pieces_removed));
    else
        cli_out(c, "%llu %s%s: %llu removed", (unsigned long long)st->pieces,
                o->level == LEAT_LEVEL_LINE ? "line" : "paragraph", cli_s(st->pieces),
                (unsigned long long)st->pieces_removed);
    cli_out(c, " (%s) from %llu of %llu document%s; nothing is left of %llu\n",
            leat__format_bytes(st->bytes_removed, out, sizeof out), (unsigned long long)st->changed,
            (unsigned long long)st->documents, cli_s(st->documents), (unsigned long long)st->removed);
    cli_out(c, "%s of text, %s, %.0f MB per CPU-second\n", leat__format_bytes(st->text_bytes, in, sizeof in),
            leat__format_seconds(st->seconds, took, sizeof took),
            st->cpu_seconds > 0 ? (double)st->text_bytes / 1e6 / st->cpu_seconds : 0.0);
}

static int finish(cli *c, const leat_dedup_opts *o, const leat_dedup_stats *st)
{
    int code = cli_bad_lines(c, st->bad, st->documents, o->output);
    if (st->unscored)
        cli_warn(c, "%llu of %llu document%s %s no number in \"%s\": kept only if no duplicate has one",
                 (unsigned long long)st->unscored, (unsigned long long)st->documents, cli_s(st->documents),
                 st->unscored == 1 ? "has" : "have", o->keep_field);
    if (st->already_complete)
        cli_tell(c, "%s: already complete: a run with the same options and input wrote it", o->output);
    if (c->json) {
        leat__buf buf;
        leat__buf_init(&buf, LEAT__MEM_MISC, 1u << 20);
        leat__dedup_json(st, &buf);
        int printed = cli_json(c, &buf);
        return printed != CLI_OK ? printed : code;
    }
    if (st->already_complete) return code;
    if (o->plan_only) print_plan(c, st);
    else if (o->level) print_pieces(c, o, st);
    else print_text(c, st);
    return code;
}

static int run(cli *c)
{
    leat_error err = {0};
    leat_dedup_opts o;
    leat_dedup_stats st = {0};
    const char *inputs[1024];
    size_t n = cli_arg_count(c);
    int code = dedup_kind_check(c);
    if (code == CLI_OK && !cli_str(c, "output") && !cli_flag(c, "plan"))
        code = cli_usage(c, "--output is missing: write the result here");
    if (code == CLI_OK) code = cli_refuse_zero(c, "threshold");
    if (code != CLI_OK) return code;
    if (n - 1 > LEAT_COUNT(inputs))
        return cli_usage(c, "more than %zu inputs (name their folder)", LEAT_COUNT(inputs));
    for (size_t i = 1; i < n; i++) inputs[i - 1] = cli_arg(c, i);
    if (cli_given(c, "on")) return cli_python_ray(c);
    if (leat__str_eq(cli_arg(c, 0), "images")) return dedup_images(c, inputs, (uint32_t)(n - 1));
    if (leat__str_eq(cli_arg(c, 0), "semantic")) return dedup_semantic(c, (uint32_t)(n - 1));
    fill(c, &o);
    if (leat__str_eq(cli_arg(c, 0), "substring") && cli_given(c, "level"))
        return cli_usage(c, "--level is for exact, not for substring");
    if (o.compatible && o.threshold == 0 && cli_given(c, "clusters") && !o.clusters)
        return cli_usage(c, "--compatible makes components: --clusters star needs a --threshold");
    if (cli_given(c, "task-bytes")) return cli_usage(c, "--task-bytes needs --on");
    cli_progress bar;
    o.inputs = inputs;
    o.input_count = (uint32_t)(n - 1);
    o.cookie = &bar;
    cli_progress_begin(&bar, c, "deduplicating", "B", 0);
    int rc = leat_dedup_text(&o, &st, &err);
    cli_progress_end(&bar);
    if (rc == 0) return finish(c, &o, &st);
    code = cli_fail(c, &err);
    if (st.resumable && rc != LEAT_EDATA) cli_tell(c, "what was done is kept: --resume continues from there");
    return code;
}

const cli_command cli_cmd_dedup = {
    .name = "dedup",
    .summary = "find duplicate images, remove duplicate documents",
    .examples =
        (const cli_example[]){
            {"leat dedup exact crawl -o unique", "equal texts"},
            {"leat dedup exact crawl -o paragraphs --level paragraph",
             "take repeated paragraphs out of the texts"},
            {"leat dedup substring crawl -o passages --words 50",
             "take out 50 and more words that occurred before"},
            {"leat dedup fuzzy crawl/*.jsonl.zst -o different --memory 4G",
             "similar texts, within 4 GiB of memory"},
            {"leat dedup fuzzy crawl -o by-chars --chars 24 --bands 20 --rows 13",
             "shingles of 24 characters"},
            {"leat dedup fuzzy may -o may-unique --against april-unique --index",
             "a new batch, without reading the old one"},
            {"leat dedup fuzzy crawl -o good --profile gopher@paper",
             "leat filter and leat dedup fuzzy in one run"},
            {"leat dedup fuzzy crawl -o as-datatrove --compatible datatrove",
             "the clusters that datatrove finds"},
            {"leat dedup fuzzy /data/crawl -o /data/unique --on ray",
             "on a Ray cluster whose nodes share /data"},
            {"leat dedup fuzzy crawl --plan", "what it will take"},
            {"leat dedup images photos.leat -o dup.leat --csv pairs.csv", "equal and similar images"},
            {"leat dedup images train.leat test.leat -o leaked.leat --across",
             "test images that are among the train images"},
            {"leat dedup semantic vectors.leat -o semantic.leat --keep-share 0.8",
             "mark the fifth of the images that is most similar to others, by vectors of leat embed"},
            {NULL, NULL}},
    .description = "Writes the kept documents, byte for byte and in their order, to "
                   "DIR/kept-00000.jsonl and so on; "
                   "DIR/clusters.jsonl has a line for every removed document with the one that is kept "
                   "for it and their "
                   "similarity; DIR/report.json the counts.\n\n"
                   "Fuzzy: the text is cut into shingles, a sketch of bands times rows values is made "
                   "of their set, documents "
                   "that share a band are compared by their sketches, and pairs above the threshold are "
                   "duplicates. What does "
                   "not fit the memory limit is on disk, in DIR/.leat-work; an interrupted run is "
                   "continued from there with "
                   "--resume. The output is the same for any number of threads and any memory limit.\n\n"
                   "With --profile or --set, documents that violate a rule are dropped first, as by "
                   "leat filter, but each document is read and parsed once for both; DIR/reasons.jsonl has a "
                   "line for each dropped one.\n\n"
                   "Substring: sequences of words that occurred before, in the same or an earlier "
                   "document, are taken out of the texts, without regard to case, punctuation and "
                   "white space; DIR/changed.jsonl has a line for each changed document.\n\n"
                   "Images: IN are packs, their columns of leat check, or other sources. PACK gets a row per "
                   "image of all inputs with its cluster and whether it is kept; no image is removed. Pairs "
                   "are found by descriptors and compared by their thumbnails: duplicates from a similarity "
                   "of 0.7 on, probable ones from 0.6 on. docs/images.md says more.\n\n"
                   "Semantic: IN is a pack of leat embed. Its rows are clustered by k-means, and all "
                   "pairs inside a cluster are compared by cosine. PACK gets a row per vector: its "
                   "cluster, whether it is kept, the row that is kept for it, and the similarity to the "
                   "most similar row before it. leat pack --select takes it.",
    .args =
        (const cli_arg_spec[]){
            {.name = "KIND",
             .choices = "exact|fuzzy|substring|images|semantic",
             .help = "equal or similar texts, equal parts of texts, images, or vectors"},
            {.name = "IN",
             .path = true,
             .many = true,
             .help = "JSONL files (plain, .gz, .zst), folders or patterns; images, vectors: packs"},
            {.name = NULL}},
    .options = {{"Finding duplicates", finding},
                {"Images", images},
                {"Vectors", vectors},
                {"Files and resources", files}},
    .config = true,
    .once = "set",
    .json =
        (const cli_key[]){
            {"samples", "images, vectors: rows of all inputs"},
            {"pairs", "images: pairs of duplicates; vectors: pairs compared"},
            {"threshold", "vectors: least similarity that was removed"},
            {"asked", "vectors: rows to keep by --keep-share"},
            {"largest", "vectors: rows of the largest cluster"},
            {"without_vector",
             "vectors: rows of zeros or not finite numbers; they are not compared and stay"},
            {"in_memory", "vectors, images: true when all vectors or descriptors were in memory"},
            {"resumed", "vectors, images: rows that an interrupted run had clustered or searched"},
            {"exact", "images: of these, pairs with equal pixels"},
            {"probable", "images: similar pairs that are kept"},
            {"documents", "lines with a text"},
            {"kept", "documents written"},
            {"removed", "documents left out as duplicates"},
            {"clusters", "kept documents that have duplicates"},
            {"dropped", "documents that violate a rule of --profile or --set"},
            {"rules[].rule", "name of a rule of --profile or --set"},
            {"rules[].profile", "profile it comes from"},
            {"rules[].threshold", "its threshold; null = --set switched it off"},
            {"rules[].failed", "documents that violate it"},
            {"rules[].first", "documents for which it is the first violated rule"},
            {"bad", "lines that could not be read"},
            {"lone_surrogates", "escapes without UTF-8 form, read as U+FFFD"},
            {"empty",
             "documents without words (datatrove: without a shingle), always kept; substring: with fewer "
             "words than --words"},
            {"unreadable", "images: those that could not be decoded; they are kept"},
            {"candidates", "pairs compared, of texts once for each band that a pair shares"},
            {"verified", "of these, comparisons above the threshold"},
            {"unscored", "with --keep field: documents without a number, kept only if no duplicate has one"},
            {"below_threshold", "removed documents not similar to the kept one (components)"},
            {"crowded", "documents, once per band, that share it with more than are compared with them"},
            {"bands", "bands of a sketch"},
            {"rows", "values of a band"},
            {"passes", "passes over the input for sketches or hashes; one more writes"},
            {"files", "input files"},
            {"bytes_in", "bytes of the input files"},
            {"text_bytes", "bytes of the texts"},
            {"shards", "output files with documents"},
            {"bytes_out", "bytes of them"},
            {"plan_documents", "documents, estimated before the run"},
            {"plan_memory", "least memory for them; vectors, images: bytes planned"},
            {"plan_disk", "disk for them besides the output"},
            {"disk_bytes", "disk used besides the output"},
            {"limit", "of the passes over the text: reading, cpus, writing or memory"},
            {"read_share", "share of their time in which the reading thread was busy"},
            {"work_share", "in which the worker threads were busy"},
            {"write_share", "in which results were merged or written"},
            {"memory_share", "in which work waited only for memory"},
            {"budget_peak_bytes", "peak bytes in flight"},
            {"resumed", "1 when an interrupted run was continued"},
            {"already_complete", "with --resume: true when the output was complete; absent = it was not"},
            {"against", "documents of the index of --against"},
            {"removed_against", "documents removed for one of these"},
            {"index_bytes", "bytes of the index that was saved"},
            {"pieces", "lines or paragraphs (--level), or sequences of words"},
            {"pieces_removed", "repeated ones that were taken out; spans of words"},
            {"bytes_removed", "bytes of text that were taken out"},
            {"changed", "documents that lost a line or paragraph"},
            {"seconds", "time taken by this run"},
            {"cpu_seconds", "CPU time taken by this run"},
            {NULL, NULL}},
    .run = run,
};
