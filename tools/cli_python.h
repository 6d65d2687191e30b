/* SPDX-License-Identifier: Apache-2.0
 *
 * Passes a parsed command line to the Python package.
 */
#ifndef LEAT_TOOLS_CLI_PYTHON_H
#define LEAT_TOOLS_CLI_PYTHON_H

#include "cli.h"

/* Options of leat embed and leat tag: how a model runs over a pack. */
#define CLI_MODEL_RUNNING                                                                                    \
    CLI_INT("batch-size", 'b', "256", 1, 1 << 20, "N", "images per step; may change the last bits"),         \
        CLI_CHOICE("accelerator", 0, "auto", "auto|cpu|cuda", "where the model runs"),                       \
        CLI_INT("devices", 0, "0", 0, 1024, "N", "processes on this machine; 0 = one per GPU"),              \
        CLI_INT("threads", 't', "0", 0, 4096, "N", "worker threads of the loader, 0 = all usable CPUs"),     \
        CLI_BYTES("memory", 0, "0", 1, 0, "budget of the loader, 0 = half of what is free"),                 \
        CLI_CHOICE("decode", 0, "auto", "auto|cpu|gpu", "where images are decoded"),                         \
        CLI_FLAG("resume", 0, "continue an interrupted run"), CLI_REPLACE

/* Shared by leat embed and leat tag: options besides their model, a paragraph of help, keys of the output. */
#define CLI_MODEL_INPUT                                                                                      \
    CLI_INT("image-size", 0, "0", 0, 4096, "PIXELS", "side of the images; 0 = the model's"),                 \
        CLI_CHOICE("precision", 0, "32", "32|16-mixed|bf16-mixed", "number type that the model computes in")
#define CLI_MODEL_PARTS                                                                                      \
    "The rows do not depend on the number of ranks or on interruptions. Work in progress is kept in "        \
    "PACK.parts/ until the pack is complete."
#define CLI_MODEL_KEYS                                                                                       \
    {"model", "the model that was used"}, {"seconds", "time of the run"},                                    \
        {"images_per_s", "rate of this run, all ranks"}, {"verdict", "the doctor's verdict"},                \
        {"already_complete", "--resume: an earlier run with the same options had finished"},                 \
    {                                                                                                        \
        "limit", "what limited the rate, such as io or cpu"                                                  \
    }

/* Writes the given options and positionals as one JSON object: {"args": ["a.leat"], "batch_size":
 * 64}. Names have '_' for '-'. Options that the user did not give are omitted. */
void cli_python_json(const cli *c, leat__buf *out);

/* Replaces this process by Python running `main(command, values)` of a module. Uses the Python that leat runs
 * inside, else $LEAT_PYTHON, else python3. Returns (an exit code) only on failure. For messages: `platform`
 * is what the command runs on ("Ray"), `needs` what must be installed ("leat[ray]"). */
int cli_python_run(cli *c, const char *module, const char *platform, const char *needs);
/* Does the same with leat._train.__main__, which needs PyTorch. */
int cli_python(cli *c);

/* Runs `leat filter` and `leat dedup` with --on: checks its value and continues in Python. */
int cli_python_ray(cli *c);

#endif
