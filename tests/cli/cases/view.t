# The page itself is tested by python/tests/test_view.py and test_view_browser.py.

$ leat view $LEAT_TEST_DATA/images-1.1.leat other.leat
! leat view: 'other.leat': packs of columns come after --with (see leat view --help)
= 2

$ leat view $LEAT_TEST_DATA/images-1.1.leat --with
! leat view: --with: no pack of columns was named (see leat view --help)
= 2

$ leat view nothing.leat
! leat view: nothing.leat: cannot open: No such file or directory
= 4

$ leat check $LEAT_TEST_DATA/images-1.1.leat -o check.leat --quiet >/dev/null; leat view check.leat
! leat view: check.leat: has no image field
= 2

$ leat view $LEAT_TEST_DATA/images-1.1.leat --save nowhere/s.leat
! leat view: nowhere/s.leat: there is no folder nowhere/ to save into
= 4

$ mkdir d; leat view $LEAT_TEST_DATA/images-1.1.leat --save d
! leat view: d: is a folder: name a file in it
= 2

$ cp $LEAT_TEST_DATA/images-1.1.leat a.leat; leat view a.leat --field label
! leat view: a.leat: has no image field label
= 2
