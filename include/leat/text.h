/* SPDX-License-Identifier: Apache-2.0
 *
 * Text curation: filters and deduplication of JSONL files.
 *
 *     leat_filter_opts opts;
 *     leat_filter_opts_init(&opts);
 *     const char *in[] = {"crawl"};
 *     opts.inputs = in;
 *     opts.input_count = 1;
 *     opts.output = "kept";
 *     opts.profile = "gopher@paper";
 *     rc = leat_filter_text(&opts, &stats, &err);
 *
 * Inputs are .jsonl files, folders of them, or patterns; plain, gzip or zstd. Each line is a JSON object with
 * a text; blank lines are skipped. Bad lines (broken JSON, not UTF-8, no text) are counted and listed. Kept
 * documents are written byte for byte as they were, in the order of the input. The same input and options
 * give the same output bytes on any number of threads.
 */
#ifndef LEAT_TEXT_H
#define LEAT_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include <leat/error.h>
#include <leat/log.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum leat_text_compress {
    LEAT_TEXT_PLAIN = 0,
    LEAT_TEXT_GZIP = 1,
    LEAT_TEXT_ZSTD = 2
} leat_text_compress;

/* Called on the calling thread after every chunk; return non-zero to stop (the result is then
 * LEAT_ECANCELED). Bytes are those of the input files; 0 <= done <= total. */
typedef int (*leat_text_progress)(void *cookie, uint64_t done_bytes, uint64_t total_bytes, uint64_t documents,
                                  uint64_t dropped);

/* ---- Filters ----------------------------------------------------------------------------- */

#define LEAT_FILTER_SEEN_RULES 4

/* A document that `look` chose. Its strings are valid only during the call. */
typedef struct leat_filter_seen {
    uint32_t struct_size;
    uint32_t kept;    /* 1 = the document passes all rules */
    const char *kind; /* "kept", "dropped" or "borderline" (within a tenth of a threshold) */
    const char *id;
    const char *text; /* the beginning of the text */
    const char *lang; /* "" without a model */
    double lang_score;
    uint32_t rule_count; /* entries of `rules`: violated rules, or those nearest to their threshold */
    uint32_t reserved;
    struct {
        char name[48];
        double score, threshold;
        uint32_t keeps, reserved;
    } rules[LEAT_FILTER_SEEN_RULES];
} leat_filter_seen;

/* 0 and NULL mean the default that the comment names. */
typedef struct leat_filter_opts {
    uint32_t struct_size;
    uint32_t input_count;
    const char *const *inputs;
    const char *output;     /* folder: kept-00000.jsonl …, reasons.jsonl, bad.jsonl, report.json;
                               NULL = only count */
    const char *profile;    /* names from leat_text_profile, separated by commas */
    const char *set;        /* changed thresholds: "words.min=20,curly.max=off" */
    const char *modify;     /* names from leat_text_modifier, separated by commas, applied in this order */
    const char *text_field; /* "text" */
    const char *id_field;   /* "id"; a document without one is named FILE:LINE */
    const char *explain;    /* id of a document whose scores are passed to `explained` */
    void (*explained)(void *cookie, const char *json);
    uint64_t memory;       /* hard budget; default: half of what is available */
    uint64_t shard_bytes;  /* size of an output file: 1 GiB */
    uint64_t max_document; /* longest line: 128 MiB; longer lines are bad */
    uint32_t threads;      /* usable CPUs */
    uint32_t compress;     /* leat_text_compress of the kept documents */
    uint32_t score_only;   /* 1 = write scores-00000.jsonl with all scores; drop nothing */
    uint32_t fail_on_bad;  /* 1 = LEAT_EDATA at the first line that cannot be read */
    uint32_t replace;      /* 1 = replace the output of an earlier run */
    uint32_t reserved;
    leat_text_progress progress;
    void *cookie; /* passed to progress, explained and looked */
    leat_log log;
    const char *columns; /* keys to write, separated by commas, in this order: "id,text"; "+words" adds a
                            score. With scores only, the whole line is kept and they are added to it. NULL =
                            lines as in the input */
    const char *lid;     /* language model: a supervised fastText file (.bin, .ftz); NULL = none.
                          * Adds the scores lang_score and lang_match, and the column +lang */
    const char *lang;    /* labels to keep, separated by commas: "en,de" (without __label__); needs lid */
    double lang_min;     /* minimum probability of the label, 0 = any; needs lid */
    const char *report;  /* files, separated by commas: NAME.html (a page with plots), NAME.json (its data):
                            rules, funnel, histograms, documents nearest to thresholds */
    uint32_t look;       /* number of random documents of each kind to pass to `looked`: 0 to 100 */
    uint32_t seed;       /* seed of that random choice */
    void (*looked)(void *cookie, const leat_filter_seen *doc);
} leat_filter_opts;

