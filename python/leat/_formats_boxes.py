# SPDX-License-Identifier: Apache-2.0
"""Annotations of boxes: COCO and Pascal VOC. A sample has its image and, as ragged fields that ``follow`` moves with
the image, ``boxes`` (n, 4) as left, top, right, bottom in pixels, and ``box_labels`` (n,)."""

from __future__ import annotations

import json
import math
import os
import posixpath
import urllib.parse
from collections.abc import Iterator
from contextlib import suppress
from xml.etree import ElementTree

import numpy as np

from . import _check, _leat
from ._errors import DataError, NotFoundError, shown
from ._formats import Reader, Sample

_FIELDS: dict[str, object] = {"image": "image", "boxes": ("float32", (None, 4)), "box_labels": ("int64", (None,)),
                              "box_names": "json"}


class Coco(Reader):
    """``images``, ``annotations`` and ``categories`` of one JSON file; images in its order. ``box_labels`` are the
    unchanged category_id, ``box_names`` the names of the categories, ``crowd`` is iscrowd."""

    kind = "coco"

    def __init__(self, path: str) -> None:
        try:
            if "://" in path:
                data = json.loads(_leat.read_file(path))
            else:
                with open(path, "rb") as file:
                    data = json.load(file)
        except ValueError as error:
            raise DataError(f"{path}: {error}") from error
        if not isinstance(data, dict) or not {"images", "categories"} <= data.keys():
            raise DataError(f"{path}: not a COCO file: no images, annotations and categories")
        self.path, self.images = path, _rows(path, data, "images", "id", "file_name")
        self.total = len(self.images)
        self.names = {c["id"]: c["name"] for c in _rows(path, data, "categories", "id", "name")}
        self.boxes: dict[int, list[dict]] = {}
        for one in _rows(path, data, "annotations", "image_id"):  # test sets have none
            self.boxes.setdefault(one["image_id"], []).append(one)
        known = {image["id"] for image in self.images}
        lost = next((i for i in self.boxes if i not in known), None)
        if lost is not None:
            raise DataError(f"{path}: annotations of an image that is not listed: image_id {lost!r}")
        self.folder = _image_folder(path, self.images[0]["file_name"] if self.images else "")
        self.start({**_FIELDS, "crowd": ("uint8", (None,)), "image_id": int})

    def samples(self) -> Iterator[Sample]:
        for image in self.images:
            name, found = image["file_name"], self.boxes.get(image["id"], [])
            try:
                boxes = [self._box(name, one) for one in found]
            except DataError as error:
                yield name, None, error
                continue
            corners = np.array([box for box, _ in boxes], np.float64).reshape(-1, 4)
            corners[:, 2:] += corners[:, :2]
            labels = [label for _, label in boxes]
            yield name, _join(self.folder, name), {
                "boxes": corners.astype(np.float32), "box_labels": np.array(labels, np.int64),
                "box_names": [self.names[label] for label in labels],
                "crowd": np.array([bool(one.get("iscrowd")) for one in found], np.uint8), "image_id": image["id"]}

    def _box(self, name: str, one: dict) -> tuple[list[float], int]:
        """Returns left, top, width, height and category of an annotation."""
        box, label = one.get("bbox"), one.get("category_id")
        where = f"{self.path}: image {name}: annotation {one.get('id', '')}"
        if not isinstance(box, list) or len(box) != 4 or not all(
                isinstance(n, (int, float)) and math.isfinite(n) for n in box):
            raise DataError(f"{where}: its bbox is {shown(box)}, not 4 numbers")
        if box[2] < 0 or box[3] < 0:
            raise DataError(f"{where}: its bbox {box} has a negative size")
        if not isinstance(label, int) or label not in self.names:
            raise DataError(f"{where}: its category_id {shown(label)} is not in categories")
        return box, label


def _rows(path: str, data: dict, part: str, *names: str) -> list[dict]:
    """Returns a list of objects, checked: all have these names, numbers are hashable, file names are text."""
    rows = data.get(part, [])
    for i, row in enumerate(rows if isinstance(rows, list) else [rows]):
        missing = next((n for n in names if not isinstance(row, dict) or not isinstance(row.get(n), (int, str))), None)
        if missing is not None or not isinstance(rows, list):
            raise DataError(f"{path}: {part}[{i}] has no {missing or 'list'}")
        if "file_name" in names and not isinstance(row["file_name"], str):
            raise DataError(f"{path}: {part}[{i}]: file_name is not text")
    return rows


