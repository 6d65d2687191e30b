# Training is handed over to Python; what is checked before that.

$ leat train
! leat train: PACK is missing: train on this pack (see leat train --help)
= 2

$ leat train a.leat -o run --batch-size 0
! leat train: --batch-size: 0 is out of range (1 to 1048576) (see leat train --help)
= 2

$ leat train a.leat -o run --precision fp8
! leat train: --precision: 'fp8' is not one of * (glob)
= 2

# a name that is not UTF-8 would become another one
$ leat train a.leat -o "$(printf 'run\377')" 2>/dev/null
= 2

# without Python, and with one that has neither leat nor PyTorch
$ LEAT_PYTHON=/nowhere/python leat train a.leat -o run
! leat train: /nowhere/python: not found; train runs on PyTorch: install Python 3.11 or later and 'pip install leat torch', or name a Python with LEAT_PYTHON
= 4

$ printf '#!/bin/sh\nexec python3 -S -I "$@"\n' > bare
> chmod +x bare
> LEAT_PYTHON=./bare leat train a.leat -o run
! leat train: *python* has no module 'leat': install it with: * -m pip install leat torch (glob)
= 4

# embed: the same hand-over
$ leat embed a.leat
! leat embed: --output is missing: write the vectors here (see leat embed --help)
= 2

$ LEAT_PYTHON=/nowhere/python leat embed a.leat -o b.leat 2>&1 | grep -c 'not found; embed runs on PyTorch'
1

# tag: the same hand-over
$ leat tag a.leat -o b.leat
! leat tag: --model is missing: a run of leat train, * (glob)
= 2

$ leat tag a.leat -o b.leat -m run --activation tanh
! leat tag: --activation: 'tanh' is not one of * (glob)
= 2

$ LEAT_PYTHON=/nowhere/python leat tag a.leat -o b.leat -m run 2>&1 | grep -c 'not found; tag runs on PyTorch'
1

# curate: needs Python, not PyTorch
$ leat curate photos
! leat curate: --output is missing: * (glob)
= 2

$ leat curate photos -o run --from tagging
! leat curate: --from: 'tagging' is not one of * (glob)
= 2

$ LEAT_PYTHON=/nowhere/python leat curate photos -o run
! leat curate: /nowhere/python: not found; curate runs on Python: install Python 3.11 or later and 'pip install leat', or name a Python with LEAT_PYTHON
= 4

# the model of a run: options of packs are refused
$ leat export run -o m.pt --checkpoint --to parquet
! leat export: --to is for packs: it has no effect with --checkpoint (see leat export --help)
= 2

$ leat export run -o m.pt --checkpoint --keys k.txt
! leat export: --keys is for packs: it has no effect with --checkpoint (see leat export --help)
= 2

# wrong usage is told before PyTorch is asked for
$ LEAT_PYTHON=/nowhere leat train x.leat
! leat train: --output DIR is missing (see leat train --help)
= 2
