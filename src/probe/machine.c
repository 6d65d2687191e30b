/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects the machine's facts. Of the limits of host, control groups and rlimits, the smallest counts. Facts
 * only, no policy. No state, any thread.
 */
#include "probe/machine.h"

#include <linux/io_uring.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "probe/cgroup.h"
#include "probe/cpu.h"
#include "probe/numa.h"
#include "probe/nvml.h"
#include "probe/sysfile.h"

/* ---- CPUs ------------------------------------------------------------------------------ */

static bool online_cpus(leat__cpuset *set)
{
    char text[4096];
    return leat__sysfile_read(text, sizeof text, "/sys/devices/system/cpu/online") &&
           leat__cpuset_parse(set, text);
}

static void read_cpus(leat_machine *m, const leat__cgroup *cg)
{
    leat__cpuset online, set;
    bool know_online = online_cpus(&online);
    long host = know_online ? (long)leat__cpuset_count(&online) : sysconf(_SC_NPROCESSORS_ONLN);
    m->cpus_host = host > 0 ? (uint32_t)host : 1;
    m->cpus_affinity = m->cpus_host;
    if (leat__cpus_usable(&set, cg)) m->cpus_affinity = LEAT_MAX(leat__cpuset_count(&set), 1u);
    m->cpu_quota = cg->cpu_quota;
    m->cpus_usable = m->cpus_affinity;
    if (cg->cpu_quota > 0 && ceil(cg->cpu_quota) < m->cpus_usable) {
        m->cpus_usable = LEAT_MAX((uint32_t)ceil(cg->cpu_quota), 1u);
    }
    m->periods = cg->periods;
    m->throttled_periods = cg->throttled_periods;
    m->throttled_us = cg->throttled_us;
}

static void read_caches(leat_machine *m)
{
    static const char dir[] = "/sys/devices/system/cpu/cpu0/cache";
    for (unsigned i = 0; i < 16; i++) {
        char type[32], size[32];
        uint64_t level, bytes, line;
        if (!leat__sysfile_u64(&level, "%s/index%u/level", dir, i)) break;
        if (!leat__sysfile_read(type, sizeof type, "%s/index%u/type", dir, i)) continue;
        if (!leat__sysfile_read(size, sizeof size, "%s/index%u/size", dir, i)) continue;
        size[strcspn(size, "\n")] = '\0';
        if (!leat__str_to_bytes(size, &bytes) || bytes > UINT32_MAX) continue; /* "512K" */
        if (leat__str_starts(type, "Instruction")) continue;
        if (level == 1) m->cache_l1d_bytes = (uint32_t)bytes;
        if (level == 2) m->cache_l2_bytes = (uint32_t)bytes;
        if (level == 3) m->cache_l3_bytes = (uint32_t)bytes;
        if (leat__sysfile_u64(&line, "%s/index%u/coherency_line_size", dir, i) && line <= 4096) {
            m->cache_line_bytes = (uint32_t)line;
        }
    }
    if (m->cache_line_bytes == 0) m->cache_line_bytes = 64;
}

static void read_numa(leat_machine *m, const leat__cgroup *cg)
{
    leat__numa *numa = leat__numa_read(cg);
    m->numa_nodes = numa ? numa->online : 1;
    for (uint32_t i = 0; numa && i < numa->count && i < LEAT_MACHINE_NODES_MAX; i++) {
        const leat__numa_node *node = &numa->nodes[i];
        m->nodes[m->node_count++] = (leat_node){.id = node->id,
                                                .cpus = leat__cpuset_count(&node->cpus),
                                                .memory_bytes = node->memory_bytes,
                                                .memory_allowed = node->memory_allowed};
    }
    leat__free(numa);
}

/* ---- memory ---------------------------------------------------------------------------- */

typedef struct host_memory {
    uint64_t total, available, swap_free;
} host_memory;

static uint64_t meminfo_bytes(const char *text, const char *key, uint64_t otherwise)
{
    uint64_t kb, bytes;
    return leat__text_key_u64(text, key, &kb) && leat__mul_u64(kb, 1024, &bytes) ? bytes : otherwise;
}