def _exists(path: str) -> bool:
    if "://" not in path:
        return os.path.exists(path)
    try:
        return len(_leat.read_file(path)) > 0
    except NotFoundError:
        return False


def _join(folder: str, name: str) -> str:
    """Joins a folder and a path; in a bucket, resolves "../", which the server would read as a name. A URL keeps its
    query, and blanks of the name are encoded."""
    scheme, mark, rest = folder.partition("://")
    if not mark:
        return os.path.join(folder, name)
    rest, query, more = rest.partition("?") if scheme in ("http", "https") else (rest, "", "")
    if scheme in ("http", "https"):
        name = urllib.parse.quote(name, safe="/%!$&'()*+,;=:@~")
    return scheme + mark + posixpath.normpath(posixpath.join(rest, name)) + query + more


def _image_folder(path: str, name: str) -> str:
    """Finds the images of an annotation file: beside the file, or in a folder above that has the name of the split."""
    plain, query, more = path.partition("?") if path.startswith(("http://", "https://")) else (path, "", "")
    here = os.path.dirname(plain if "://" in path else os.path.abspath(path))
    above = os.path.dirname(here)
    split = os.path.splitext(_check.file_name(path))[0].rpartition("_")[2]
    places = [here, os.path.join(here, split), os.path.join(above, split), os.path.join(above, "images", split),
              os.path.join(above, "images"), os.path.join(here, "images"), above]
    for place in places:
        if _exists(_join(place + query + more, name)):
            return place + query + more
    raise DataError(f"{path}: its image {name} is in none of {', '.join(places)}")


class Voc(Reader):
    """``Annotations/*.xml`` with ``JPEGImages``, in the order of the names. Corners are counted from 0 here, from 1
    in the files; ``box_labels`` number the names of all classes in the order of their bytes."""

    kind = "voc"

    def __init__(self, folder: str) -> None:
        self.folder = folder
        notes = os.path.join(folder, "Annotations")
        listed = sorted(n for n in os.listdir(notes) if n.endswith(".xml"))
        self.files = [os.path.join(notes, n) for n in listed if not n.startswith(".")]
        self.ignored = [n for n in listed if n.startswith(".")]
        self.total = len(self.files)
        names: set[str] = set()
        for file in self.files:
            with suppress(DataError):  # the error is reported with its sample
                names.update(name for name, _, _ in _objects(file)[1])
        self.numbers = {name: i for i, name in enumerate(sorted(names))}
        self.start({**_FIELDS, "difficult": ("uint8", (None,))})

    def samples(self) -> Iterator[Sample]:
        for file in self.files:
            try:
                image, found = _objects(file)
            except DataError as error:
                yield os.path.basename(file)[:-4] + ".jpg", None, error
                continue
            corners = np.array([box for _, box, _ in found], np.float32).reshape(-1, 4)
            corners[:, :2] -= 1
            names = [name for name, _, _ in found]
            yield image, os.path.join(self.folder, "JPEGImages", image), {
                "boxes": corners, "box_names": names,
                "box_labels": np.array([self.numbers[name] for name in names], np.int64),
                "difficult": np.array([hard for _, _, hard in found], np.uint8)}


def _objects(file: str) -> tuple[str, list[tuple[str, list[float], int]]]:
    """Returns the name of the image, and name, corners and difficulty of each object."""
    try:
        root = ElementTree.parse(file).getroot()
    except (ElementTree.ParseError, ValueError, OSError) as error:
        raise DataError(f"{file}: {error}") from error
    found = []
    for i, one in enumerate(root.iter("object")):
        name = (one.findtext("name") or "").strip()
        sides = [one.findtext(f"bndbox/{side}") for side in ("xmin", "ymin", "xmax", "ymax")]
        try:
            corners = [float(side or "") for side in sides]
            hard = int(one.findtext("difficult") or 0)
        except ValueError:
            raise DataError(f"{file}: object {i} ({name or 'without a name'}): its box is {sides}, not 4 numbers") from None
        if not name or not all(map(math.isfinite, corners)) or not 0 <= hard <= 255:
            raise DataError(f"{file}: object {i}: no name, or a box or difficulty that is not a number")
        found.append((name, corners, hard))
    return root.findtext("filename") or os.path.basename(file)[:-4] + ".jpg", found
