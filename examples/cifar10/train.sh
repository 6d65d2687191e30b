#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# train.sh DIR OUT: CIFAR-10 as image files in DIR/train/CLASS and DIR/test/CLASS; packs them and trains a ResNet-11.
set -e
mkdir -p "$2"
for part in train test; do leat pack "$1/$part" -o "$2/$part.leat" --images raw --force; done
leat train "$2/train.leat" --val "$2/test.leat" -o "$2/run" -c "$(dirname "$0")/resnet11.yaml" --resume
