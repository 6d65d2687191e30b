#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py OUT.c SOURCE.cu [IMAGE]: writes the kernels' source and the code nvcc made from it as a C file.

Replaces #include "…" lines by the headers, because NVRTC gets one text.
"""
import pathlib
import re
import sys


def flatten(path: pathlib.Path) -> str:
    def include(match: re.Match) -> str:
        return flatten(path.parent / match[1])

    return re.sub(r'^#include "([^"]+)"$', include, path.read_text(), flags=re.M)


def rows(data: bytes) -> str:
    return "\n".join("    " + ", ".join(str(b) for b in data[i:i + 20]) + "," for i in range(0, len(data), 20))


def main() -> None:
    out, source = sys.argv[1], pathlib.Path(sys.argv[2])
    image = pathlib.Path(sys.argv[3]).read_bytes() if len(sys.argv) > 3 else b""
    text = flatten(source).encode() + b"\0"
    pathlib.Path(out).write_text(f"""/* Made by src/gpu/embed.py; do not edit. */
#include "gpu/kernels_data.h"

_Alignas(64) const unsigned char leat__kernels_image[] = {{
{rows(image or bytes(1))}
}};
const size_t leat__kernels_image_size = {len(image)};
const char leat__kernels_source[] = {{
{rows(text)}
}};
""")


main()