LEAT_API void leat_filter_opts_init_sized(leat_filter_opts *opts, uint32_t struct_size);
#define leat_filter_opts_init(o) leat_filter_opts_init_sized((o), (uint32_t)sizeof *(o))

#define LEAT_FILTER_RULES_MAX 192

typedef enum leat_text_limit {
    LEAT_TEXT_LIMIT_NONE = 0, /* nothing was read */
    LEAT_TEXT_LIMIT_READING = 1,
    LEAT_TEXT_LIMIT_CPUS = 2,
    LEAT_TEXT_LIMIT_WRITING = 3,
    LEAT_TEXT_LIMIT_MEMORY = 4
} leat_text_limit;

/* The bottleneck of the passes over the text. Shares of the time of all passes: the reading thread was busy;
 * worker threads were busy (mean); results were written or merged; work was blocked only by the memory
 * budget. */
typedef struct leat_text_load {
    double read, work, write, memory;
    uint32_t limit; /* leat_text_limit: the largest share */
    uint32_t reserved;
} leat_text_load;

typedef struct leat_filter_rule {
    char name[48];    /* "words.min" */
    char profile[32]; /* "" = from `set` */
    double threshold; /* NaN = `set` switched the rule off */
    uint64_t failed;  /* documents that violate it */
    uint64_t first;   /* documents for which it is the first violated rule */
} leat_filter_rule;

typedef struct leat_filter_stats {
    uint32_t struct_size;
    uint32_t rule_count;
    uint64_t documents; /* lines with a text */
    uint64_t kept, dropped;
    uint64_t bad;             /* lines that cannot be read */
    uint64_t modified;        /* documents that a modifier changed */
    uint64_t lone_surrogates; /* \ud800 and similar without partner: scored as U+FFFD */
    uint64_t files, bytes_in; /* input files, and their size */
    uint64_t text_bytes;      /* size of the texts as UTF-8 */
    uint64_t shards, bytes_out;
    uint64_t budget_peak_bytes;
    double seconds, cpu_seconds;
    leat_filter_rule rules[LEAT_FILTER_RULES_MAX];
    char columns_missing[512]; /* columns that no kept document has, separated by commas; "" = none */
    leat_text_load load;
} leat_filter_stats;

/* Filters documents. stats may be NULL. LEAT_EEXIST: the folder has the output of an earlier run. */
LEAT_API int leat_filter_text(const leat_filter_opts *opts, leat_filter_stats *stats,
                              leat_error *err) LEAT_MUST_CHECK;

/* List profiles, scores and modifiers by index; LEAT_ENOENT past the last. Strings are static. */
LEAT_API int leat_text_profile(uint32_t index, const char **name, const char **source);
LEAT_API int leat_text_score(uint32_t index, const char **name, const char **help);
LEAT_API int leat_text_modifier(uint32_t index, const char **name, const char **help);

/* Scores texts in memory. One scorer per thread. */
typedef struct leat_text_scorer leat_text_scorer;
LEAT_API int leat_text_scorer_open(leat_text_scorer **scorer, leat_error *err) LEAT_MUST_CHECK;
LEAT_API void leat_text_scorer_close(leat_text_scorer **scorer);
/* Writes all scores of a text (UTF-8) to out[count], in the order of leat_text_score. LEAT_EDATA: the text is
 * not UTF-8. */
LEAT_API int leat_text_scorer_run(leat_text_scorer *scorer, const char *text, size_t len, double *out,
                                  uint32_t count, leat_error *err) LEAT_MUST_CHECK;

