#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes bit_table.h: the positions of the set bits of each byte."""
import sys

with open(sys.argv[1], "w", encoding="ascii") as out:
    out.write("/* Written by gen_bits.py. */\nstatic const uint8_t bit_table[256][8] = {\n")
    for byte in range(256):
        out.write("{" + ", ".join([str(k) for k in range(8) if byte >> k & 1] or ["0"]) + "},\n")
    out.write("};\n")
