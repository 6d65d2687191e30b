#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the small fastText models of the tests: tests/data/lid.ftz and the seeds of fuzz/lid.

    make_lid.py        (needs the package `fasttext`; weights differ from run to run)

The training text is random words of three languages.
"""
import os
import random
import tempfile

import fasttext

HERE = os.path.dirname(os.path.abspath(__file__))
EN = (
    "the of and to in is that it was for on are as with his they at be this have from or one had by word "
    "but not what all were we when your can said there use an each which she do how their if will up "
    "other about out many then them these so some her would make like him into time has look two more "
    "write go see number no way could people my than first water been call who oil its now find long down "
    "day did get come made may part english language line words"
).split()
DE = (
    "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden "
    "aus er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur "
    "oder aber vor zur bis mehr durch man sein wurde wenn können schon dieser zeile sprache deutsch "
    "wörter hier jetzt heute immer wieder ganz sehr groß klein neu gut"
).split()
FR = (
    "le de un à être et en avoir que pour dans ce il qui ne sur se pas plus par je avec tout faire son "
    "mettre autre on mais nous comme ou si leur y dire elle devoir avant deux même prendre aussi celui "
    "donner bien où fois vous encore nouveau aller cela entre premier vouloir déjà grand mon me moins "
    "aucun lui temps très savoir falloir voir langue ligne français mots"
).split()


def write_text(path):
    rng = random.Random(3)
    with open(path, "w", encoding="utf-8") as f:
        for _ in range(3000):
            label, words = rng.choice([("en", EN), ("de", DE), ("fr", FR)])
            f.write(f"__label__{label} " + " ".join(rng.choice(words) for _ in range(rng.randint(3, 15))) + "\n")


def train(text, path, quantised=None, **options):
    model = fasttext.train_supervised(text, thread=10, verbose=0, **options)
    if quantised is not None:
        model.quantize(None, **quantised)
    model.save_model(os.path.join(HERE, path))


def main():
    corpus = "../fuzz/corpus/lid/"
    small = dict(dim=4, bucket=30, epoch=2, minCount=700)
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "train.txt")
        write_text(text)
        train(text, "../data/lid.ftz", dict(cutoff=400, dsub=2, qnorm=True), dim=8, minn=2, maxn=4, bucket=2000, epoch=5)
        train(text, corpus + "softmax.bin", loss="softmax", minn=2, maxn=3, **small)
        train(text, corpus + "hs.bin", loss="hs", wordNgrams=2, **small)
        train(text, corpus + "ova.bin", loss="ova", **small)
        train(text, corpus + "cutoff.ftz", dict(cutoff=260, dsub=2, qnorm=True), loss="softmax", minn=1, maxn=2,
              **dict(small, minCount=300, bucket=300))
        train(text, corpus + "plain.ftz", dict(dsub=2), loss="hs", wordNgrams=3, **dict(small, minCount=100, bucket=400))


if __name__ == "__main__":
    main()
