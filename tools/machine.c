/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat machine`: shows the resources that this process may use, as leat sees them.
 */
#include <stdio.h>

#include <leat/machine.h>

#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "cli.h"
#include "dsp/kernel.h"
#include "probe/cpu.h"
#include "probe/machine.h"

#define OUTPUT_MAX ((size_t)1 << 20)
#define TEXT 24

/* ---- Text ---- */

static const char *bytes_text(uint64_t bytes, char *out)
{
    return bytes == LEAT_UNLIMITED ? "unlimited" : leat__format_bytes(bytes, out, TEXT);
}

static void show_cpu(cli *c, const leat_machine *m)
{
    char a[TEXT], b[TEXT], d[TEXT];
    cli_heading(c, "CPU");
    cli_row(c, "model", "%s", m->cpu_model[0] ? m->cpu_model : "unknown");
    if (m->cpu_quota > 0)
        cli_row(c, "usable", "%u (host %u, affinity %u, quota %.2f)", m->cpus_usable, m->cpus_host,
                m->cpus_affinity, m->cpu_quota);
    else
        cli_row(c, "usable", "%u (host %u, affinity %u, no quota)", m->cpus_usable, m->cpus_host,
                m->cpus_affinity);
    if (m->periods > 0)
        cli_row(c, "throttled", "%.1f%% of periods, %s in all",
                100.0 * (double)m->throttled_periods / (double)m->periods,
                leat__format_seconds((double)m->throttled_us / 1e6, a, TEXT));
    cli_row(c, "instructions", "%s (the CPU has %s)", m->isa, m->isa_host);
    cli_row(c, "caches", "L1d %s, L2 %s, L3 %s", leat__format_bytes(m->cache_l1d_bytes, a, TEXT),
            leat__format_bytes(m->cache_l2_bytes, b, TEXT), leat__format_bytes(m->cache_l3_bytes, d, TEXT));
    cli_row(c, "NUMA nodes", "%u", m->numa_nodes);
    for (uint32_t i = 0; i < m->node_count && m->numa_nodes > 1; i++) {
        snprintf(d, TEXT, "node %u", m->nodes[i].id);
        cli_row(c, d, "%u CPU%s, %s%s", m->nodes[i].cpus, cli_s(m->nodes[i].cpus),
                leat__format_bytes(m->nodes[i].memory_bytes, a, TEXT),
                m->nodes[i].memory_allowed ? "" : ", not allowed");
    }
}

static void show_memory(cli *c, const leat_machine *m)
{
    char a[TEXT], b[TEXT];
    const char *from = m->memory_limit_bytes == m->memory_cgroup_bytes   ? "cgroup"
                       : m->memory_limit_bytes == m->memory_rlimit_bytes ? "ulimit -v"
                                                                         : "host";
    cli_heading(c, "Memory");
    cli_row(c, "limit", "%s (%s)", bytes_text(m->memory_limit_bytes, a), from);
    cli_row(c, "used", "%s (file cache not counted)", bytes_text(m->memory_used_bytes, a));
    cli_row(c, "available", "%s", bytes_text(m->memory_available_bytes, a));
    cli_row(c, "host", "%s", bytes_text(m->memory_host_bytes, a));
    cli_row(c, "swap free", "%s", bytes_text(m->swap_free_bytes, a));
    cli_row(c, "/dev/shm", "%s free of %s", bytes_text(m->shm_free_bytes, a),
            bytes_text(m->shm_total_bytes, b));
}

static void pressure_row(cli *c, const char *name, double value)
{
    if (value < 0) cli_row(c, name, "not measured by this kernel");
    else cli_row(c, name, "%.1f%% of the last 10 s", value);
}

static void show_system(cli *c, const leat_machine *m)
{
    static const char *const groups[] = {"none", "version 1", "version 2", "both versions"};
    char a[TEXT];
    cli_heading(c, "System");
    cli_row(c, "kernel", "%s", m->kernel);
    cli_row(c, "page", "%s", leat__format_bytes(m->page_bytes, a, TEXT));
    cli_row(c, "io_uring", "%s", m->io_uring ? "yes" : "no");
    cli_row(c, "cgroups", "%s", groups[LEAT_MIN(m->cgroup_version, 3u)]);
    pressure_row(c, "stalled on CPU", m->pressure_cpu);
    pressure_row(c, "stalled on memory", m->pressure_memory);
    pressure_row(c, "stalled on I/O", m->pressure_io);
}

static void show_gpus(cli *c, const leat_machine *m)
{
    cli_heading(c, "GPU");
    if (m->gpu_count == 0) cli_row(c, "none", "%s", m->nvml_status);
    for (uint32_t i = 0; i < m->gpu_count; i++) {
        const leat_gpu *gpu = &m->gpus[i];
        char name[TEXT], a[TEXT], b[TEXT];
        snprintf(name, sizeof name, "%u", i);
        cli_row(c, name, "%s, %s (%s used), %u%% busy, PCIe %u x%u", gpu->name,
                leat__format_bytes(gpu->memory_bytes, a, TEXT),
                leat__format_bytes(gpu->memory_used_bytes, b, TEXT), gpu->utilization_percent,
                gpu->pcie_generation, gpu->pcie_width);
    }
}

static void show_kernels(cli *c)
{
    const char *family, *isa;
    cli_heading(c, "Kernels");
    for (size_t i = 0; leat__kernel_report(i, leat__cpu_flags(), &family, &isa); i++)
        cli_row(c, family, "%s", isa);
}

static void show_disk(cli *c, const char *path, const leat_disk *d)
{
    char a[TEXT], b[TEXT];
    cli_row(c, path, "%s%s%s, %s%s free of %s", d->filesystem, d->device[0] ? " on " : "", d->device,
            d->network == 1      ? "network, "
            : d->rotational == 1 ? "spinning, "
            : d->rotational == 0 ? "solid state, "
                                 : "",
            bytes_text(d->free_bytes, a), bytes_text(d->total_bytes, b));
}

/* ---- JSON ---- */

/* Writes a flag; -1 (unknown) becomes null. */
static void put_known(leat__json *j, const char *key, int32_t yes)
{
    leat__json_key(j, key);
    if (yes < 0) leat__json_null(j);
    else leat__json_bool(j, yes != 0);
}

static void put_disk(leat__json *j, const char *path, const leat_disk *d)
{
    leat__json_object(j);
    leat__json_kstr(j, "path", path);
    leat__json_kstr(j, "device", d->device[0] ? d->device : NULL);
    leat__json_kstr(j, "filesystem", d->filesystem);
    put_known(j, "rotational", d->rotational);
    put_known(j, "network", d->network);
    leat__json_ku64(j, "total_bytes", d->total_bytes);
    leat__json_ku64(j, "free_bytes", d->free_bytes);
    leat__json_ku64(j, "block_bytes", d->block_bytes);
    leat__json_ku64(j, "read_ahead_bytes", d->read_ahead_bytes);
    leat__json_end(j);
}

static int show_json(cli *c, const leat_machine *m, const leat_disk *disks)
{
    leat__buf buf;
    leat__json j;
    leat__buf_init(&buf, LEAT__MEM_MISC, OUTPUT_MAX);
    leat__json_init(&j, &buf, 0);
    leat__json_object(&j);
    leat__machine_json_fields(m, &j);
    leat__json_key(&j, "kernels");
    leat__json_object(&j);
    const char *family, *isa;
    for (size_t i = 0; leat__kernel_report(i, leat__cpu_flags(), &family, &isa); i++)
        leat__json_kstr(&j, family, isa);
    leat__json_end(&j);
    leat__json_key(&j, "disks");
    leat__json_array(&j);
    for (size_t i = 0; i < cli_arg_count(c); i++) put_disk(&j, cli_arg(c, i), &disks[i]);
    leat__json_end(&j);
    leat__json_end(&j);
    return cli_json(c, &buf);
}

static int show(cli *c, const leat_machine *m, const leat_disk *disks)
{
    if (c->json) return show_json(c, m, disks);
    show_cpu(c, m);
    show_memory(c, m);
    show_gpus(c, m);
    show_kernels(c);
    show_system(c, m);
    if (cli_arg_count(c) > 0) cli_heading(c, "Storage");
    for (size_t i = 0; i < cli_arg_count(c); i++) show_disk(c, cli_arg(c, i), &disks[i]);
    return CLI_OK;
}

/* Everything is read before anything is printed, so that no partial page precedes an error. */
static int run(cli *c)
{
    leat_machine m;
    leat_error err = {0};
    int rc = leat_machine_read(&m, sizeof m, &err);
    leat_disk *disks = LEAT_NEW_ARRAY(MISC, leat_disk, cli_arg_count(c));
    if (rc == 0 && !disks) rc = leat__fail_nomem(&err, sizeof *disks, "disks");
    for (size_t i = 0; rc == 0 && i < cli_arg_count(c); i++)
        rc = leat_disk_read(&disks[i], cli_arg(c, i), &err);
    const int exit_code = rc == 0 ? show(c, &m, disks) : cli_fail(c, &err);
    leat__free(disks);
    return exit_code;
}

const cli_command cli_cmd_machine = {
    .name = "machine",
    .summary = "show what this process may use",
    .examples = (const cli_example[]){{"leat machine", "CPUs, memory, GPUs and kernel facts"},
                                      {"leat machine /data", "and the storage behind a path"},
                                      {"leat machine --json | jq .cpus_usable", "one fact for a script"},
                                      {NULL, NULL}},
    .description = "The facts that plan, loader and doctor work with. They hold inside containers: usable "
                   "CPUs are the smaller of the affinity mask and the cgroup quota of all ancestors, "
                   "rounded up; the memory limit is the smallest of cgroups, ulimit and host, and file "
                   "cache does not count as used.\n\nMissing parts (no cgroup, no GPU driver) "
                   "are reported; they are not errors.",
    .args = (const cli_arg_spec[]){{.name = "PATH",
                                    .help = "also show the storage of this path",
                                    .path = true,
                                    .optional = true,
                                    .many = true},
                                   {.name = NULL}},
    .json =
        (const cli_key[]){
            {"cpus_usable", "CPUs that work can run on, at least 1"},
            {"cpus_host", "CPUs online on the host"},
            {"cpus_affinity", "CPUs in the mask of this process"},
            {"cpu_quota", "smallest cgroup quota in CPUs, null without one"},
            {"cgroup_version", "0 none, 1, 2, or 3 for both"},
            {"memory_limit_bytes", "smallest of the three below"},
            {"memory_host_bytes", "of the whole machine"},
            {"memory_cgroup_bytes", "smallest cgroup limit, null without one"},
            {"memory_rlimit_bytes", "ulimit -v, null without one"},
            {"memory_used_bytes", "by the group that sets the limit, without file cache"},
            {"memory_available_bytes", "memory that can still be allocated"},
            {"swap_free_bytes", "free swap"},
            {"shm_total_bytes", "size of /dev/shm"},
            {"shm_free_bytes", "free in /dev/shm"},
            {"periods", "quota periods so far; 0 without a quota"},
            {"throttled_periods", "periods in which the quota ran out"},
            {"throttled_us", "time stopped by the quota, in microseconds"},
            {"pressure_cpu", "percent of the last 10 s in which a task waited; null unknown"},
            {"pressure_memory", "the same for memory"},
            {"pressure_io", "the same for I/O"},
            {"numa_nodes", "number of NUMA nodes"},
            {"cache_l1d_bytes", "data cache, level 1"},
            {"cache_l2_bytes", "cache, level 2"},
            {"cache_l3_bytes", "cache, level 3"},
            {"cache_line_bytes", "cache line"},
            {"page_bytes", "memory page"},
            {"cpu_model", "name and family reported by the CPU"},
            {"isa", "newest instructions that kernels use: avx512icl, avx512, avx2, scalar"},
            {"isa_host", "newest that the CPU has; LEAT_CPU_MASK makes the difference"},
            {"kernel", "release of the operating system"},
            {"io_uring", "true when io_uring works"},
            {"nvml_status", "ok, or why the GPUs could not be queried"},
            {"gpus[]", "name, uuid, memory_bytes, memory_used_bytes, utilization_percent, "
                       "memory_utilization_percent, compute_capability, pcie_generation, "
                       "pcie_width"},
            {"nodes[]", "NUMA nodes with CPUs this process may use: node, cpus, memory_bytes, "
                        "memory_allowed"},
            {"kernels", "for each family of pixel kernels the instructions it uses here"},
            {"disks[]", "for each PATH: path, device, filesystem, rotational, network, "
                        "total_bytes, free_bytes, block_bytes, read_ahead_bytes"},
            {NULL, NULL},
        },
    .run = run,
};