/* ---- Deduplication ------------------------------------------------------------------------ */

typedef enum leat_dedup_kind {
    LEAT_DEDUP_EXACT = 1, /* equal texts */
    LEAT_DEDUP_FUZZY = 2  /* texts with similar sets of shingles */
} leat_dedup_kind;

typedef enum leat_dedup_clusters {
    LEAT_CLUSTERS_STAR = 0,      /* every removed document is similar to the kept one */
    LEAT_CLUSTERS_COMPONENTS = 1 /* chains: every document is similar to some other one of its cluster */
} leat_dedup_clusters;

typedef enum leat_dedup_keep {
    LEAT_KEEP_FIRST = 0,   /* the first in the order of the inputs */
    LEAT_KEEP_LONGEST = 1, /* the longest text, then the first */
    LEAT_KEEP_FIELD = 2    /* the largest number in keep_field, then the first */
} leat_dedup_keep;

typedef enum leat_dedup_level {
    LEAT_LEVEL_DOCUMENT = 0,
    LEAT_LEVEL_LINE = 1,      /* exact: removes repeated lines from the texts */
    LEAT_LEVEL_PARAGRAPH = 2, /* exact: removes repeated paragraphs, which blank lines separate */
    LEAT_LEVEL_SUBSTRING = 3  /* exact: removes sequences of shingle_words words that occurred before */
} leat_dedup_level;

/* Which tool's MinHash signatures are computed. */
typedef enum leat_dedup_compatible {
    LEAT_COMPATIBLE_NONE = 0,              /* leat's own sketches, the fastest */
    LEAT_COMPATIBLE_DATASKETCH = 1,        /* datasketch 2.0, its default scheme */
    LEAT_COMPATIBLE_DATASKETCH_LEGACY = 2, /* its scheme "legacy", the only one before 2.0 */
    LEAT_COMPATIBLE_DATATROVE = 3          /* datatrove 0.10, English */
} leat_dedup_compatible;

/* 0 and NULL mean the default that the comment names. */
typedef struct leat_dedup_opts {
    uint32_t struct_size;
    uint32_t input_count;
    const char *const *inputs;
    const char *output;           /* folder: kept-00000.jsonl …, clusters.jsonl, bad.jsonl, report.json;
                                     needed, except for plan_only */
    const char *text_field;       /* "text" */
    const char *id_field;         /* "id" */
    const char *keep_field;       /* with LEAT_KEEP_FIELD */
    uint32_t kind;                /* leat_dedup_kind; needed */
    uint32_t normalize;           /* exact: 1 = compare only letters, digits and word breaks, in lower case */
    uint32_t shingle_words;       /* fuzzy: 5, or 0 with shingle_chars. LEAT_LEVEL_SUBSTRING: 50 */
    uint32_t shingle_chars;       /* fuzzy: characters per shingle, instead of words */
    uint32_t bands, rows;         /* fuzzy: 14 bands of 8 rows */
    double threshold;             /* fuzzy: minimum similarity of duplicates, 0.7 */
    uint32_t clusters;            /* leat_dedup_clusters */
    uint32_t keep;                /* leat_dedup_keep */
    uint32_t bands_per_iteration; /* bands on disk at once; fewer need more passes; default: all */
    uint32_t threads;             /* usable CPUs */
    uint64_t memory;              /* hard limit; default: half of what is available */
    uint64_t shard_bytes;         /* 1 GiB */
    uint64_t max_document;        /* longest line: 128 MiB; longer ones are bad */
    uint32_t compress;            /* leat_text_compress */
    uint32_t fail_on_bad, replace;
    uint32_t resume;    /* 1 = resume an interrupted run */
    uint32_t plan_only; /* 1 = fill the plan in stats and return */
    uint32_t reserved;
    uint64_t checkpoint_bytes; /* bytes of input between checkpoints: 512 MiB */
    leat_text_progress progress;
    void *cookie;
    leat_log log;
    const char *against; /* folder of an earlier run with `index`: removes documents similar to its kept ones,
                            without reading its texts. NULL = none */
    uint32_t index;      /* 1 = save the index of all kept documents (with those of `against`) */
    uint32_t level;      /* leat_dedup_level */
    const char *report;  /* files, separated by commas: NAME.html (a page), NAME.json (its data): sizes of
                            clusters, similarities, the largest clusters */
    uint32_t compatible; /* leat_dedup_compatible, fuzzy: signatures equal to another tool's. Without
                          * a threshold, documents that share a band are duplicates, and `clusters`
                          * is always LEAT_CLUSTERS_COMPONENTS */
    uint32_t reserved2;
    const char *profile; /* first drops documents that violate a rule of these profiles, like
                            leat_filter_text, in the same pass; reasons.jsonl has a line for each. Only with
                            LEAT_LEVEL_DOCUMENT. NULL = none */
    const char *set;     /* changed thresholds, as in leat_filter_opts */
} leat_dedup_opts;

