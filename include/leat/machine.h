/* SPDX-License-Identifier: Apache-2.0
 *
 * The resources this process may use, also inside containers, where the host's figures are too high.
 */
#ifndef LEAT_MACHINE_H
#define LEAT_MACHINE_H

#include <stdint.h>

#include <leat/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LEAT_MACHINE_GPUS_MAX 32
#define LEAT_MACHINE_NODES_MAX 64
#define LEAT_UNLIMITED UINT64_MAX

typedef struct leat_gpu {
    char name[96];
    char uuid[64];
    uint64_t memory_bytes, memory_used_bytes;
    uint32_t utilization_percent, memory_utilization_percent;
    uint32_t compute_major, compute_minor; /* 0 when unknown */
    uint32_t pcie_generation, pcie_width;
} leat_gpu;

/* A NUMA node with CPUs that this process may use. */
typedef struct leat_node {
    uint32_t id;
    uint32_t cpus; /* CPUs of the node that this process may use */
    uint64_t memory_bytes;
    uint32_t memory_allowed; /* 1 = the process may allocate memory there */
} leat_node;

/* LEAT_UNLIMITED: there is no limit. Unknown values are 0, or -1 where the comment says so. */
typedef struct leat_machine {
    uint32_t struct_size;
    uint32_t cpus_host;      /* online on the host */
    uint32_t cpus_affinity;  /* in this process's affinity mask */
    double cpu_quota;        /* smallest cgroup quota over all ancestors, in CPUs; 0 = none */
    uint32_t cpus_usable;    /* min(affinity, quota rounded up), at least 1 */
    uint32_t cgroup_version; /* 0 none, 1, 2; 3 = both (hybrid) */
    uint64_t memory_host_bytes;
    uint64_t memory_cgroup_bytes;    /* smallest limit over all ancestors */
    uint64_t memory_rlimit_bytes;    /* RLIMIT_AS */
    uint64_t memory_limit_bytes;     /* the smallest of the three */
    uint64_t memory_used_bytes;      /* by the cgroup that sets the limit, without its page cache */
    uint64_t memory_available_bytes; /* what the process can still allocate */
    uint64_t swap_free_bytes;
    uint64_t shm_total_bytes, shm_free_bytes; /* /dev/shm, 0 when absent */
    uint64_t throttled_periods, periods;      /* cpu.stat; periods 0 = no quota */
    uint64_t throttled_us;
    double pressure_cpu, pressure_memory, pressure_io; /* PSI some avg10, -1 = unknown */
    uint32_t numa_nodes;
    uint32_t cache_l1d_bytes, cache_l2_bytes, cache_l3_bytes, cache_line_bytes;
    uint32_t page_bytes;
    char cpu_model[96]; /* brand and family, such as "AMD EPYC, family 26" */
    char isa[32];       /* level that leat's kernels use: "avx512icl", "avx512", "avx2", "scalar" */
    char isa_host[32];  /* highest level that the CPU supports */
    char kernel[64];
    uint32_t io_uring; /* 1 = io_uring works here */
    uint32_t gpu_count;
    char nvml_status[96]; /* "ok", or why NVML could not be used */
    leat_gpu gpus[LEAT_MACHINE_GPUS_MAX];
    uint32_t node_count; /* entries of `nodes`: those with usable CPUs; 0 = unknown */
    leat_node nodes[LEAT_MACHINE_NODES_MAX];
} leat_machine;

/* Reads the current values. Missing parts (no cgroup, no NVML) are not errors. */
LEAT_API int leat_machine_read(leat_machine *machine, uint32_t struct_size, leat_error *err) LEAT_MUST_CHECK;

/* The storage that holds an existing file or folder. */
typedef struct leat_disk {
    char device[64];     /* "nvme0n1", "" when not a block device */
    char filesystem[32]; /* "ext4", "nfs", "tmpfs" … */
    int32_t rotational;  /* 1 = hard disk, 0 = not, -1 = unknown */
    int32_t network;     /* 1 = on the network */
    uint64_t total_bytes, free_bytes;
    uint32_t block_bytes; /* alignment for direct reads */
    uint32_t read_ahead_bytes;
} leat_disk;
LEAT_API int leat_disk_read(leat_disk *disk, const char *path, leat_error *err) LEAT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
