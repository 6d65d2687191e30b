/* SPDX-License-Identifier: Apache-2.0
 *
 * Control groups. /proc/self/cgroup names our group in each hierarchy; mountinfo gives the mount
 * point of each hierarchy and the group at the top of the mount. We check our own group and every
 * parent up to and including the mount point, because any of them may set the limit (a pod, a
 * slice). Inside a cgroup namespace the path is "/" and the limit is in the mount point itself.
 * No state, any thread.
 */
#include "probe/cgroup.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <leat/machine.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "probe/mount.h"

/* Version 1 reports "no limit" as the largest multiple of a page. */
#define V1_UNLIMITED (UINT64_C(1) << 62)

/* Called for the own group and each parent; `dir` is below the sysroot. */
typedef void (*visit)(leat__cgroup *cg, const char *dir);

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* ---- CPU ------------------------------------------------------------------------------- */

static void take_quota(leat__cgroup *cg, double quota, const char *dir, const char *time_key,
                       uint64_t time_per_us)
{
    if (quota <= 0 || (cg->cpu_quota > 0 && quota >= cg->cpu_quota)) return;
    cg->cpu_quota = quota;
    cg->periods = cg->throttled_periods = cg->throttled_us = 0;

    char text[1024];
    uint64_t time = 0;
    if (!leat__sysfile_read(text, sizeof text, "%s/cpu.stat", dir)) return;
    leat__text_key_u64(text, "nr_periods", &cg->periods);
    leat__text_key_u64(text, "nr_throttled", &cg->throttled_periods);
    leat__text_key_u64(text, time_key, &time);
    cg->throttled_us = time / time_per_us;
}

/* "150000 100000" or "max 100000" */
static void cpu_v2(leat__cgroup *cg, const char *dir)
{
    char text[64];
    uint64_t quota, period = 100000;
    if (!leat__sysfile_read(text, sizeof text, "%s/cpu.max", dir)) return;
    if (!leat__text_u64(text, &quota)) return;
    const char *blank = strchr(text, ' ');
    if (blank && (!leat__text_u64(blank + 1, &period) || period == 0)) return;
    take_quota(cg, (double)quota / (double)period, dir, "throttled_usec", 1);
}

static void cpu_v1(leat__cgroup *cg, const char *dir)
{
    uint64_t quota, period;
    if (!leat__sysfile_u64(&quota, "%s/cpu.cfs_quota_us", dir)) return; /* -1: none */
    if (!leat__sysfile_u64(&period, "%s/cpu.cfs_period_us", dir) || period == 0) return;
    take_quota(cg, (double)quota / (double)period, dir, "throttled_time", 1000);
}

/* ---- memory ---------------------------------------------------------------------------- */

static void take_memory(leat__cgroup *cg, uint64_t limit, uint64_t used)
{
    if (limit == LEAT_UNLIMITED) return;
    if (limit < cg->memory_limit) {
        cg->memory_limit = limit;
        cg->memory_used = used;
    }
    cg->memory_left = LEAT_MIN(cg->memory_left, minus(limit, used));
}

/* Subtracts the page cache, which is charged to the group but freed under memory pressure. Pages of tmpfs and
 * shared memory are not freed, and are not in these two counters. */
static uint64_t without_cache(uint64_t used, const char *stat, const char *inactive, const char *active)
{
    uint64_t pages = 0;
    if (leat__text_key_u64(stat, inactive, &pages)) used = minus(used, pages);
    if (leat__text_key_u64(stat, active, &pages)) used = minus(used, pages);
    return used;
}

/* Above memory.high the kernel throttles allocating threads. For a loader that is as hard a limit
 * as memory.max. */
static void memory_v2(leat__cgroup *cg, const char *dir)
{
    uint64_t max = LEAT_UNLIMITED, high = LEAT_UNLIMITED, used = 0, swap_max, swap = 0;
    leat__sysfile_u64(&max, "%s/memory.max", dir);
    leat__sysfile_u64(&high, "%s/memory.high", dir);
    leat__sysfile_u64(&used, "%s/memory.current", dir);
    char *stat = leat__sysfile_load("%s/memory.stat", dir);
    if (stat) used = without_cache(used, stat, "inactive_file", "active_file");
    leat__free(stat);
    take_memory(cg, LEAT_MIN(max, high), used);

    if (leat__sysfile_u64(&swap_max, "%s/memory.swap.max", dir) && swap_max != LEAT_UNLIMITED) {
        leat__sysfile_u64(&swap, "%s/memory.swap.current", dir);
        cg->swap_left = LEAT_MIN(cg->swap_left, minus(swap_max, swap));
    }
}

static void memory_v1(leat__cgroup *cg, const char *dir)
{
    uint64_t limit = LEAT_UNLIMITED, used = 0, above;
    leat__sysfile_u64(&limit, "%s/memory.limit_in_bytes", dir);
    leat__sysfile_u64(&used, "%s/memory.usage_in_bytes", dir);
    char *stat = leat__sysfile_load("%s/memory.stat", dir);
    if (stat) {
        used = without_cache(used, stat, "total_inactive_file", "total_active_file");
        /* Includes groups above the mount, which we cannot see. */
        if (leat__text_key_u64(stat, "hierarchical_memory_limit", &above)) {
            limit = LEAT_MIN(limit, above);
        }
    }
    leat__free(stat);
    take_memory(cg, limit >= V1_UNLIMITED ? LEAT_UNLIMITED : limit, used);
}

