# SPDX-License-Identifier: Apache-2.0
"""Annotations of boxes: COCO and Pascal VOC. A sample has its image and, as ragged fields that ``follow`` moves with
the image, ``boxes`` (n, 4) as left, top, right, bottom in pixels, and ``box_labels`` (n,)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from xml.etree import ElementTree

import numpy as np

from ._errors import DataError
from ._formats import Reader, Sample

_FIELDS: dict[str, object] = {"image": "image", "boxes": ("float32", (None, 4)), "box_labels": ("int64", (None,)),
                              "box_names": "json"}


class Coco(Reader):
    """``images``, ``annotations`` and ``categories`` of one JSON file; images in its order. ``box_labels`` are
    category_id as they are there, ``box_names`` the categories' names, ``crowd`` is iscrowd."""

    kind = "coco"

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            try:
                data = json.load(file)
            except ValueError as error:
                raise DataError(f"{path}: {error}") from error
        if not isinstance(data, dict) or not {"images", "annotations", "categories"} <= data.keys():
            raise DataError(f"{path}: not a COCO file: no images, annotations and categories")
        self.images = data["images"]
        self.total = len(self.images)
        self.names = {c["id"]: c["name"] for c in data["categories"]}
        self.boxes: dict[int, list[dict]] = {}
        for one in data["annotations"]:
            self.boxes.setdefault(one["image_id"], []).append(one)
        self.folder = _image_folder(path, self.images[0]["file_name"] if self.images else "")
        self.start({**_FIELDS, "crowd": ("uint8", (None,)), "image_id": int})

    def samples(self) -> Iterator[Sample]:
        for image in self.images:
            found = self.boxes.get(image["id"], [])
            corners = np.array([one["bbox"] for one in found], np.float64).reshape(-1, 4)
            corners[:, 2:] += corners[:, :2]
            labels = [one["category_id"] for one in found]
            yield image["file_name"], os.path.join(self.folder, image["file_name"]), {
                "boxes": corners.astype(np.float32), "box_labels": np.array(labels, np.int64),
                "box_names": [self.names[label] for label in labels],
                "crowd": np.array([one.get("iscrowd", 0) for one in found], np.uint8), "image_id": image["id"]}


def _image_folder(path: str, name: str) -> str:
    """Where the images of an annotation file are: beside it, or in a folder of the split's name above it."""
    here = os.path.dirname(os.path.abspath(path))
    above = os.path.dirname(here)
    split = os.path.splitext(os.path.basename(path))[0].rpartition("_")[2]
    places = [here, os.path.join(here, split), os.path.join(above, split), os.path.join(above, "images", split),
              os.path.join(above, "images"), os.path.join(here, "images"), above]
    for place in places:
        if os.path.exists(os.path.join(place, name)):
            return place
    raise DataError(f"{path}: its image {name} is in none of {', '.join(places)}")


class Voc(Reader):
    """``Annotations/*.xml`` with ``JPEGImages``, in the order of the names. Corners are counted from 0 here, from 1
    in the files; ``box_labels`` number the names of all classes in the order of their bytes."""

    kind = "voc"

    def __init__(self, folder: str) -> None:
        self.folder = folder
        notes = os.path.join(folder, "Annotations")
        self.files = [os.path.join(notes, n) for n in sorted(os.listdir(notes)) if n.endswith(".xml")]
        self.total = len(self.files)
        names: set[str] = set()
        for file in self.files:
            names.update(name for name, _, _ in _objects(file)[1])
        self.numbers = {name: i for i, name in enumerate(sorted(names))}
        self.start({**_FIELDS, "difficult": ("uint8", (None,))})

    def samples(self) -> Iterator[Sample]:
        for file in self.files:
            image, found = _objects(file)
            corners = np.array([box for _, box, _ in found], np.float32).reshape(-1, 4)
            corners[:, :2] -= 1
            names = [name for name, _, _ in found]
            yield image, os.path.join(self.folder, "JPEGImages", image), {
                "boxes": corners, "box_names": names,
                "box_labels": np.array([self.numbers[name] for name in names], np.int64),
                "difficult": np.array([hard for _, _, hard in found], np.uint8)}


def _objects(file: str) -> tuple[str, list[tuple[str, list[float], int]]]:
    """Name of the image, and name, corners and difficulty of each object."""
    try:
        root = ElementTree.parse(file).getroot()
        found = [(one.findtext("name", "").strip(),
                  [float(one.findtext(f"bndbox/{side}", "")) for side in ("xmin", "ymin", "xmax", "ymax")],
                  int(one.findtext("difficult") or 0)) for one in root.iter("object")]
    except (ElementTree.ParseError, ValueError) as error:
        raise DataError(f"{file}: {error}") from error
    return root.findtext("filename") or os.path.basename(file)[:-4] + ".jpg", found
