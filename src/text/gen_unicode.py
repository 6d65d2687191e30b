#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes unicode_tables.h: one byte of properties per code point, as a two-stage table.

The properties are those of this Python's unicodedata, so that leat counts what Python's str
methods count. Two sets are definitions of others: the symbols of datatrove's Gopher filter and
the sentence ends of its FineWeb filter (the Unicode property Sentence_Terminal).
"""
import sys
import unicodedata

SYMBOLS = set("!/—”:％１〈&(、━\\【#%「」，】；+^]~“《„';’{|∶´[=-`*．（–？！：$～«〉,><》)?）。…@_.\"}►»")
SYMBOLS |= {chr(c) for lo, hi in ((0, 9), (11, 32), (127, 160)) for c in range(lo, hi)}

# Sentence_Terminal of Unicode. All of them are symbols too.
TERMINAL = """
21 2E 3F 589 61D-61F 6D4 700-702 7F9 837 839 83D-83E 964-965 104A-104B 1362 1367-1368 166E
1735-1736 17D4-17D6 17D9-17DA 1803 1809 1944-1945 1AA8-1AAB 1B5A-1B5B 1B5E-1B5F 1B7D-1B7E 1C3B-1C3C 1C7E-1C7F
203C-203D 2047-2049 2E2E 2E3C 2E53-2E54 3002 A4FF A60E-A60F A6F3 A6F7 A876-A877 A8CE-A8CF A92F A9C8-A9C9 AA5D-AA5F
AAF0-AAF1 ABEB FE52 FE56-FE57 FF01 FF0E FF1F FF61 10A56-10A57 10F55-10F59 10F86-10F89 11047-11048
110BE-110C1 11141-11143 111C5-111C6 111CD 111DE-111DF 11238-11239 1123B-1123C 112A9 1144B-1144C
115C2-115C3 115C9-115D7 11641-11642 1173C-1173E 11944 11946 11A42-11A43 11A9B-11A9C 11C41-11C42 11EF7-11EF8
11F43-11F44 16A6E-16A6F 16AF5 16B37-16B38 16B44 16E98 1BC9F 1DA88
"""
BULLETS = set("•‣⁃⁌⁍∙○●◘◦⦾⦿")


def ranges(text: str) -> set[str]:
    out = set()
    for part in text.split():
        lo, _, hi = part.partition("-")
        out |= {chr(c) for c in range(int(lo, 16), int(hi or lo, 16) + 1)}
    return out


def properties(c: str, terminal: set[str]) -> int:
    category = unicodedata.category(c)
    bits = (
        c.isspace(),
        c.isalpha(),
        category == "Nd",
        category[0] in "PSZC" and category not in ("Cn", "Co"),
        c in SYMBOLS or c in terminal,
        len(("a" + c + "b").splitlines()) > 1,
        c in BULLETS,
        c in terminal,
    )
    return sum(bit << i for i, bit in enumerate(bits))


def folded(code: int) -> int:
    """The code point without case: that of str.casefold where it is one, else of str.lower; ASCII stays."""
    if code < 128:
        return code
    if code == 0x130:  # a capital I with a dot
        return ord("i")
    fold, lower = chr(code).casefold(), chr(code).lower()
    return ord(fold) if len(fold) == 1 else ord(lower) if len(lower) == 1 else code


def case_tables() -> tuple[list[int], list[list[int]]]:
    """Block of each 128 code points (0: no capitals), and the change of each code point in the others."""
    index, blocks = [], [[0] * 128]
    for first in range(0, 0x110000, 128):
        block = [folded(c) - c for c in range(first, first + 128)]
        index.append(len(blocks) if any(block) else 0)
        blocks += [block] * any(block)
    assert len(blocks) <= 256
    return index, blocks


def main() -> None:
    terminal = ranges(TERMINAL)
    blocks: dict[bytes, int] = {}
    index = []
    for first in range(0, 0x110000, 128):
        block = bytes(properties(chr(c), terminal) for c in range(first, first + 128))
        index.append(blocks.setdefault(block, len(blocks)))
    assert len(blocks) <= 256
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write(f"/* Written by gen_unicode.py: Unicode {unicodedata.unidata_version}. */\n")
        out.write(f"static const uint8_t unicode_index[{len(index)}] = {{\n")
        for i in range(0, len(index), 16):
            out.write(", ".join(map(str, index[i:i + 16])) + ",\n")
        out.write(f"}};\nstatic const uint8_t unicode_block[{len(blocks)}][128] = {{\n")
        for block in blocks:
            out.write("{" + ", ".join(map(str, block)) + "},\n")
        cases, changes = case_tables()
        out.write(f"}};\nstatic const uint8_t unicode_case_index[{len(cases)}] = {{\n")
        for i in range(0, len(cases), 16):
            out.write(", ".join(map(str, cases[i:i + 16])) + ",\n")
        out.write(f"}};\nstatic const int32_t unicode_case[{len(changes)}][128] = {{\n")
        for change in changes:
            out.write("{" + ", ".join(map(str, change)) + "},\n")
        out.write("};\n")


if __name__ == "__main__":
    main()
