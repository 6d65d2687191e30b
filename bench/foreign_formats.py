#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other people's formats read back, and how fast they become packs: `bench/foreign_formats.py [--images 2000] [--side 320]`.

Each format is written and read by its own library. `leat.pack` converts it, and every value of the pack must be the one
that the library read, in its order. Prints a table for bench/RESULTS.md: images per second and CPU time of the conversion,
and the CPU time of the library alone reading the same files once. Run it with an interpreter that has leat, Pillow and the libraries
(webdataset, tfrecord, mosaicml-streaming, litdata, lmdb, pyarrow, datasets, ffcv); formats whose library is missing are named."""
import argparse
import csv
import importlib
import io
import json
import os
import pathlib
import resource
import shutil
import sys
import tempfile
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from remote_peers import images, stub_torchvision  # noqa: E402


def text_of(i: int) -> str:
    return f"text {i} ä"


def write_folder(place, files):
    for i, one in enumerate(files):
        os.makedirs(f"{place}/{i % 3}", exist_ok=True)
        pathlib.Path(f"{place}/{i % 3}/{i:06}.jpg").write_bytes(one)


def read_folder(place):
    for label in sorted(os.listdir(place)):
        for name in sorted(os.listdir(f"{place}/{label}")):
            yield {"image": pathlib.Path(place, label, name).read_bytes(), "label": int(label)}


def write_csv(place, files):
    write_folder(f"{place}/files", files)
    with open(f"{place}/a.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["path", "label", "score"])
        rows.writerows((f"files/{i % 3}/{i:06}.jpg", i % 3, i / 4) for i in range(len(files)))


def read_csv(place):
    with open(f"{place}/a.csv", newline="") as file:
        for row in csv.DictReader(file):
            yield {"image": pathlib.Path(place, row["path"]).read_bytes(), "label": int(row["label"]), "score": float(row["score"])}


def write_webdataset(place, files, ending="tar"):
    import webdataset
    os.makedirs(place)
    with webdataset.TarWriter(f"{place}/a.{ending}") as writer:
        for i, one in enumerate(files):
            writer.write({"__key__": f"{i:06}", "jpg": one, "cls": i % 3, "json": {"a": i}, "txt": text_of(i)})


def read_webdataset(place, ending="tar"):
    import webdataset
    for sample in webdataset.WebDataset(f"{place}/a.{ending}", shardshuffle=False):
        yield {"image": sample["jpg"], "label": int(sample["cls"]), "json": json.loads(sample["json"]), "txt": sample["txt"].decode()}


def write_tfrecord(place, files):
    import tfrecord
    os.makedirs(place)
    writer = tfrecord.TFRecordWriter(f"{place}/a.tfrecord")
    for i, one in enumerate(files):
        writer.write({"image/encoded": (one, "byte"), "image/class/label": (i % 3, "int"), "name": (text_of(i).encode(), "byte"),
                      "values": ([float(i)] * (i % 4 + 2), "float")})
    writer.close()


def read_tfrecord(place):
    import numpy
    from tfrecord.reader import tfrecord_loader
    for row in tfrecord_loader(f"{place}/a.tfrecord", None):
        yield {"image": bytes(row["image/encoded"]), "label": int(row["image/class/label"][0]), "name": bytes(row["name"]).decode(),
               "values": numpy.asarray(row["values"], numpy.float32)}


def write_mds(place, files):
    stub_torchvision()
    import numpy
    from streaming import MDSWriter
    columns = {"jpg": "bytes", "cls": "int", "txt": "str", "meta": "json", "vector": "ndarray:float32:3"}
    with MDSWriter(out=place, columns=columns, size_limit=16 << 20) as writer:
        for i, one in enumerate(files):
            writer.write({"jpg": one, "cls": i % 3, "txt": text_of(i), "meta": {"a": i}, "vector": numpy.full(3, i, numpy.float32)})


def read_mds(place):
    from streaming import LocalDataset
    for row in LocalDataset(place):
        yield {"image": row["jpg"], "label": row["cls"], "txt": row["txt"], "meta": row["meta"], "vector": row["vector"]}


def write_litdata(place, files):
    import numpy
    from litdata.streaming.writer import BinaryWriter
    writer = BinaryWriter(place, chunk_bytes=16 << 20)
    for i, one in enumerate(files):
        writer[i] = {"image": one, "label": i % 3, "text": text_of(i), "x": numpy.full(3, i, numpy.float32)}
    writer.done()
    writer.merge(1)


def read_litdata(place):
    import litdata
    for row in litdata.StreamingDataset(place):
        yield {name: row[name] for name in ("image", "label", "text", "x")}


def write_lmdb(place, files):
    import lmdb
    with lmdb.open(place, map_size=1 << 32) as env, env.begin(write=True) as todo:
        for i, one in enumerate(files):
            todo.put(f"{i:08}".encode(), one)


def read_lmdb(place):
    import lmdb
    with lmdb.open(place, readonly=True, lock=False) as env, env.begin() as todo:
        for _, value in todo.cursor():
            yield {"image": bytes(value)}


def write_parquet(place, files):
    import pyarrow
    import pyarrow.parquet
    os.makedirs(place)
    cells = [{"bytes": one, "path": f"{i}.jpg"} for i, one in enumerate(files)]
    table = pyarrow.table({"image": cells, "label": [i % 3 for i in range(len(files))], "text": [text_of(i) for i in range(len(files))]})
    pyarrow.parquet.write_table(table, f"{place}/a.parquet", row_group_size=500)


def read_parquet(place):
    import pyarrow.parquet
    for batch in pyarrow.parquet.ParquetFile(f"{place}/a.parquet").iter_batches(256):
        for row in batch.to_pylist():
            yield {"image": row["image"]["bytes"], "label": row["label"], "text": row["text"]}


def write_huggingface(place, files):
    import datasets
    features = datasets.Features({"img": datasets.Image(decode=False), "labels": datasets.ClassLabel(names=["a", "b", "c"]),
                                  "caption": datasets.Value("string")})
    rows = {"img": [{"bytes": one, "path": None} for one in files], "labels": [i % 3 for i in range(len(files))],
            "caption": [text_of(i) for i in range(len(files))]}
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(place)


def read_huggingface(place):
    import datasets
    for row in datasets.load_from_disk(place):
        yield {"image": row["img"]["bytes"], "label": row["labels"], "caption": row["caption"]}


def write_coco(place, files):
    os.makedirs(f"{place}/images")
    for i, one in enumerate(files):
        pathlib.Path(f"{place}/images/{i:06}.jpg").write_bytes(one)
    boxes = [{"id": 2 * i + k, "image_id": i, "category_id": 3 + k, "bbox": [k, 2, 30 + i % 50, 40.5]}
             for i in range(len(files)) for k in range(i % 3)]
    pathlib.Path(f"{place}/a.json").write_text(json.dumps({
        "images": [{"id": i, "file_name": f"{i:06}.jpg"} for i in range(len(files))], "annotations": boxes,
        "categories": [{"id": 3, "name": "cat"}, {"id": 4, "name": "dog"}]}))


def read_coco(place):
    import numpy
    whole = json.loads(pathlib.Path(f"{place}/a.json").read_text())
    boxes: dict[int, list] = {}
    for one in whole["annotations"]:
        left, top, width, height = one["bbox"]
        boxes.setdefault(one["image_id"], []).append((left, top, left + width, top + height))
    for one in whole["images"]:
        found = numpy.array(boxes.get(one["id"], []), numpy.float32).reshape(-1, 4)
        yield {"image": pathlib.Path(place, "images", one["file_name"]).read_bytes(), "image_id": one["id"], "boxes": found}


def write_voc(place, files):
    for folder in ("JPEGImages", "Annotations"):
        os.makedirs(f"{place}/{folder}")
    for i, one in enumerate(files):
        pathlib.Path(f"{place}/JPEGImages/{i:06}.jpg").write_bytes(one)
        found = "".join(f"<object><name>{'cat' if k else 'dog'}</name><difficult>0</difficult><bndbox><xmin>{k + 1}</xmin><ymin>2</ymin>"
                        f"<xmax>{30 + i % 50}</xmax><ymax>41</ymax></bndbox></object>" for k in range(i % 3))
        pathlib.Path(f"{place}/Annotations/{i:06}.xml").write_text(
            f"<annotation><filename>{i:06}.jpg</filename>{found}</annotation>")


def read_voc(place):
    import xml.etree.ElementTree

    import numpy
    for name in sorted(os.listdir(f"{place}/Annotations")):
        root = xml.etree.ElementTree.parse(f"{place}/Annotations/{name}").getroot()
        # corners count pixels from 1, the last one included: the right and lower edges are where they are from 0
        corners = [[float(box.findtext(side)) - (side[1:] == "min") for side in ("xmin", "ymin", "xmax", "ymax")]
                   for box in root.iter("bndbox")]
        file = pathlib.Path(place, "JPEGImages", root.findtext("filename"))
        yield {"image": file.read_bytes(), "boxes": numpy.array(corners, numpy.float32).reshape(-1, 4)}


class Pictures:
    """What FFCV's writer takes: an indexed data set."""

    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        import numpy
        from PIL import Image
        pixels = numpy.array(Image.open(io.BytesIO(self.files[i])).convert("RGB").resize((96, 96)))
        return pixels, int(i) % 3, int(i) / 4, numpy.full((2, 3), i, numpy.int32), {"text": text_of(int(i))}