LEAT_API void leat_dedup_opts_init_sized(leat_dedup_opts *opts, uint32_t struct_size);
#define leat_dedup_opts_init(o) leat_dedup_opts_init_sized((o), (uint32_t)sizeof *(o))

typedef struct leat_dedup_stats {
    uint32_t struct_size;
    uint32_t bands, rows;
    uint32_t passes; /* passes over the input, for sketches */
    uint64_t documents, kept, removed;
    uint64_t clusters; /* kept documents with duplicates */
    uint64_t bad, lone_surrogates;
    uint64_t empty;           /* documents without words: never duplicates; substring: with fewer words than
                               * `shingle_words` */
    uint64_t candidates;      /* comparisons; a pair counts for each band that it shares */
    uint64_t verified;        /* candidates above the threshold */
    uint64_t below_threshold; /* removed documents that are not similar to the kept one */
    uint64_t files, bytes_in, text_bytes;
    uint64_t shards, bytes_out;
    uint64_t plan_documents;         /* estimated from a few places of the files */
    uint64_t plan_memory, plan_disk; /* bytes */
    uint64_t disk_bytes;             /* peak of temporary files, without the output */
    uint64_t budget_peak_bytes;
    uint64_t resumed; /* 1 = an earlier run was resumed */
    double seconds, cpu_seconds;
    uint64_t resumable; /* 1 = the run failed and can be resumed */
    /* documents in that index; documents removed as similar to one of them */
    uint64_t against, removed_against;
    uint64_t index_bytes; /* size of the saved index */
    /* For lines, paragraphs or substrings. `removed` then counts documents with no text left. */
    uint64_t pieces, pieces_removed; /* lines or paragraphs that are not blank; those removed. Substrings:
                                        words in compared sequences; spans cut out */
    uint64_t bytes_removed;          /* bytes removed from the texts */
    uint64_t changed;                /* documents that lost a piece */
    leat_text_load load;
    uint64_t dropped; /* documents that violate a rule */
    uint32_t rule_count, reserved;
    leat_filter_rule rules[LEAT_FILTER_RULES_MAX];
    uint64_t unscored; /* LEAT_KEEP_FIELD: documents without a number, as NaN and text: below all numbers */
    /* 1 = `resume` found the complete output of a run with the same options and input: these are the
     * counts of its report, and nothing was done */
    uint64_t already_complete;
    /* fuzzy: documents, once for each band, that share it with more documents than are compared with them */
    uint64_t crowded;
} leat_dedup_stats;

/* Removes duplicates. LEAT_EBUDGET, before anything is read, when the plan does
 * not fit the memory or the disk. An interrupted run leaves OUTPUT/.leat-work, from which
 * `resume` continues. */
LEAT_API int leat_dedup_text(const leat_dedup_opts *opts, leat_dedup_stats *stats,
                             leat_error *err) LEAT_MUST_CHECK;

/* Returns the probability that two documents of this similarity share at least one band. */
LEAT_API double leat_dedup_chance(double similarity, uint32_t bands, uint32_t rows);

/* MinHash signatures of texts in memory, equal to those of another tool. One signer per thread. */
typedef struct leat_text_signer leat_text_signer;
/* `compatible` is a leat_dedup_compatible other than NONE. Shingles are of `words` words, or of
 * `chars` characters if `words` is 0. `values` (at most 1024) is bands times rows. */
