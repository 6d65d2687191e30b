#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py OUT.c PAGE.html: the page of leat view as a C array."""
import pathlib
import sys

data = pathlib.Path(sys.argv[2]).read_bytes() + b"\0"
rows = "\n".join("    " + ", ".join(map(str, data[i:i + 20])) + "," for i in range(0, len(data), 20))
pathlib.Path(sys.argv[1]).write_text(f"""/* Made by src/view/embed.py; do not edit. */
#include "view/view_page.h"

const char leat__view_page[] = {{
{rows}
}};
""")
