/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of leat's augmentations: names, parameters, ranges, defaults and help. Python signatures,
 * command-line help and the docs are generated from it.
 *
 * A pipeline is written as text, one op after the other:
 *
 *   RandomResizedCrop(224, scale=(0.08, 1)); RandomHorizontalFlip();
 *   Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)); ToDtype(f16)
 *
 * Arguments are numbers, words, true/false or lists of numbers in parentheses, by position or by name.
 * Combinators hold ops: RandomApply(ColorJitter(0.4); GaussianBlur(9), p=0.3). The text is only parsed, never
 * executed as code.
 */
#ifndef LEAT_OP_H
#define LEAT_OP_H

#include <stddef.h>
#include <stdint.h>

#include <leat/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum leat_op_kind {
    LEAT_OP_GEOMETRY = 1, /* moves pixels; also applied to masks and boxes */
    LEAT_OP_COLOR = 2,    /* changes values only */
    LEAT_OP_POLICY = 3,   /* draws other ops (AutoAugment and the like) */
    LEAT_OP_ERASE = 4,    /* blanks a part */
    LEAT_OP_OUTPUT = 5,   /* normalisation, element type, layout */
    LEAT_OP_BATCH = 6,    /* works on a whole batch and its labels */
    LEAT_OP_ROLE = 7,     /* not an op: how a field follows an image (leat_loader_opts.follow) */
    LEAT_OP_COMBINE = 8   /* applies the ops inside it: RandomApply and the like */
} leat_op_kind;

typedef struct leat_op_info {
    const char *name; /* "RandomResizedCrop" */
    const char *help; /* one sentence */
    int32_t kind;     /* a leat_op_kind */
    uint32_t params;  /* how many parameters, in positional order */
} leat_op_info;

typedef struct leat_op_param {
    const char *name;
    const char *kind;    /* "flag", "int", "float", "floats", "ints", "choice", "string", "ops" */
    const char *def;     /* default as text; NULL when it must be given */
    const char *choices; /* "a|b|c" for "choice", else NULL */
    double min, max;     /* inclusive; min > max when there is no range */
    int32_t arity;       /* numbers in a list, 0 = any number */
    int32_t reserved;
    const char *help;
} leat_op_param;

/* List ops and their parameters. Return 0, or LEAT_ENOENT past the last. Strings are static. Any thread. */
LEAT_API uint32_t leat_op_count(void);
LEAT_API int leat_op_info_at(uint32_t index, leat_op_info *info) LEAT_MUST_CHECK;
LEAT_API int leat_op_param_at(uint32_t op, uint32_t index, leat_op_param *param) LEAT_MUST_CHECK;

/* The output of a pipeline for one sample. */
typedef struct leat_pipeline_output {
    uint32_t width, height, channels;
    char dtype[8];  /* "u8", "f16", "bf16", "f32" */
    char layout[8]; /* "nchw", "nhwc" */
    uint64_t bytes; /* per sample */
} leat_pipeline_output;

/* Parses and checks a pipeline without running it. LEAT_EINVAL: err names the wrong op and parameter. Any
 * thread. */
LEAT_API int leat_pipeline_check(const char *ops, leat_pipeline_output *output,
                                 leat_error *err) LEAT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
