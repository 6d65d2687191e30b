#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# train.sh DIR OUT: any folder of images, DIR/train/CLASS and DIR/val/CLASS; plan, pack, train, doctor.
set -e
mkdir -p "$2"
for part in train val; do leat pack "$1/$part" -o "$2/$part.leat" --images tiled --resume --force; done
leat train "$2/train.leat" --val "$2/val.leat" -o "$2/run" -c "$(dirname "$0")/resnet50.yaml" --plan --resume