static host_memory read_meminfo(uint64_t page)
{
    char text[8192];
    host_memory host;
    long pages = sysconf(_SC_PHYS_PAGES);
    leat__sysfile_read(text, sizeof text, "/proc/meminfo");
    host.total = meminfo_bytes(text, "MemTotal", pages > 0 ? (uint64_t)pages * page : 0);
    host.available = meminfo_bytes(text, "MemAvailable", host.total);
    host.available = LEAT_MIN(host.available, host.total);
    host.swap_free = meminfo_bytes(text, "SwapFree", 0);
    return host;
}

bool leat__machine_reports_free(void)
{
    uint64_t order; /* -1: free page reporting is off */
    return leat__sysfile_u64(&order, "/sys/module/page_reporting/parameters/page_reporting_order");
}

/* Returns the address space in use, which RLIMIT_AS limits. */
static uint64_t address_space(uint64_t page)
{
    char text[128];
    uint64_t pages, bytes;
    if (!leat__sysfile_read(text, sizeof text, "/proc/self/statm")) return 0;
    return leat__text_u64(text, &pages) && leat__mul_u64(pages, page, &bytes) ? bytes : 0;
}

static uint64_t own_status(const char *key)
{
    char text[4096]; /* the lines about memory are in the first 1,500 bytes */
    uint64_t kib;
    if (!leat__sysfile_read(text, sizeof text, "/proc/self/status")) return 0;
    return leat__text_key_u64(text, key, &kib) ? kib * 1024 : 0;
}

uint64_t leat__process_peak_rss(void)
{
    return own_status("VmHWM");
}

uint64_t leat__process_data_rss(void)
{
    return own_status("RssAnon");
}

/* True for the first line of a mapping of a file, "55d0-55e0 r-xp 0 fe:00 123  /usr/bin/leat", other than a
 * library of the GPU driver. */
static bool counts_as_code(const char *line, size_t len)
{
    char path[PATH_MAX];
    const char *name = memchr(line, '/', len);
    if (name == NULL) return false;
    (void)snprintf(path, sizeof path, "%.*s", (int)LEAT_MIN(len - (size_t)(name - line), sizeof path - 1),
                   name);
    return strstr(path, "/libnvidia-") == NULL && strstr(path, "/libcuda.") == NULL;
}

uint64_t leat__process_code_rss(void)
{
    char *text = leat__sysfile_load("/proc/self/smaps");
    uint64_t bytes = 0, kib;
    bool code = false;
    if (text == NULL) return own_status("RssFile");
    for (const char *line = text; *line != '\0';) {
        const size_t len = strcspn(line, "\n");
        /* keys begin with a capital letter, mappings with a hexadecimal address */
        if (*line < 'A' || *line > 'Z') code = counts_as_code(line, len);
        else if (code && strncmp(line, "Rss:", 4) == 0 && leat__text_key_u64(line, "Rss", &kib))
            bytes += kib * 1024;
        line += len + (line[len] == '\n');
    }
    leat__free(text);
    return bytes;
}

static void read_memory(leat_machine *m, const leat__cgroup *cg)
{
    host_memory host = read_meminfo(m->page_bytes);
    uint64_t mapped = address_space(m->page_bytes);
    struct rlimit as;
    bool limited = getrlimit(RLIMIT_AS, &as) == 0 && as.rlim_cur != RLIM_INFINITY;

    m->memory_host_bytes = host.total;
    m->memory_cgroup_bytes = cg->memory_limit;
    m->memory_rlimit_bytes = limited ? (uint64_t)as.rlim_cur : LEAT_UNLIMITED;
    m->memory_limit_bytes = host.total;
    m->memory_used_bytes = host.total - host.available;
    m->memory_available_bytes = LEAT_MIN(host.available, cg->memory_left);
    if (cg->memory_limit < m->memory_limit_bytes) {
        m->memory_limit_bytes = cg->memory_limit;
        m->memory_used_bytes = cg->memory_used;
    }
    if (limited) {
        uint64_t left = m->memory_rlimit_bytes > mapped ? m->memory_rlimit_bytes - mapped : 0;
        m->memory_available_bytes = LEAT_MIN(m->memory_available_bytes, left);
        if (m->memory_rlimit_bytes < m->memory_limit_bytes) {
            m->memory_limit_bytes = m->memory_rlimit_bytes;
            m->memory_used_bytes = mapped;
        }
    }
    m->swap_free_bytes = LEAT_MIN(host.swap_free, cg->swap_left);
}

