#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes fold_tables.h: lower case, canonical decomposition without marks, and character classes.

Case and decompositions are those of this Python's unicodedata. The classes are definitions of
others: the punctuation that datatrove 0.10 turns into blanks, and the characters at which the
English tokenizer of spaCy 3.8 splits a word.
"""
import sys
import unicodedata

PUNCTUATION = set("!/—”:％１〈&(、━\\【#%「」，】；+^]~“《„';’{|∶´[=-`*．（–？！：$～«〉,><》)?）。…@_.\"}►»")
PUNCTUATION |= {chr(c) for lo, hi in ((0, 9), (11, 32), (127, 160)) for c in range(lo, hi)}

# Split off at both ends of a word, and inside it.
ICON = """
A6 A9 AE B0 482 58D-58E 60E-60F 6DE 6E9 6FD-6FE 7F6 9FA B70 BF3-BF8 BFA C7F D4F D79 F01-F03 F13 F15-F17
F1A-F1F F34 F36 F38 FBE-FC5 FC7-FCC FCE-FCF FD5-FD8 109E-109F 1390-1399 1940 19DE-19FF 1B61-1B6A 1B74-1B7C
2100-2101 2103-2106 2108-2109 2114 2116-2117 211E-2123 2125 2127 2129 212E 213A-213B 214A 214C-214D 214F
218A-218B 2195-2199 219C-219F 21A1-21A2 21A4-21A5 21A7-21AD 21AF-21CD 21D0-21D1 21D3 21D5-21F3 2300-2307
230C-231F 2322-2328 232B-237B 237D-239A 23B4-23DB 23E2-2426 2440-244A 249C-24E9 2500-25B6 25B8-25C0 25C2-25F7
2600-266E 2670-2767 2794-27BF 2800-28FF 2B00-2B2F 2B45-2B46 2B4D-2B73 2B76-2B95 2B98-2BC8 2BCA-2BFE 2CE5-2CEA
2E80-2E99 2E9B-2EF3 2F00-2FD5 2FF0-2FFB 3004 3012-3013 3020 3036-3037 303E-303F 3190-3191 3196-319F 31C0-31E3
3200-321E 322A-3247 3250 3260-327F 328A-32B0 32C0-32FE 3300-33FF 4DC0-4DFF A490-A4C6 A828-A82B A836-A837 A839
AA77-AA79 FDFD FFE4 FFE8 FFED-FFEE FFFC-FFFD 10137-1013F 10179-10189 1018C-1018E 10190-1019B 101A0 101D0-101FC
10877-10878 10AC8 1173F 16B3C-16B3F 16B45 1BC9C 1D000-1D0F5 1D100-1D126 1D129-1D164 1D16A-1D16C 1D183-1D184
1D18C-1D1A9 1D1AE-1D1E8 1D200-1D241 1D245 1D300-1D356 1D800-1D9FF 1DA37-1DA3A 1DA6D-1DA74 1DA76-1DA83
1DA85-1DA86 1ECAC 1F000-1F02B 1F030-1F093 1F0A0-1F0AE 1F0B1-1F0BF 1F0C1-1F0CF 1F0D1-1F0F5 1F110-1F16B
1F170-1F1AC 1F1E6-1F202 1F210-1F23B 1F240-1F248 1F250-1F251 1F260-1F265 1F300-1F3FA 1F400-1F6D4 1F6E0-1F6EC
1F6F0-1F6F9 1F700-1F773 1F780-1F7D8 1F800-1F80B 1F810-1F847 1F850-1F859 1F860-1F887 1F890-1F8AD 1F900-1F90B
1F910-1F93E 1F940-1F970 1F973-1F976 1F97A 1F97C-1F9A2 1F9B0-1F9B9 1F9C0-1F9C2 1F9D0-1F9FF 1FA60-1FA6D
"""
# Split off at the beginning; at the end; at the end after a digit. ASCII here comes from decompositions.
PREFIX = """
3B-3E 60 A1 A3 A5 A7 AB B4 B7 BB BF 60C 61B 61F 66A 6D4 964 E3F 2013-2014 2018-201A 201C-201E 20A0-20BF
2329-232A 27E6-27E7 3001-3002 3008-3011 3014-3015 FDFC FF01 FF08-FF09 FF0C FF1A-FF1B FF1F FF5E
"""
SUFFIX = """
3B-3C 3E 60 A1 AB B4 B7 BB BF 60C 61B 61F 66A 6D4 964 2013-2014 2018-201A 201C-201E 2329-232A 27E6-27E7
3001-3002 3008-3011 3014-3015 FF01 FF08-FF09 FF0C FF1A-FF1B FF1F FF5E
"""
MONEY = "A3 A5 E3F 20A0-20BF FDFC"


def ranges(text: str) -> set[str]:
    out = set()
    for part in text.split():
        lo, _, hi = part.partition("-")
        out |= {chr(c) for c in range(int(lo, 16), int(hi or lo, 16) + 1)}
    return out


def cased(c: str) -> int:
    """1: a cased letter; 2: skipped when looking for one. Seen by what str.lower makes of a final sigma."""
    if ("A\u03a3" + c).lower()[1] == "\u03c3":
        return 1
    return 2 if ("A\u03a3" + c + "A").lower()[1] == "\u03c3" else 0


def runs(kind: int) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000 or cased(chr(code)) != kind:
            continue
        if out and out[-1][1] == code - 1:
            out[-1] = (out[-1][0], code)
        else:
            out.append((code, code))
    return out


class Tables:
    def __init__(self) -> None:
        self.parts: list[int] = []
        self.entries: dict[tuple[int, int, int, int], int] = {(0, 0, 255, 0): 0}
        self.sets = [PUNCTUATION, ranges(ICON), ranges(PREFIX), ranges(SUFFIX), ranges(MONEY)]

    def entry(self, code: int) -> int:
        """Number of the entry of a code point: change to lower case, first part and their number, flags."""
        c = chr(code)
        if 0xD800 <= code < 0xE000 or 0xAC00 <= code < 0xD7A4:  # Hangul syllables are decomposed by arithmetic
            return 0
        low = "i" if code == 0x130 else c.lower()  # U+0307, the second part, is a mark
        if code == 0x3A3:
            low = "\u03c3"
        assert len(low) == 1
        plain = [ord(x) for x in unicodedata.normalize("NFD", low) if unicodedata.category(x) != "Mn"]
        flags = sum((c in chars) << i for i, chars in enumerate(self.sets))
        if low == c and plain == [code] and flags == 0:
            return 0
        at, count = 0, 255  # itself
        if plain != [ord(low)]:
            at, count = len(self.parts), len(plain)
            self.parts += plain
            if not plain:
                at = 0
        key = (ord(low) - code, at, count, flags)
        return self.entries.setdefault(key, len(self.entries))


def main() -> None:
    tables = Tables()
    blocks: dict[tuple[int, ...], int] = {}
    index = []
    for first in range(0, 0x110000, 128):
        block = tuple(tables.entry(code) for code in range(first, first + 128))
        index.append(blocks.setdefault(block, len(blocks)))
    with open(sys.argv[1], "w", encoding="ascii") as out:
        def lines(values: list[str]) -> None:
            for i in range(0, len(values), 16):
                out.write(", ".join(values[i:i + 16]) + ",\n")
            out.write("};\n")

        out.write(f"/* Written by gen_fold.py: Unicode {unicodedata.unidata_version}. */\n")
        out.write(f"static const uint16_t fold_index[{len(index)}] = {{\n")
        lines([str(i) for i in index])
        out.write(f"static const uint16_t fold_block[{len(blocks)}][128] = {{\n")
        for block in blocks:
            out.write("{" + ", ".join(map(str, block)) + "},\n")
        out.write("};\nstatic const leat__letter fold_entry[] = {\n")
        lines([f"{{{d}, {at}, {n}, {flags}}}" for d, at, n, flags in tables.entries])
        out.write("static const uint32_t fold_part[] = {\n")
        lines([str(part) for part in tables.parts])
        for name, kind in (("cased", 1), ("ignored", 2)):
            out.write(f"static const uint32_t fold_{name}[][2] = {{\n")
            lines([f"{{{lo}, {hi}}}" for lo, hi in runs(kind)])


if __name__ == "__main__":
    main()
