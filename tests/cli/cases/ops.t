# Help on augmentations, out of the table.

$ leat help ops | grep -o "^  [A-Z][A-Za-z]*(" | tr -d " (" > names; awk 'END { print (NR >= 54) }' names
1

# each is explained
$ while read op; do leat help $op | head -1 | grep -q "^$op - " || echo $op; done < names

$ leat help ops | grep -A2 "^  CutMix"
  CutMix(alpha=1, p=1, unmixed=false)
                              pastes a rectangle of the sample before it into
                              each, and mixes the labels

$ leat help randomsolarize
RandomSolarize - inverts values from a threshold on with probability p
...
  threshold                   values from this one on are inverted; 0 to 256
                              (required)
...

$ leat help CenterCorp
! leat help: 'CenterCorp' is neither a command nor an op; did you mean 'CenterCrop'? (see leat help --help)
= 2

$ leat help ops --json
! leat help: --json is for commands: leat help --json has all tables (see leat help --help)
= 2

$ leat help --man Boxes | head -1
.TH * (glob)

# code keeps its case: in the examples, in no heading; and another case of a name is known
$ leat help ops | grep -e '^COMBINATORS' -e 'RandomApply(Color'
> leat load $LEAT_TEST_DATA/images-1.1.leat --ops 'RANDOMAPPLY(Cutout(9))'
  leat load train.leat --ops "RandomResizedCrop(64); RandomApply(ColorJitter(0.4))"
COMBINATORS: APPLY THE OPS INSIDE
! leat load: there is no op 'RANDOMAPPLY'; did you mean 'RandomApply'?
= 2

# an unknown parameter of an op
$ leat load $LEAT_TEST_DATA/images-1.1.leat --ops 'RandomResizedCrop(224, colour=3)'
! leat load: RandomResizedCrop has no parameter 'colour' (there are size, scale, ratio, interpolation, like)
= 2