static void read_shm(leat_machine *m)
{
    char path[PATH_MAX];
    struct statvfs fs;
    if (!leat__sysfile_path(path, "/dev/shm") || statvfs(path, &fs) != 0) return;
    if (!leat__mul_u64(fs.f_blocks, fs.f_frsize, &m->shm_total_bytes) ||
        !leat__mul_u64(fs.f_bavail, fs.f_frsize, &m->shm_free_bytes)) {
        m->shm_total_bytes = m->shm_free_bytes = 0;
    }
}

/* ---- the rest -------------------------------------------------------------------------- */

/* Returns the share of the last ten seconds in which some thread of our group waited ("some avg10=1.53
 * avg60=…"). Uses the host's value when the group has none. */
static double pressure(const leat__cgroup *cg, const char *what)
{
    static const char key[] = "some avg10=";
    char text[256];
    bool ok = cg->unified[0] && leat__sysfile_read(text, sizeof text, "%s/%s.pressure", cg->unified, what);
    ok = ok || leat__sysfile_read(text, sizeof text, "/proc/pressure/%s", what);
    if (!ok || !leat__str_starts(text, key)) return -1;
    char *number = text + strlen(key);
    double value;
    number[strcspn(number, " \n")] = '\0';
    return leat__str_to_double(number, &value) && value >= 0 && value <= 100 ? value : -1;
}

/* Tries to create a ring: containers and hardened kernels refuse io_uring, and only a try shows it. */
static uint32_t can_make_ring(void)
{
    struct io_uring_params params;
    memset(&params, 0, sizeof params);
    long fd = syscall(SYS_io_uring_setup, 1, &params);
    if (fd < 0) return 0;
    close((int)fd);
    return 1;
}

static void read_names(leat_machine *m)
{
    struct utsname un;
    const uint32_t family = leat__cpu_family(); /* virtual machines often hide the rest of the name */
    if (family > 0) snprintf(m->cpu_model, sizeof m->cpu_model, "%s, family %u", leat__cpu_model(), family);
    else snprintf(m->cpu_model, sizeof m->cpu_model, "%s", leat__cpu_model());
    snprintf(m->isa, sizeof m->isa, "%s", leat__cpu_level(leat__cpu_flags()));
    snprintf(m->isa_host, sizeof m->isa_host, "%s", leat__cpu_level(leat__cpu_detected()));
    if (uname(&un) == 0) snprintf(m->kernel, sizeof m->kernel, "%.63s", un.release);
}

void leat__machine_host(leat_machine *m)
{
    leat__cgroup cg;
    long page = sysconf(_SC_PAGESIZE);
    *m = (leat_machine){.struct_size = sizeof *m, .page_bytes = page > 0 ? (uint32_t)page : 4096};
    leat__cgroup_read(&cg);
    m->cgroup_version = cg.version;
    read_cpus(m, &cg);
    read_caches(m);
    read_numa(m, &cg);
    read_memory(m, &cg);
    read_shm(m);
    m->pressure_cpu = pressure(&cg, "cpu");
    m->pressure_memory = pressure(&cg, "memory");
    m->pressure_io = pressure(&cg, "io");
    m->io_uring = can_make_ring();
    read_names(m);
}

int leat_machine_read(leat_machine *machine, uint32_t struct_size, leat_error *err)
{
    LEAT_REQUIRE(machine != NULL, err);
    if (!machine || struct_size < sizeof machine->struct_size) {
        return leat__fail(err, LEAT_EINVAL, "machine is NULL or struct_size is too small");
    }
    leat_machine m;
    leat__machine_host(&m);
    m.gpu_count = leat__nvml_read(m.gpus, LEAT_MACHINE_GPUS_MAX, m.nvml_status, sizeof m.nvml_status, NULL);

    /* A caller of another version gets the fields it knows; the rest is zero. */
    m.struct_size = LEAT_MIN(struct_size, (uint32_t)sizeof m);
    memset(machine, 0, struct_size);
    memcpy(machine, &m, m.struct_size);
    return 0;
}

/* ---- JSON ------------------------------------------------------------------------------ */

static void put_bytes(leat__json *j, const char *key, uint64_t bytes)
{
    leat__json_key(j, key);
    if (bytes == LEAT_UNLIMITED) {
        leat__json_null(j);
    } else {
        leat__json_u64(j, bytes);
    }
}

/* Writes null for values below `least`, which mean "unknown" or "none". */
static void put_double(leat__json *j, const char *key, double value, double least)
{
    leat__json_key(j, key);
    if (value < least) {
        leat__json_null(j);
    } else {
        leat__json_double(j, value);
    }
}

