# Version and build facts.

$ leat --version
leat [0-9]*.[0-9]*.[0-9]* (glob)
...
compiler: * (glob)

$ leat -V | head -1
leat [0-9]* (glob)

$ leat --version --json | jget '?' features.?
build compiler features version
fault http png uring webp

# no command is no error: it is a question
$ leat | head -1
leat - keep accelerators fed

$ leat --help | head -1
leat - keep accelerators fed
