/* SPDX-License-Identifier: Apache-2.0
 *
 * Handing a parsed command line over to the Python package.
 */
#ifndef LEAT_TOOLS_CLI_PYTHON_H
#define LEAT_TOOLS_CLI_PYTHON_H

#include "cli.h"

/* The given options and positionals as one JSON object: {"args": ["a.leat"], "batch_size": 64}. Names
 * have '_' for '-'. Options that the user did not give are left out. */
void cli_python_json(const cli *c, leat__buf *out);

/* Replaces this process by Python running `leat._train.__main__.main(command, values)`. Python is the one
 * that leat runs inside, else $LEAT_PYTHON, else python3. Returns only when it fails: an exit code. */
int cli_python(cli *c);

#endif