static void put_gpu(leat__json *j, const leat_gpu *gpu)
{
    char capability[24];
    snprintf(capability, sizeof capability, "%u.%u", gpu->compute_major, gpu->compute_minor);
    leat__json_object(j);
    leat__json_kstr(j, "name", gpu->name);
    leat__json_kstr(j, "uuid", gpu->uuid);
    leat__json_ku64(j, "memory_bytes", gpu->memory_bytes);
    leat__json_ku64(j, "memory_used_bytes", gpu->memory_used_bytes);
    leat__json_ku64(j, "utilization_percent", gpu->utilization_percent);
    leat__json_ku64(j, "memory_utilization_percent", gpu->memory_utilization_percent);
    leat__json_kstr(j, "compute_capability", gpu->compute_major ? capability : NULL);
    leat__json_ku64(j, "pcie_generation", gpu->pcie_generation);
    leat__json_ku64(j, "pcie_width", gpu->pcie_width);
    leat__json_end(j);
}

static void put_node(leat__json *j, const leat_node *node)
{
    leat__json_object(j);
    leat__json_ku64(j, "node", node->id);
    leat__json_ku64(j, "cpus", node->cpus);
    leat__json_ku64(j, "memory_bytes", node->memory_bytes);
    leat__json_kbool(j, "memory_allowed", node->memory_allowed != 0);
    leat__json_end(j);
}

void leat__machine_json_fields(const leat_machine *m, leat__json *j)
{
    leat__json_ku64(j, "cpus_host", m->cpus_host);
    leat__json_ku64(j, "cpus_affinity", m->cpus_affinity);
    put_double(j, "cpu_quota", m->cpu_quota > 0 ? m->cpu_quota : -1, 0);
    leat__json_ku64(j, "cpus_usable", m->cpus_usable);
    leat__json_ku64(j, "cgroup_version", m->cgroup_version);
    put_bytes(j, "memory_host_bytes", m->memory_host_bytes);
    put_bytes(j, "memory_cgroup_bytes", m->memory_cgroup_bytes);
    put_bytes(j, "memory_rlimit_bytes", m->memory_rlimit_bytes);
    put_bytes(j, "memory_limit_bytes", m->memory_limit_bytes);
    put_bytes(j, "memory_used_bytes", m->memory_used_bytes);
    put_bytes(j, "memory_available_bytes", m->memory_available_bytes);
    put_bytes(j, "swap_free_bytes", m->swap_free_bytes);
    put_bytes(j, "shm_total_bytes", m->shm_total_bytes);
    put_bytes(j, "shm_free_bytes", m->shm_free_bytes);
    leat__json_ku64(j, "periods", m->periods);
    leat__json_ku64(j, "throttled_periods", m->throttled_periods);
    leat__json_ku64(j, "throttled_us", m->throttled_us);
    put_double(j, "pressure_cpu", m->pressure_cpu, 0);
    put_double(j, "pressure_memory", m->pressure_memory, 0);
    put_double(j, "pressure_io", m->pressure_io, 0);
    leat__json_ku64(j, "numa_nodes", m->numa_nodes);
    leat__json_ku64(j, "cache_l1d_bytes", m->cache_l1d_bytes);
    leat__json_ku64(j, "cache_l2_bytes", m->cache_l2_bytes);
    leat__json_ku64(j, "cache_l3_bytes", m->cache_l3_bytes);
    leat__json_ku64(j, "cache_line_bytes", m->cache_line_bytes);
    leat__json_ku64(j, "page_bytes", m->page_bytes);
    leat__json_kstr(j, "cpu_model", m->cpu_model);
    leat__json_kstr(j, "isa", m->isa);
    leat__json_kstr(j, "isa_host", m->isa_host);
    leat__json_kstr(j, "kernel", m->kernel);
    leat__json_kbool(j, "io_uring", m->io_uring != 0);
    leat__json_kstr(j, "nvml_status", m->nvml_status);
    leat__json_key(j, "gpus");
    leat__json_array(j);
    for (uint32_t i = 0; i < m->gpu_count; i++) put_gpu(j, &m->gpus[i]);
    leat__json_end(j);
    leat__json_key(j, "nodes");
    leat__json_array(j);
    for (uint32_t i = 0; i < m->node_count; i++) put_node(j, &m->nodes[i]);
    leat__json_end(j);
}
