#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which private headers the command (tools/) includes.

The command is a client of include/leat/. src/base, which is the internal library of strings, JSON, memory
and errors, is free to all. Any other private header needs a row here: what is used of it. New code uses
the public interface, or extends it.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALLOWED = {
    "codec/codec.h": "names of formats and kinds of samples",
    "codec/jpeg_encode.h": "leat demo draws its images",
    "codec/tile/tile.h": "tables of tiled images, for leat show",
    "curate/decontaminate.h": "leat decontaminate",
    "curate/dedup.h": "leat dedup",
    "curate/filter_run.h": "leat filter",
    "curate/image_check.h": "leat check",
    "curate/image_dedup.h": "leat dedup images",
    "curate/label_check.h": "leat check --labels",
    "curate/select_run.h": "leat select",
    "curate/semantic_dedup.h": "leat dedup semantic",
    "curate/text_flow.h": "leat filter",
    "doctor/doctor_flags.h": "leat doctor --verify applies a remedy's flags",
    "doctor/reads.h": "how much of a pack is cached, for leat plan",
    "doctor/curate_run.h": "leat doctor of a run of leat curate",
    "doctor/time_limit.h": "when a measurement of leat plan ends",
    "engine/flow_window.h": "reads in flight of a loader, for leat plan",
    "doctor/text_run.h": "leat doctor of a run over text",
    "doctor/variant.h": "bytes of images stored again, for leat plan",
    "doctor/work.h": "cost of decoding, for leat plan --calibrate",
    "dsp/kernel.h": "kernels in use, for leat machine",
    "dsp/resizer.h": "choices of --like",
    "gpu/device.h": "rates of a GPU, for leat plan --calibrate",
    "ingest/source.h": "listing a bucket, for leat plan",
    "io/dir.h": "listing a folder",
    "io/file.h": "reading and writing whole files",
    "io/http.h": "the rate of a link, for leat plan; whether a server answered, for leat doctor",
    "io/object.h": "listing a bucket, for leat plan",
    "io/region.h": "a bucket in another region than this machine",
    "io/traffic.h": "requests and bytes of a run",
    "io/uploads.h": "leat uploads",
    "io/url.h": "what is remote",
    "loader/bounds.h": "the largest image of a pack, for leat plan",
    "loader/defaults.h": "defaults of the loader's flags",
    "loader/footprint.h": "memory of a worker, for leat plan",
    "loader/scratch.h": "memory to decode images, for leat plan",
    "op/device_plan.h": "images that a device can decode, for leat plan",
    "op/pipeline.h": "choices of flags; a pipeline for leat show and leat plan",
    "pack/kind.h": "kinds of wide images",
    "pack/selection.h": "rows of a selection that is not empty, for leat load",
    "pack/reader.h": "where samples lie, for leat plan --calibrate",
    "pack/index.h": "whether a pack is a set, for leat append and leat delete",
    "plan/parts.h": "machines of the plan's tables",
    "probe/cpu.h": "instruction sets",
    "probe/machine.h": "the machine as JSON, peak memory",
    "probe/trace.h": "--trace",
    "view/view.h": "leat view",
}


def main() -> int:
    errors, used, files = [], set(), 0
    for path in sorted((ROOT / "tools").glob("*.[ch]")):
        files += 1
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"(\w+/[\w/]+\.h)"', line)
            if match is None or match[1].startswith("base/"):
                continue
            used.add(match[1])
            if match[1] not in ALLOWED:
                errors.append(f"{path.relative_to(ROOT)}:{number}: {match[1]} is private: use include/leat/, or explain "
                              f"it in tests/lint/private.py")
    errors += [f"tests/lint/private.py: {name} is included no more: take its row out" for name in sorted(set(ALLOWED) - used)]
    for error in errors:
        print(error, file=sys.stderr)
    print(f"private: {files} files of tools/, {len(used)} private headers beside src/base, {len(errors)} errors")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