def write_ffcv(place, files, mode="jpg"):
    import numpy
    from ffcv.fields import FloatField, IntField, JSONField, NDArrayField, RGBImageField
    from ffcv.writer import DatasetWriter
    os.makedirs(place)
    fields = {"image": RGBImageField(write_mode=mode), "label": IntField(), "score": FloatField(),
              "grid": NDArrayField(numpy.dtype("int32"), (2, 3)), "meta": JSONField()}
    DatasetWriter(f"{place}/a.beton", fields, num_workers=1).from_indexed_dataset(Pictures(files), shuffle_indices=False)


def read_ffcv(place):
    """Its reader's table says where each JPEG is: its decoder is not exact."""
    from ffcv.reader import Reader
    data = pathlib.Path(place, "a.beton").read_bytes()
    table = Reader(f"{place}/a.beton")
    size_at = {int(ptr): int(size) for ptr, size in zip(table.alloc_table["ptr"], table.alloc_table["size"], strict=True)}
    for row, rest in zip(table.metadata, load_ffcv(place, ["label", "score", "grid", "meta"]), strict=True):
        at = int(row["f0"]["data_ptr"])
        yield {"image": data[at:at + size_at[at]], **rest}


def write_ffcv_raw(place, files):
    write_ffcv(place, files, "raw")