/* ---- CPU sets -------------------------------------------------------------------------- */

static void take_cpuset(leat__cgroup *cg, const char *dir, const char *file)
{
    char text[4096];
    leat__cpuset set;
    if (!leat__sysfile_read(text, sizeof text, "%s/%s", dir, file)) return;
    if (!leat__cpuset_parse(&set, text)) return;
    if (cg->has_cpuset) {
        leat__cpuset_and(&cg->cpuset, &set);
    } else {
        cg->cpuset = set;
        cg->has_cpuset = true;
    }
}

static void cpuset_v1(leat__cgroup *cg, const char *dir)
{
    take_cpuset(cg, dir, "cpuset.effective_cpus");
}

static void all_v2(leat__cgroup *cg, const char *dir)
{
    cpu_v2(cg, dir);
    memory_v2(cg, dir);
    take_cpuset(cg, dir, "cpuset.cpus.effective");
}

/* ---- finding the groups ---------------------------------------------------------------- */

/* Finds the path of our group in one hierarchy; `controller` is NULL for version 2. Lines look like
 * "4:cpu,cpuacct:/user.slice" and, for version 2, "0::/user.slice". */
static bool own_path(const char *cgroups, const char *controller, char out[PATH_MAX])
{
    for (const char *line = cgroups; *line; line += strcspn(line, "\n")) {
        if (*line == '\n') line++;
        size_t len = strcspn(line, "\n");
        const char *list = memchr(line, ':', len);
        const char *path = list ? memchr(list + 1, ':', len - (size_t)(list + 1 - line)) : NULL;
        if (!path) continue;
        size_t list_len = (size_t)(path - list - 1);
        bool match = controller ? leat__mount_option(list + 1, list_len, controller) : list_len == 0;
        size_t path_len = len - (size_t)(path + 1 - line);
        if (!match || path[1] != '/' || path_len >= PATH_MAX) continue;
        memcpy(out, path + 1, path_len);
        out[path_len] = '\0';
        return true;
    }
    return false;
}

static bool is_dir(const char *dir)
{
    char path[PATH_MAX];
    return leat__sysfile_path(path, "%s/.", dir) && access(path, F_OK) == 0;
}

/* Builds our group's folder in the file system: the mount point, plus our path without the root of the mount.
 * When the path is not below that root (outside the namespace, or a group that is not visible), the mount
 * point is the best guess. */
static void locate(const leat__mount *m, const char *path, char out[PATH_MAX])
{
    size_t top = strcmp(m->root, "/") == 0 ? 0 : strlen(m->root);
    const char *rest = "";
    if (strncmp(path, m->root, top) == 0 && (path[top] == '/' || path[top] == '\0')) {
        rest = path + top;
    }
    size_t point_len = strlen(m->point), rest_len = strlen(rest);
    while (rest_len > 0 && rest[rest_len - 1] == '/') rest_len--;
    memcpy(out, m->point, point_len + 1);
    if (rest_len == 0 || strstr(rest, "/..") || point_len + rest_len >= PATH_MAX) return;
    memcpy(out + point_len, rest, rest_len);
    out[point_len + rest_len] = '\0';
    if (!is_dir(out)) out[point_len] = '\0';
}

static void walk_up(leat__cgroup *cg, const char *point, const char *own, visit fn)
{
    char dir[PATH_MAX];
    size_t stop = strlen(point), len = strlen(own);
    memcpy(dir, own, len + 1);
    for (;;) {
        fn(cg, dir);
        if (len <= stop) return;
        while (len > stop && dir[len - 1] != '/') len--;
        if (len > stop) len--; /* the slash itself */
        dir[len] = '\0';
    }
}

/* Handles one hierarchy: finds its mount point and our group in it, then visits all groups from
 * there up. */
static bool visit_hierarchy(leat__cgroup *cg, const char *mounts, const char *cgroups, const char *controller,
                            visit fn)
{
    leat__mount m;
    char path[PATH_MAX], dir[PATH_MAX];
    const char *type = controller ? "cgroup" : "cgroup2";
    if (!own_path(cgroups, controller, path)) return false;
    if (!leat__mount_find(mounts, type, controller, &m)) return false;
    locate(&m, path, dir);
    walk_up(cg, m.point, dir, fn);
    if (!controller) memcpy(cg->unified, dir, sizeof dir);
    return true;
}

void leat__cgroup_read(leat__cgroup *cg)
{
    memset(cg, 0, sizeof *cg);
    cg->memory_limit = cg->memory_left = cg->swap_left = LEAT_UNLIMITED;
    char *cgroups = leat__sysfile_load("/proc/self/cgroup");
    char *mounts = leat__sysfile_load("/proc/self/mountinfo");
    if (cgroups && mounts) {
        bool v1 = visit_hierarchy(cg, mounts, cgroups, "cpu", cpu_v1);
        v1 = visit_hierarchy(cg, mounts, cgroups, "memory", memory_v1) || v1;
        v1 = visit_hierarchy(cg, mounts, cgroups, "cpuset", cpuset_v1) || v1;
        bool v2 = visit_hierarchy(cg, mounts, cgroups, NULL, all_v2);
        cg->version = (v1 ? 1u : 0u) | (v2 ? 2u : 0u);
    }
    leat__free(cgroups);
    leat__free(mounts);
}
