/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads counters of the process and the machine: see kernel_counters.h.
 */
#include "doctor/kernel_counters.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <leat/machine.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "doctor/judge.h"
#include "probe/cgroup.h"
#include "probe/nvml.h"
#include "probe/sysfile.h"

/* Sums, over all threads, the time they were runnable but not running ("RUN WAIT SLICES" of each thread). */
static uint64_t threads_waited(void)
{
    uint64_t sum = 0;
    char path[PATH_MAX], text[128];
    if (!leat__sysfile_path(path, "/proc/self/task")) return 0;
    DIR *dir = opendir(path);
    if (dir == NULL) return 0;
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        uint64_t wait;
        if (e->d_name[0] == '.') continue;
        if (!leat__sysfile_read(text, sizeof text, "/proc/self/task/%s/schedstat", e->d_name)) continue;
        const char *second = strchr(text, ' ');
        if (second != NULL && leat__text_u64(second + 1, &wait)) sum += wait;
    }
    closedir(dir);
    return sum;
}

/* Returns the busy time from a line of /proc/stat: user nice system idle iowait irq softirq steal.
 * Idle time is not busy; stolen time is, because another guest of the host had the CPU. */
static uint64_t busy_ticks(const char *line)
{
    uint64_t field[8] = {0}, sum = 0;
    for (int i = 0; i < 8; i++) {
        char *end;
        field[i] = strtoull(line, &end, 10);
        if (end == line) break;
        line = end;
    }
    for (int i = 0; i < 8; i++)
        if (i != 3 && i != 4) sum += field[i];
    return sum;
}

static uint64_t host_busy_ns(void)
{
    cpu_set_t mask;
    char *text = leat__sysfile_load("/proc/stat");
    uint64_t ticks = 0, hz = (uint64_t)sysconf(_SC_CLK_TCK);
    bool all = sched_getaffinity(0, sizeof mask, &mask) != 0;
    if (text == NULL) return 0;
    for (char *line = strstr(text, "\ncpu"); line != NULL; line = strstr(line + 1, "\ncpu")) {
        char *end;
        unsigned long cpu = strtoul(line + 4, &end, 10);
        if (end == line + 4) continue;
        if (all || (cpu < CPU_SETSIZE && CPU_ISSET(cpu, &mask))) ticks += busy_ticks(end);
    }
    leat__free(text);
    return hz > 0 ? ticks * (LEAT_NS_PER_S / hz) : 0;
}

void leat__kernel_counters_read(leat__kernel_counters *s)
{
    struct rusage use;
    leat__cgroup group;

    s->wall_ns = leat__clock_ns();
    s->cpu_ns = leat__clock_process_ns();
    s->wait_ns = threads_waited();
    s->host_busy_ns = host_busy_ns();
    s->faults = getrusage(RUSAGE_SELF, &use) == 0 ? (uint64_t)use.ru_majflt : 0;
    leat__cgroup_read(&group);
    s->periods = group.periods;
    s->throttled = group.throttled_periods;
}

static double share(double part, double whole)
{
    return whole > 0 ? LEAT_MIN(1.0, LEAT_MAX(0.0, part / whole)) : -1;
}

static double pressure(double percent)
{
    return percent < 0 ? -1 : LEAT_MIN(1.0, percent / 100);
}

void leat__kernel_counters_facts(const leat__kernel_counters *from, const leat__kernel_counters *to,
                                 leat_doctor_facts *f)
{
    leat_machine m;
    double wall = (double)(to->wall_ns - from->wall_ns), cpu = (double)(to->cpu_ns - from->cpu_ns);

    if (wall <= 0) return;
    f->cpu_used = cpu / wall;
    f->faults = (double)(to->faults - from->faults) / (wall / 1e9);
    if (to->host_busy_ns > 0 && to->host_busy_ns >= from->host_busy_ns) {
        double others = ((double)(to->host_busy_ns - from->host_busy_ns) - cpu) / wall;
        f->others = LEAT_MAX(0.0, others);
    }
    if (to->wait_ns > 0) { /* times of ended threads disappear */
        double wait = to->wait_ns > from->wait_ns ? (double)(to->wait_ns - from->wait_ns) : 0;
        f->run_delay = share(wait, wait + cpu);
    }
    f->throttled = 0;
    if (to->periods > from->periods)
        f->throttled =
            share((double)(to->throttled - from->throttled), (double)(to->periods - from->periods));
    if (leat_machine_read(&m, sizeof m, NULL) != 0) return;
    f->cpus_host = m.cpus_host;
    f->quota = m.cpu_quota;
    f->cpus = m.cpu_quota > 0 ? LEAT_MIN(m.cpu_quota, (double)m.cpus_affinity) : m.cpus_affinity;
    f->pressure_cpu = pressure(m.pressure_cpu);
    f->pressure_memory = pressure(m.pressure_memory);
    f->pressure_io = pressure(m.pressure_io);
    if (m.memory_available_bytes != LEAT_UNLIMITED) f->memory_free = (double)m.memory_available_bytes;
    if (m.memory_host_bytes > 0 && m.memory_host_bytes != LEAT_UNLIMITED) {
        f->memory_host = (double)m.memory_host_bytes;
        f->memory_limit = m.memory_limit_bytes < m.memory_host_bytes ? (double)m.memory_limit_bytes : 0;
    }
    if (m.gpu_count > 0) {
        double busy = 0;
        for (uint32_t i = 0; i < m.gpu_count; i++) busy += m.gpus[i].utilization_percent / 100.0;
        f->gpu_busy = LEAT_MIN(1.0, busy / m.gpu_count);
        double in, out;
        if (leat__nvml_bus(0, &in, &out, NULL)) f->gpu_bus_in = in;
    }
}