def read_ffcv_raw(place):
    yield from load_ffcv(place, ["image", "label", "score", "grid", "meta"])


def load_ffcv(place, names):
    import numpy
    from ffcv.fields import JSONField
    from ffcv.fields.decoders import BytesDecoder, FloatDecoder, IntDecoder, NDArrayDecoder, SimpleRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    decoders = {"image": SimpleRGBImageDecoder, "label": IntDecoder, "score": FloatDecoder, "grid": NDArrayDecoder, "meta": BytesDecoder}
    pipelines = {name: [decoders[name]()] if name in names else None for name in decoders}
    for batch in Loader(f"{place}/a.beton", batch_size=1, num_workers=1, order=OrderOption.SEQUENTIAL, pipelines=pipelines):
        row = {name: numpy.array(value)[0] for name, value in zip(names, batch, strict=True)}
        yield {**row, "label": int(row["label"][0]), "score": float(row["score"][0]), "meta": JSONField.unpack(row["meta"][None])[0]}


# name, library, file or "" for the folder, read by
FORMATS = {"folder": ("", "", "files"), "csv": ("", "a.csv", "csv of Python"), "webdataset": ("webdataset", "a.tar", "webdataset"),
           "tfrecord": ("tfrecord", "a.tfrecord", "tfrecord"), "mds": ("streaming", "", "mosaicml-streaming"),
           "litdata": ("litdata", "", "litdata"), "lmdb": ("lmdb", "", "lmdb"), "parquet": ("pyarrow", "a.parquet", "pyarrow"),
           "huggingface": ("datasets", "", "datasets"), "coco": ("", "a.json", "json of Python"), "voc": ("", "", "xml of Python"),
           "ffcv": ("ffcv", "a.beton", "ffcv"), "ffcv_raw": ("ffcv", "a.beton", "ffcv")}


def same(found: object, wanted: object) -> bool:
    import numpy
    if isinstance(wanted, numpy.ndarray):
        return found.dtype == wanted.dtype and numpy.array_equal(found, wanted)  # type: ignore[attr-defined]
    return found == wanted


def used() -> float:
    use = resource.getrusage(resource.RUSAGE_SELF)
    return use.ru_utime + use.ru_stime


def one_format(name: str, folder: str, files: list[bytes]) -> str:
    import leat
    _, file, reader = FORMATS[name]
    place = os.path.join(folder, name)
    globals()[f"write_{name}"](place, files)
    before = used()
    for count, _ in enumerate(globals()[f"read_{name}"](place), 1):
        pass
    alone = (used() - before) / count * 1e6
    before, begin = used(), time.monotonic()
    leat.pack(os.path.join(place, file) if file else place, f"{folder}/out.leat", images="keep", force=True, sync=False)
    rate, cpu = count / (time.monotonic() - begin), (used() - before) / count * 1e6
    with leat.open(f"{folder}/out.leat") as pack:
        if len(pack) != count:
            sys.exit(f"{name}: {len(pack)} samples, not {count}")
        for i, wanted in enumerate(globals()[f"read_{name}"](place)):
            for field, value in wanted.items():
                found = pack[i][field]
                if field == "image":
                    found = found.decode() if name == "ffcv_raw" else found.file()
                if not same(found, value):
                    sys.exit(f"{name}: sample {i}: {field} is {str(found)[:80]}, not {str(value)[:80]}")
    shutil.rmtree(place)
    return f"| {name} | {reader} | {count} | yes | {rate:.0f} | {cpu:.0f} | {alone:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--side", type=int, default=320)
    parser.add_argument("--formats", default=",".join(FORMATS))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    files = images(args.images, args.side)
    print(f"{len(files)} JPEG files of {sum(map(len, files)) / len(files) / 1024:.0f} KiB on average, kept as they are\n\n"
          "| format | written and read by | samples | values and order equal | images/s into a pack | CPU µs per image | of its "
          "library reading alone |\n|---|---|---|---|---|---|---|", flush=True)
    for name in args.formats.split(","):
        folder = tempfile.mkdtemp(prefix="leat-formats-")
        try:
            if name == "mds":
                stub_torchvision()
            if FORMATS[name][0]:
                importlib.import_module(FORMATS[name][0])
            print(one_format(name, folder, files), flush=True)
        except ImportError as error:
            print(f"# {name}: {error}", file=sys.stderr)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
