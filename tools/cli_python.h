/* SPDX-License-Identifier: Apache-2.0
 *
 * Handing a parsed command line over to the Python package.
 */
#ifndef LEAT_TOOLS_CLI_PYTHON_H
#define LEAT_TOOLS_CLI_PYTHON_H

#include "cli.h"

/* How a model runs over a pack: options of leat embed and leat tag. */
#define CLI_MODEL_RUNNING                                                                                    \
    CLI_INT("batch-size", 'b', "256", 1, 1 << 20, "N", "images per step; part of the result's last bits"),   \
        CLI_CHOICE("accelerator", 0, "auto", "auto|cpu|cuda", "where the model runs"),                       \
        CLI_INT("devices", 0, "0", 0, 1024, "N", "processes on this machine; 0 = one per GPU"),              \
        CLI_INT("threads", 't', "0", 0, 4096, "N", "worker threads of the loader, 0 = all usable CPUs"),     \
        CLI_BYTES("memory", 0, "0", 1, 0, "budget of the loader, 0 = half of what is free"),                 \
        CLI_CHOICE("decode", 0, "auto", "auto|cpu|gpu", "where images are decoded"),                         \
        CLI_FLAG("resume", 0, "continue an interrupted run"),                                                \
        CLI_FLAG("force", 'f', "replace a pack of that name")

/* The given options and positionals as one JSON object: {"args": ["a.leat"], "batch_size": 64}. Names
 * have '_' for '-'. Options that the user did not give are left out. */
void cli_python_json(const cli *c, leat__buf *out);

/* Replaces this process by Python running `main(command, values)` of a module. Python is the one that leat
 * runs inside, else $LEAT_PYTHON, else python3. Returns only when it fails: an exit code. For messages:
 * `platform` is what the command runs on ("Ray"), `needs` what must be installed ("leat[ray]"). */
int cli_python_run(cli *c, const char *module, const char *platform, const char *needs);
/* The same with leat._train.__main__, which needs PyTorch. */
int cli_python(cli *c);

/* `leat filter` and `leat dedup` with --on: checks its value and continues in Python. */
int cli_python_ray(cli *c);

#endif
