# Version and build facts.

$ leat --version
leat [0-9]*.[0-9]*.[0-9]* (glob)
features: [+-]uring [+-]http [+-]fault +jpeg [+-]png [+-]webp +gif +bmp [+-]tiff [+-]avif [+-]jxl [+-]heif (glob)
isa: * (this CPU has *) (glob)
compiler: * build (glob)

$ leat -V | head -1
leat [0-9]* (glob)

$ leat --version --json | jget '?' features.?
build compiler features isa isa_host version
avif bmp fault gif heif http jpeg jxl png tiff uring webp

# no command is no error: it is a question
$ leat | head -1
leat - keep accelerators fed

$ leat --help | head -1
leat - keep accelerators fed

$ LEAT_CPU_MASK=scalar leat --version --json | jget isa
scalar

# a value that means nothing is refused, not passed over
$ LEAT_CPU_MASK=sse42 leat --version
! leat: LEAT_CPU_MASK: "sse42" is not scalar, avx2, avx512, avx512icl or a hexadecimal mask (see leat --help)
= 2