LEAT_API int leat_text_signer_open(leat_text_signer **signer, uint32_t compatible, uint32_t words,
                                   uint32_t chars, uint32_t values, leat_error *err) LEAT_MUST_CHECK;
LEAT_API void leat_text_signer_close(leat_text_signer **signer);
/* Writes the signature of a text (UTF-8) to out[values]. *shingles gets the number of shingles; a text with
 * none has no signature. LEAT_EDATA: the text is not UTF-8. */
LEAT_API int leat_text_signer_run(leat_text_signer *signer, const char *text, size_t len, uint64_t *out,
                                  uint32_t *shingles, leat_error *err) LEAT_MUST_CHECK;

/* ---- Decontamination ----------------------------------------------------------------------- */

typedef enum leat_decontaminate_by {
    LEAT_DECONTAMINATE_DOCUMENT = 0, /* contaminated documents are dropped */
    LEAT_DECONTAMINATE_SPAN = 1      /* the shared spans are cut out of them */
} leat_decontaminate_by;

/* 0 and NULL mean the default that the comment names. */
typedef struct leat_decontaminate_opts {
    uint32_t struct_size;
    uint32_t input_count, eval_count;
    uint32_t ngram; /* consecutive words that must be shared: 13 */
    const char *const *inputs;
    const char *const *evals; /* evaluation sets: JSONL files, folders or patterns; needed */
    const char *eval_fields;  /* keys of their texts, separated by commas: "text" */
    const char *output;       /* folder: kept-00000.jsonl …, matches.jsonl, evals.jsonl, bad.jsonl,
                                 report.json; needed */
    const char *text_field;   /* "text" */
    const char *id_field;     /* "id"; also of the evaluation sets */
    uint32_t by;              /* leat_decontaminate_by */
    uint32_t min_matches;     /* number of shared n-grams that make a document contaminated: 1 */
    uint32_t window;          /* span: bytes on each side of it that are cut out too: 0 */
    uint32_t threads;         /* usable CPUs */
    uint64_t memory;          /* hard budget; half of what is available */
    uint64_t shard_bytes;     /* 1 GiB */
    uint64_t max_document;    /* longest line: 128 MiB; longer ones are bad */
    uint32_t compress;        /* leat_text_compress of the kept documents */
    uint32_t fail_on_bad, replace;
    uint32_t reserved;
    leat_text_progress progress;
    void *cookie;
    leat_log log;
} leat_decontaminate_opts;

LEAT_API void leat_decontaminate_opts_init_sized(leat_decontaminate_opts *opts, uint32_t struct_size);
#define leat_decontaminate_opts_init(o) leat_decontaminate_opts_init_sized((o), (uint32_t)sizeof *(o))

typedef struct leat_decontaminate_stats {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t documents, kept, dropped;
    uint64_t contaminated;         /* documents with shared n-grams */
    uint64_t spans, bytes_removed; /* spans that were cut out, and their bytes */
    uint64_t bad, lone_surrogates; /* bad: lines that cannot be read, also of evaluation sets */
    uint64_t evals, evals_found;   /* evaluation texts (lines with a field); those found in the inputs */
    uint64_t evals_short; /* texts in which every field has fewer words than an n-gram: never found */
    uint64_t evals_bad;   /* lines of evaluation sets without a text */
    uint64_t eval_ngrams; /* distinct n-grams of the evaluation sets */
    uint64_t files, bytes_in, text_bytes;
    uint64_t shards, bytes_out;
    uint64_t budget_peak_bytes;
    double seconds, cpu_seconds;
    leat_text_load load; /* for the pass over the inputs, without reading the evaluation sets */
} leat_decontaminate_stats;

/* Removes text that the inputs share with evaluation sets: n-grams of words, ignoring case, punctuation and
 * white space. stats may be NULL. LEAT_EDATA: no evaluation text has as many words as an n-gram. */
LEAT_API int leat_decontaminate_text(const leat_decontaminate_opts *opts, leat_decontaminate_stats *stats,
                                     leat_error *err) LEAT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
