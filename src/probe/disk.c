/* SPDX-License-Identifier: Apache-2.0
 *
 * The storage of a path: its mount and the kernel's data about the block device. The mount is found as the
 * longest mount point above the resolved path, because stat() returns made-up device numbers on btrfs and
 * overlay. No state, any thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include <leat/machine.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "probe/mount.h"
#include "probe/sysfile.h"

#define BLOCK_UNKNOWN 4096u /* large enough for every known device */

static bool is_network(const char *type)
{
    static const char *const types[] = {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "ceph",
        "lustre",
        "gpfs",
        "beegfs",
        "afs",
        "9p",
        "glusterfs",
        "orangefs",
        "pvfs2",
        "wekafs",
        "fuse.sshfs",
        "fuse.s3fs",
        "fuse.gcsfuse",
        "fuse.goofys",
        "fuse.rclone",
        "fuse.juicefs",
        "fuse.ceph",
        "fuse.blobfuse",
        "fuse.blobfuse2",
        "fuse.glusterfs",
        "fuse.mountpoint-s3",
        "fuse.seaweedfs",
        "fuse.alluxio-fuse",
        "fuse.davfs",
    };
    for (size_t i = 0; i < LEAT_COUNT(types); i++) {
        if (strcmp(type, types[i]) == 0) return true;
    }
    return false;
}

/* Reads a number from the device's own queue or, for a partition, from the queue of its disk. sysfs entries
 * are links, so ".." is the parent of the link's target. */
static bool queue_u64(uint64_t *value, uint32_t major, uint32_t minor, const char *file)
{
    return leat__sysfile_u64(value, "/sys/dev/block/%u:%u/queue/%s", major, minor, file) ||
           leat__sysfile_u64(value, "/sys/dev/block/%u:%u/../queue/%s", major, minor, file);
}

static void read_device(leat_disk *disk, uint32_t major, uint32_t minor)
{
    char text[1024];
    uint64_t value;
    if (leat__sysfile_read(text, sizeof text, "/sys/dev/block/%u:%u/uevent", major, minor)) {
        const char *name = strstr(text, "DEVNAME=");
        if (name) {
            name += strlen("DEVNAME=");
            snprintf(disk->device, sizeof disk->device, "%.*s", (int)strcspn(name, "\n"), name);
        }
    }
    /* Virtual disks always report "rotational", so the real value is unknown. */
    bool virtual_disk = leat__str_starts(disk->device, "vd") || leat__str_starts(disk->device, "xvd");
    if (queue_u64(&value, major, minor, "rotational") && !(virtual_disk && value != 0)) {
        disk->rotational = value != 0;
    }
    if (queue_u64(&value, major, minor, "logical_block_size") && leat__is_pow2(value) && value <= 65536) {
        disk->block_bytes = (uint32_t)value;
    }
}

/* Finds the block device of a mount. File systems on several devices or none have a number 0:…, but the
 * mount's source may still name a device. */
static void find_device(leat_disk *disk, const leat__mount *m)
{
    struct stat st;
    uint64_t kb;
    if (m->major != 0) {
        read_device(disk, m->major, m->minor);
    } else if (leat__str_starts(m->source, "/dev/") && stat(m->source, &st) == 0 && S_ISBLK(st.st_mode)) {
        read_device(disk, major(st.st_rdev), minor(st.st_rdev));
    }
    /* Every file system has its readahead here, even without a block device. */
    if (leat__sysfile_u64(&kb, "/sys/class/bdi/%u:%u/read_ahead_kb", m->major, m->minor) ||
        queue_u64(&kb, m->major, m->minor, "read_ahead_kb")) {
        disk->read_ahead_bytes = (uint32_t)LEAT_MIN(kb, UINT32_MAX / 1024) * 1024;
    }
}

static uint64_t blocks_to_bytes(uint64_t blocks, uint64_t size)
{
    uint64_t bytes;
    return leat__mul_u64(blocks, size, &bytes) ? bytes : UINT64_MAX;
}

int leat_disk_read(leat_disk *disk, const char *path, leat_error *err)
{
    LEAT_REQUIRE(disk != NULL && path != NULL, err);
    if (!disk || !path) return leat__fail(err, LEAT_EINVAL, "disk or path is NULL");
    memset(disk, 0, sizeof *disk);
    disk->rotational = -1;
    disk->block_bytes = BLOCK_UNKNOWN;

    char real[PATH_MAX];
    struct statvfs fs;
    if (!realpath(path, real) || statvfs(real, &fs) != 0) {
        return leat__fail_errno(err, errno, "%s", path);
    }
    disk->total_bytes = blocks_to_bytes(fs.f_blocks, fs.f_frsize);
    disk->free_bytes = blocks_to_bytes(fs.f_bavail, fs.f_frsize);

    leat__mount m;
    char *mounts = leat__sysfile_load("/proc/self/mountinfo");
    if (mounts && leat__mount_of(mounts, real, &m)) {
        snprintf(disk->filesystem, sizeof disk->filesystem, "%s", m.type);
        disk->network = is_network(m.type);
        find_device(disk, &m);
    }
    leat__free(mounts);
    return 0;
}
