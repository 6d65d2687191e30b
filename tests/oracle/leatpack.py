#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An independent reader of leat packs, written from docs/format.md alone.

It shares no code with the library: plain Python and the system's libxxhash and libzstd through ctypes. It is the
oracle of the tests: slow, strict, and complete. It checks every rule of the document and raises BadPack when one is
broken.

    leatpack.py dump FILE      one JSON line about the pack, then one per sample (payloads as XXH3)
    leatpack.py check FILE     every check and every rule; exit 1 and a message when one is broken
"""
import ctypes
import ctypes.util
import json
import os
import re
import struct
import sys

BLOCK = 4096
CHUNK = 65536
MAGIC = b"\x89LEAT\r\n\x1a"
ABSENT = 2**64 - 1
WIDTH = {"image": 32, "bytes": 16, "text": 16, "int": 8, "float": 8, "array": 16, "ragged": 16, "json": 16}
SIZES = {"bool": 1, "u8": 1, "i8": 1, "u16": 2, "i16": 2, "u32": 4, "i32": 4, "u64": 8, "i64": 8, "f16": 2,
         "bf16": 2, "f32": 4, "f64": 8}

_xxh = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
_xxh.XXH3_64bits.restype = ctypes.c_uint64
_xxh.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
_zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
_zstd.ZSTD_decompress.restype = ctypes.c_size_t
_zstd.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]


def check_of(data):
    return _xxh.XXH3_64bits(bytes(data), len(data))


class BadPack(Exception):
    pass


def need(condition, what):
    if not condition:
        raise BadPack(what)


def unpacked(frame, size):
    need(size <= 1 << 20, "size of a compressed blob")
    out = ctypes.create_string_buffer(size)
    need(_zstd.ZSTD_decompress(out, size, frame, len(frame)) == size, "frame of a compressed blob")
    return out.raw


def u64s(data):
    return struct.unpack("<%dQ" % (len(data) // 8), data)


def up(n, align):
    return -(-n // align) * align


class File:
    """One file of kind 1 or 2: header to footer, index checked as a whole."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as f:
            self.data = f.read()
        self._header()
        self._footer()
        self._checks()
        self._directory()
        self.schema = json.loads(self.section(1))
        self.provenance = json.loads(self.section(2))
        need(self.schema["version"] == 1, "schema version")
        self.fields = self.schema["fields"]
        need(len({f["name"] for f in self.fields}) == len(self.fields), "field names are unique")
        self._blobs()

    def _header(self):
        d = self.data
        need(len(d) >= 2 * BLOCK, "too short")
        need(d[:8] != b"LEATPART", "unfinished")
        need(d[:8] == MAGIC, "magic")
        need(check_of(d[:4088]) == u64s(d[4088:4096])[0], "header check")
        self.major, self.minor, self.kind, size, self.footer_check = struct.unpack_from("<HHIQQ", d, 8)
        need(self.major in (1, 2) or (self.major, self.kind) == (3, 2), "major version")
        self.page_align, self.part_align = (BLOCK, BLOCK) if self.major == 1 else (16, 64)
        need(self.kind in (1, 2), "kind")
        need(size == len(d), "file_bytes")
        need(not any(d[32:4088]), "header zeros")

    def _footer(self):
        f = self.data[-BLOCK:]
        need(f[4088:] == MAGIC[::-1], "end magic")
        (self.fingerprint,) = u64s(f[:8])
        need(check_of(f[8:]) == self.fingerprint, "footer check")
        need(self.fingerprint == self.footer_check, "footer of this header")
        need(struct.unpack_from("<HHI", f, 8) == (self.major, self.minor, self.kind), "footer version and kind")
        (size, self.samples, self.pages, self.page_bytes, self.max_page, self.max_sample, self.index_offset,
         self.index_bytes, self.checks_bytes, self.roots_bytes, self.directory_bytes, self.sections_count,
         self.roots_check, self.directory_check) = struct.unpack_from("<14Q", f, 16)
        need(size == len(self.data), "file_bytes in the footer")
        need(struct.unpack_from("<I", f, 128)[0] == CHUNK, "chunk size")
        parts = (self.index_bytes, self.checks_bytes, self.roots_bytes, self.directory_bytes)
        need(self.index_offset % self.page_align == 0, "start of the index")
        end = self.index_offset
        for part in parts:
            end += part
            need(end % self.part_align == 0, "ends of the parts")
        need(end + BLOCK == size, "parts without gaps")

    def _part(self, offset, length):
        return self.data[offset:offset + length]

    def _checks(self):
        at = self.index_offset
        index = self._part(at, self.index_bytes)
        checks = self._part(at + self.index_bytes, self.checks_bytes)
        roots = self._part(at + self.index_bytes + self.checks_bytes, self.roots_bytes)
        need(check_of(roots) == self.roots_check, "roots_check")
        for what, data, table in (("checks", checks, roots), ("index", index, checks)):
            count = -(-len(data) // CHUNK)
            need(len(table) == up(8 * count, self.part_align), "size of the table over the " + what)
            need(not any(table[8 * count:]), "padding of the table over the " + what)
            for j, want in enumerate(u64s(table[:8 * count])):
                need(check_of(data[j * CHUNK:(j + 1) * CHUNK]) == want, "chunk %d of the %s" % (j, what))

    def _directory(self):
        at = self.index_offset + self.index_bytes + self.checks_bytes + self.roots_bytes
        data = self._part(at, self.directory_bytes)
        need(check_of(data) == self.directory_check, "directory_check")
        need(len(data) == up(64 * self.sections_count, self.part_align), "size of the directory")
        self.entries = []
        end = self.index_offset
        for i in range(self.sections_count):
            entry = struct.unpack_from("<IIQQIIQQ", data, 64 * i)
            kind, _field, offset, length, width, _name_len, _name_at, size = entry
            need(offset == up(end, 64), "section %d tiles the index" % i)
            need(not any(self._part(end, offset - end)), "padding before section %d" % i)
            need(width > 0 and length % width == 0, "width of section %d" % i)
            need(size == 0 or (self.major > 1 and kind == 10), "section %d is not compressed" % i)
            need(not any(data[64 * i + 48:64 * i + 64]), "zeros behind entry %d" % i)
            self.entries.append(entry)
            end = offset + length
        index_end = self.index_offset + self.index_bytes
        need(up(end, self.part_align) == index_end, "sections fill the index")
        need(not any(self._part(end, index_end - end)), "padding of the index")

    def section(self, kind, field=None):
        found = [e for e in self.entries if e[0] == kind and (field is None or e[1] == field)]
        need(len(found) == 1, "exactly one section of kind %d" % kind)
        return self._part(found[0][2], found[0][3])

    def _blobs(self):
        names = self.section(9)
        self.blobs = {}
        last = b""
        for kind, _f, offset, length, _w, name_len, name_at, size in self.entries:
            if kind != 10:
                continue
            name = names[name_at:name_at + name_len]
            need(len(name) == name_len and name > last, "blob names ascend")
            data = self._part(offset, length)
            self.blobs[name.decode()] = unpacked(data, size) if size else data
            last = name


class Pack(File):
    """A file of kind 1."""

    def __init__(self, path):
        super().__init__(path)
        need(self.kind == 1, "a pack")
        table = self.section(3)
        need(len(table) == 32 * self.pages, "size of the page table")
        self.page_table = [struct.unpack_from("<4Q", table, 32 * i) for i in range(self.pages)]
        table = self.section(4)
        need(len(table) == 32 * self.samples, "size of the sample table")
        self.sample_table = [struct.unpack_from("<IIQQQ", table, 32 * i) for i in range(self.samples)]
        self.columns = []
        for i, f in enumerate(self.fields):
            column = self.section(5, i)
            need(len(column) == WIDTH[f["type"]] * self.samples, "size of column %d" % i)
            self.columns.append(column)
        self.key_bytes = self.section(6)

    def key(self, i):
        start = self.sample_table[i - 1][4] if i else 0
        return self.key_bytes[start:self.sample_table[i][4]]

    def sample(self, i):
        page, offset, size, want, _key_end = self.sample_table[i]
        at = self.page_table[page][0] + offset
        data = self._part(at, size)
        need(len(data) == size and check_of(data) == want, "check of sample %d" % i)
        return data

    def value(self, i, field):
        """Python value of a field: number, bytes, (shape, bytes), dict with 'data' for images, None when absent."""
        f = self.fields[field]
        kind = f["type"]
        cell = self.columns[field][i * WIDTH[kind]:(i + 1) * WIDTH[kind]]
        if kind == "int":
            return struct.unpack("<q", cell)[0]
        if kind == "float":
            return struct.unpack("<d", cell)[0]
        start, length = struct.unpack_from("<QQ", cell)
        if length == ABSENT:
            need(start == 0, "absent value starts at 0")
            return None
        sample = self.sample(i)
        need(start % 16 == 0 and start + length <= len(sample), "payload inside its sample")
        data = sample[start:start + length]
        if kind == "image":
            w, h, codec, channels, orientation, flags, cost = struct.unpack_from("<IIBBBBI", cell, 16)
            need(codec != 0, "an image has a codec")
            image = {"width": w, "height": h, "codec": codec, "channels": channels, "orientation": orientation,
                     "flags": flags, "cost": cost, "data": data}
            if flags & 8:
                image["entries"] = self.entries_behind(sample, start + length)
            return image
        if kind == "text":
            data.decode("utf-8")
        if kind == "json":
            json.loads(data)
        if kind == "array":
            count = 1
            for d in f["shape"]:
                count *= d
            need(length == count * SIZES[f["dtype"]], "bytes of an array")
            return f["shape"], data
        if kind == "ragged":
            shape = list(u64s(data[:8 * f["ndim"]]))
            head = -(-8 * f["ndim"] // 16) * 16
            need(not any(data[8 * f["ndim"]:head]), "padding of a shape")
            count = 1
            for d in shape:
                count *= d
            need(length - head == count * SIZES[f["dtype"]], "bytes of a ragged array")
            return shape, data[head:]
        return data

    @staticmethod
    def entries_behind(sample, end):
        at = -(-end // 16) * 16
        need(not any(sample[end:at]), "padding before entry points")
        need(at + 4 <= len(sample), "entry points inside their sample")
        (size,) = struct.unpack_from("<I", sample, at)
        need(size > 0 and at + 4 + size <= len(sample), "entry points inside their sample")
        return sample[at + 4:at + 4 + size]

    def find(self, key):
        hashes = u64s(self.section(7))
        rows = struct.unpack("<%dI" % self.samples, self.section(8))
        for h, row in zip(hashes, rows):
            if h == check_of(key) and self.key(row) == key:
                return row
        return None

    def check_all(self):
        at, first = BLOCK, 0
        largest = largest_sample = 0
        for p, (offset, size, want, page_first) in enumerate(self.page_table):
            need(offset == at and size > 0 and size % self.page_align == 0, "page %d tiles the file" % p)
            need(page_first == first, "page %d follows in samples" % p)
            data = self._part(offset, size)
            need(check_of(data) == want, "check of page %d" % p)
            first = self._check_page(p, first, data)
            at += size
            largest = max(largest, size)
        need(at == self.index_offset and first == self.samples, "pages end at the index")
        for row in self.sample_table:
            largest_sample = max(largest_sample, row[2])
        need(largest == self.max_page and largest_sample == self.max_sample, "largest page and sample")
        pairs = list(zip(u64s(self.section(7)), struct.unpack("<%dI" % self.samples, self.section(8))))
        need(pairs == sorted((check_of(self.key(i)), i) for i in range(self.samples)), "table of keys")
        for i in range(self.samples):
            for f in range(len(self.fields)):
                self.value(i, f)

    def _check_page(self, p, first, data):
        used, i = 0, first
        while i < self.samples and self.sample_table[i][0] == p:
            _page, offset, size, want, _key = self.sample_table[i]
            need(offset % 16 == 0 and offset == -(-used // 16) * 16, "place of sample %d" % i)
            need(not any(data[used:offset]), "padding before sample %d" % i)
            need(check_of(data[offset:offset + size]) == want, "check of sample %d" % i)
            used = offset + size
            i += 1
        need(i > first and not any(data[used:]), "page %d has samples, then zeros" % p)
        need(len(data) == max(up(used, self.page_align), self.page_align), "page %d ends with its samples" % p)
        return i


class Set:
    """A pack, or a set with all its shards, as one."""

    def __init__(self, path):
        self.file = File(path)
        if self.file.kind == 1:
            self.packs = [Pack(path)]
        else:
            need(self.file.samples == 0 and self.file.index_offset == BLOCK, "a set has no pages")
            self.packs = []
            listed = json.loads(self.file.section(11))
            need(listed["version"] == 1, "version of the list of shards")
            for entry in listed["shards"]:
                need("/" not in entry["file"] and entry["file"] not in ("", ".", ".."), "bare name")
                pack = Pack(os.path.join(os.path.dirname(path), entry["file"]))
                need((len(pack.data), pack.samples, pack.pages, "%016x" % pack.fingerprint) ==
                     (entry["bytes"], entry["samples"], entry["pages"], entry["fingerprint"]), "the listed shard")
                need(pack.schema == self.file.schema, "schema of a shard")
                marked = re.search(r"-\d{5}-([0-9a-f]{16})(?:\.leat)?$", entry["file"])
                need(not marked or marked[1] == entry["fingerprint"], "the fingerprint in the shard's name")
                self.packs.append(pack)
            need(self.file.max_page == max(p.max_page for p in self.packs), "largest page of the set")
        self.fields = self.file.fields
        self.blobs = self.file.blobs
        self.rows = [(n, i) for n, p in enumerate(self.packs) for i in range(p.samples)]
        if self.file.major == 3:  # samples that are no longer part of the set
            dropped = u64s(self.file.section(12))
            need(len(dropped) > 0 and all(a < b for a, b in zip(dropped, dropped[1:])), "dropped samples ascend")
            gone = {(d >> 32, d & 0xFFFFFFFF) for d in dropped}
            need(gone <= set(self.rows), "dropped samples are there")
            self.rows = [r for r in self.rows if r not in gone]
        self.samples = len(self.rows)

    def locate(self, i):
        n, row = self.rows[i]
        return self.packs[n], row


def entry_points(data, mcus):
    """[(position in bits, [DC of each component])] of the MCUs 0, step, 2 * step … of an image of `mcus` of them."""
    kind, components, position_bits, d0, d1, d2, zero, step = struct.unpack_from("<6BHI", data)
    need(kind == 1 and components in (1, 3) and zero == 0 and step > 0, "front of entry points")
    widths = [position_bits, d0, d1, d2][:1 + components]
    need(1 <= widths[0] <= 48 and all(1 <= w <= 16 for w in widths[1:]), "bits of entry points")
    count = -(-mcus // step)
    bits = int.from_bytes(data[12:], "little")
    need(len(data) == 12 + -(-count * sum(widths) // 8), "size of entry points")
    points = []
    for _ in range(count):
        record = []
        for w in widths:
            record.append(bits & (1 << w) - 1)
            bits >>= w
        points.append((record[0], [v - (1 << w) if v >> (w - 1) else v for v, w in zip(record[1:], widths[1:])]))
    need(bits == 0, "padding of entry points")
    return points


def jsonable(v):
    if isinstance(v, bytes):
        return {"size": len(v), "xxh3": "%016x" % check_of(v)}
    if isinstance(v, tuple):
        return {"shape": list(v[0]), **jsonable(v[1])}
    if isinstance(v, dict):
        return {k: jsonable(x) if isinstance(x, bytes) else x for k, x in v.items()}
    return v


def dump(path, out):
    s = Set(path)
    print(json.dumps({"samples": s.samples, "shards": len(s.packs), "fields": s.fields,
                      "fingerprint": "%016x" % s.file.fingerprint,
                      "blobs": {k: jsonable(v) for k, v in s.blobs.items()}}, sort_keys=True), file=out)
    for i in range(s.samples):
        p, k = s.locate(i)
        values = {f["name"]: jsonable(p.value(k, n)) for n, f in enumerate(s.fields)}
        print(json.dumps({"key": p.key(k).decode("utf-8", "surrogateescape"), "values": values}, sort_keys=True),
              file=out)


def main(argv):
    if len(argv) != 3 or argv[1] not in ("dump", "check"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        if argv[1] == "dump":
            dump(argv[2], sys.stdout)
        else:
            for p in Set(argv[2]).packs:
                p.check_all()
    except (BadPack, ValueError, KeyError) as e:
        print("%s: %s" % (argv[2], e), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
