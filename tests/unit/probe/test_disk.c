/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/probe/disk.c: fake mounts over a real folder, and the real disks here.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <leat/machine.h>

#include "base/mem.h"
#include "tree.h"

/* Mount table with one file system at the tree itself, the path we query. */
static void mounted(const char *dev, const char *type, const char *source)
{
    char line[512], real[PATH_MAX];
    assert_non_null(realpath(tree_root, real));
    snprintf(line, sizeof line, "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n21 20 %s / %.200s rw - %s %s rw\n", dev,
             real, type, source);
    tree_file("/proc/self/mountinfo", line);
}

static leat_disk read_disk(void)
{
    leat_disk disk;
    leat_error err = {0};
    assert_int_equal(leat_disk_read(&disk, tree_root, &err), 0);
    assert_true(disk.total_bytes >= disk.free_bytes && disk.total_bytes > 0);
    assert_int_equal(leat__mem_blocks(), 0);
    return disk;
}

static void test_whole_disk(void **state)
{
    mounted("259:0", "xfs", "/dev/nvme0n1");
    tree_file("/sys/dev/block/259:0/uevent", "MAJOR=259\nMINOR=0\nDEVNAME=nvme0n1\nDEVTYPE=disk\n");
    tree_file("/sys/dev/block/259:0/queue/rotational", "0\n");
    tree_file("/sys/dev/block/259:0/queue/logical_block_size", "512\n");
    tree_file("/sys/dev/block/259:0/queue/read_ahead_kb", "128\n");
    leat_disk disk = read_disk();
    assert_string_equal(disk.device, "nvme0n1");
    assert_string_equal(disk.filesystem, "xfs");
    assert_int_equal(disk.rotational, 0);
    assert_int_equal(disk.network, 0);
    assert_int_equal(disk.block_bytes, 512);
    assert_int_equal(disk.read_ahead_bytes, 128 * 1024);
}

/* The queue belongs to the disk above the partition that /sys/dev/block links to. */
static void test_partition(void **state)
{
    char link[PATH_MAX];
    mounted("8:17", "ext4", "/dev/sdb1");
    tree_file("/sys/devices/sdb/queue/rotational", "1\n");
    tree_file("/sys/devices/sdb/queue/logical_block_size", "4096\n");
    tree_file("/sys/devices/sdb/sdb1/uevent", "DEVNAME=sdb1\n");
    tree_file("/sys/class/bdi/8:17/read_ahead_kb", "4096\n");
    tree_dirs("/sys/dev/block/");
    snprintf(link, sizeof link, "%s/sys/dev/block/8:17", tree_root);
    assert_int_equal(symlink("../../devices/sdb/sdb1", link), 0);
    leat_disk disk = read_disk();
    assert_string_equal(disk.device, "sdb1");
    assert_int_equal(disk.rotational, 1);
    assert_int_equal(disk.block_bytes, 4096);
    assert_int_equal(disk.read_ahead_bytes, 4 << 20);
}

static void test_virtual_disk(void **state)
{
    mounted("254:0", "ext4", "/dev/vda");
    tree_file("/sys/dev/block/254:0/uevent", "DEVNAME=vda\n");
    tree_file("/sys/dev/block/254:0/queue/rotational", "1\n");
    assert_int_equal(read_disk().rotational, -1); /* unknown */
    tree_file("/sys/dev/block/254:0/queue/rotational", "0\n");
    assert_int_equal(read_disk().rotational, 0);
}

static void test_network(void **state)
{
    static const char *const types[] = {"nfs", "nfs4", "cifs", "lustre", "fuse.s3fs", "9p"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        mounted("0:55", types[i], "server:/export");
        tree_file("/sys/class/bdi/0:55/read_ahead_kb", "15360\n");
        leat_disk disk = read_disk();
        assert_int_equal(disk.network, 1);
        assert_string_equal(disk.filesystem, types[i]);
        assert_string_equal(disk.device, "");
        assert_int_equal(disk.rotational, -1);
        assert_int_equal(disk.block_bytes, 4096);
        assert_int_equal(disk.read_ahead_bytes, 15360 * 1024);
    }
    mounted("0:56", "tmpfs", "tmpfs");
    assert_int_equal(read_disk().network, 0);
}

static void test_garbage(void **state)
{
    mounted("8:33", "ext4", "/dev/sdc1");
    tree_file("/sys/dev/block/8:33/uevent", "nothing here\n");
    tree_file("/sys/dev/block/8:33/queue/rotational", "maybe\n");
    tree_file("/sys/dev/block/8:33/queue/logical_block_size", "1000\n");
    tree_file("/sys/dev/block/8:33/queue/read_ahead_kb", "18446744073709551615\n");
    leat_disk disk = read_disk();
    assert_string_equal(disk.device, "");
    assert_int_equal(disk.rotational, -1);
    assert_int_equal(disk.block_bytes, 4096);
    assert_int_equal(disk.read_ahead_bytes, UINT32_MAX / 1024 * 1024);
    tree_file("/proc/self/mountinfo", "what?\n");
    assert_string_equal(read_disk().filesystem, "");
}

/* btrfs: device number 0:n, the mount's source names a node in /dev. */
static void test_source_in_dev(void **state)
{
    mounted("0:44", "btrfs", "/dev/null"); /* exists, but is not a block device */
    assert_string_equal(read_disk().device, "");
    mounted("0:44", "btrfs", "/dev/leat-none");
    assert_string_equal(read_disk().filesystem, "btrfs");
}

static void test_errors(void **state)
{
    leat_disk disk;
    leat_error err = {0};
    assert_int_equal(leat_disk_read(&disk, "/nowhere/at/all", &err), LEAT_ENOENT);
    assert_non_null(strstr(err.message, "/nowhere/at/all"));
    assert_int_equal(leat_disk_read(NULL, "/", &err), LEAT_EINVAL);
    assert_int_equal(leat_disk_read(&disk, NULL, NULL), LEAT_EINVAL);
}

/* False inside a chroot, whose root is an ordinary folder of a file system that cannot be seen. */
static bool root_is_mounted(void)
{
    char line[1024], place[512];
    bool found = false;
    FILE *f = fopen("/proc/self/mountinfo", "r");
    while (f && !found && fgets(line, sizeof line, f))
        found = sscanf(line, "%*s %*s %*s %*s %511s", place) == 1 && strcmp(place, "/") == 0;
    if (f) fclose(f);
    return found;
}

static void test_this_machine(void **state)
{
    leat_disk disk;
    leat_error err = {0};
    leat__sysroot_set(NULL);
    assert_int_equal(leat_disk_read(&disk, "/", &err), 0);
    if (root_is_mounted()) {
        assert_true(disk.filesystem[0] != '\0');
        assert_true(disk.block_bytes >= 512);
    }
    assert_int_equal(leat_disk_read(&disk, "/proc", &err), 0);
    assert_string_equal(disk.filesystem, "proc");
}

int main(void)
{
#define ON_TREE(test) cmocka_unit_test_setup_teardown(test, tree_open, tree_close)
    const struct CMUnitTest tests[] = {
        ON_TREE(test_whole_disk), ON_TREE(test_partition),    ON_TREE(test_virtual_disk),
        ON_TREE(test_network),    ON_TREE(test_garbage),      ON_TREE(test_source_in_dev),
        ON_TREE(test_errors),     ON_TREE(test_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
