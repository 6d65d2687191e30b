/* SPDX-License-Identifier: Apache-2.0
 *
 * Flows: a sequence of stages, run by a pool of threads within a byte budget.
 *
 *     leat_flow *flow = NULL;
 *     leat_flow_opts opts;
 *     leat_flow_opts_init(&opts);
 *     opts.budget = budget;
 *     leat_flow_open(&flow, &opts, &err);
 *     leat_flow_add(flow, &source, &err);            the first stage: makes tasks
 *     leat_flow_add(flow, &decode, &err);            one task in, the same task out
 *     leat_flow_add(flow, &collate, &err);           many in, one out
 *     leat_flow_start(flow, &err);
 *     while ((rc = leat_flow_next(flow, &task, -1, &err)) == 0 && task) {
 *         use(task->data);
 *         leat_task_release(task);                   any thread, any time, any order
 *     }
 *     leat_flow_close(&flow);                        from any state, frees everything
 *
 * The results never depend on the number or the speed of threads: tasks are numbered where they
 * enter, groups are formed in that order, and results leave in it unless requested otherwise.
 * docs/internals/engine.md explains the scheduler and why it cannot deadlock.
 */
#ifndef LEAT_FLOW_H
#define LEAT_FLOW_H

#include <stdint.h>

#include <leat/error.h>
#include <leat/log.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct leat_budget leat_budget;
typedef struct leat_pool leat_pool;
typedef struct leat_flow leat_flow;
typedef struct leat_task leat_task;
typedef struct leat_tuner leat_tuner;

/* ---- Budget: a hard limit in bytes ------------------------------------------------------ */

typedef enum leat_budget_cat {
    LEAT_BUDGET_TASK,    /* data of tasks between stages; the default */
    LEAT_BUDGET_PAGE,    /* pages read from storage, and caches of them */
    LEAT_BUDGET_SCRATCH, /* working memory while a stage runs, and of its workers */
    LEAT_BUDGET_BATCH,   /* finished results, also while the user holds them */
    LEAT_BUDGET_OTHER,
    LEAT_BUDGET_CATS
} leat_budget_cat;

/* Opens a budget of `limit` bytes; 0 = half of the memory still available to this process. Any number of
 * flows can share it; each open flow keeps it alive. Any thread may call the budget functions. */
LEAT_API int leat_budget_open(leat_budget **budget, uint64_t limit, leat_error *err) LEAT_MUST_CHECK;
LEAT_API void leat_budget_close(leat_budget **budget);

/* Changes the limit while flows run. Raising takes effect at once. After lowering, nothing new is granted
 * until usage has drained below it. LEAT_EBUDGET, and no change, when the running flows need more than
 * `limit` to make progress. */
LEAT_API int leat_budget_set_limit(leat_budget *budget, uint64_t limit, leat_error *err) LEAT_MUST_CHECK;

/* Charge bytes for memory kept outside tasks, such as a page cache; return them with leat_budget_release.
 * leat_budget_try does not wait: it returns 0, LEAT_EAGAIN, or LEAT_EBUDGET when the bytes can never fit.
 * leat_budget_charge waits up to timeout_ms (-1 = no limit), then returns LEAT_ETIMEDOUT. Never call it
 * inside process(): it could wait indefinitely for bytes that the task itself holds. Releasing more than was
 * charged releases only what was charged. */
LEAT_API int leat_budget_try(leat_budget *budget, leat_budget_cat cat, uint64_t bytes) LEAT_MUST_CHECK;
LEAT_API int leat_budget_charge(leat_budget *budget, leat_budget_cat cat, uint64_t bytes, int64_t timeout_ms,
                                leat_error *err) LEAT_MUST_CHECK;
LEAT_API void leat_budget_release(leat_budget *budget, leat_budget_cat cat, uint64_t bytes);

typedef struct leat_budget_stats {
    uint64_t limit;
    uint64_t used, peak; /* bytes charged now, and their peak */
    uint64_t floors;     /* minimum that the running flows need together */
    uint64_t cat_used[LEAT_BUDGET_CATS];
    uint64_t cat_peak[LEAT_BUDGET_CATS];
    uint64_t refused; /* requests that had to wait */
} leat_budget_stats;
LEAT_API void leat_budget_read(const leat_budget *budget, leat_budget_stats *stats);

/* ---- Pool: the threads ----------------------------------------------------------------- */

/* Where a stage runs. There are as many CPU workers as usable CPUs; the other lanes have their
 * own threads, because their stages wait (I/O), hold a device (GPU) or a lock (Python). */
typedef enum leat_lane { LEAT_LANE_CPU, LEAT_LANE_IO, LEAT_LANE_GPU, LEAT_LANE_PYTHON, LEAT_LANES } leat_lane;

typedef struct leat_pool_opts {
    uint32_t struct_size;
    uint32_t threads;        /* CPU workers; 0 = usable CPUs */
    uint32_t io_threads;     /* maximum threads of the I/O lane, started when needed; 0 = 32 */
    uint32_t gpu_threads;    /* 0 = two per GPU, at least 1 */
    uint32_t python_threads; /* 0 = 1 */
    uint32_t gpus;           /* devices that stages may ask for; 0 = none */
    uint64_t gpu_memory;     /* bytes of each device that stages may share */
} leat_pool_opts;

LEAT_API void leat_pool_opts_init_sized(leat_pool_opts *opts, uint32_t struct_size);
#define leat_pool_opts_init(o) leat_pool_opts_init_sized((o), (uint32_t)sizeof *(o))

/* Opens a private pool. Most callers need none: a flow without one uses the process's shared pool, which
 * exists while any flow uses it. opts may be NULL. Close the pool after its flows. */
LEAT_API int leat_pool_open(leat_pool **pool, const leat_pool_opts *opts, leat_error *err) LEAT_MUST_CHECK;
LEAT_API void leat_pool_close(leat_pool **pool);

/* Takes a reference to the shared pool, creating it with defaults if needed; return it with
 * leat_pool_close. */
LEAT_API int leat_pool_shared(leat_pool **pool, leat_error *err) LEAT_MUST_CHECK;

/* Sets how many CPU workers may be busy at once, from 1 to the number started. Any thread may call it. */
LEAT_API int leat_pool_set_active(leat_pool *pool, uint32_t threads, leat_error *err) LEAT_MUST_CHECK;
LEAT_API uint32_t leat_pool_threads(const leat_pool *pool);

/* ---- Tasks ------------------------------------------------------------------------------ */

/* The unit of work: a few samples, a file, a batch. Created by the engine; one owner at a time:
 * the stage that runs it, the engine between stages, the caller after leat_flow_next. process()
 * reads and writes the first four fields; the rest is read-only. */
struct leat_task {
    void *data;     /* payload, used only by the stages */
    uint64_t bytes; /* bytes it holds: charged to the budget until released */
    /* Frees `data`; called exactly once, on any thread, when the task ends in any way. NULL
     * when there is nothing to free. */
    void (*release)(void *release_cookie, void *data);
    void *release_cookie;

    uint64_t seq;              /* 0, 1, 2 … within this part of the flow (between gathers and expands) */
    int32_t status;            /* 0, or the LEAT_E… it failed with */
    uint32_t member_count;     /* in a gather stage: the tasks of the group, in order. They are */
    leat_task *const *members; /* released after process(), unless it moved their data out */
    const leat_error *error;   /* why it failed; NULL when it did not fail, or when out of memory */
};

/* Releases a task taken with leat_flow_next: calls its release() and returns its bytes to the budget. Any
 * thread may call it, also after the flow was closed. NULL is allowed. */
LEAT_API void leat_task_release(leat_task *task);

/* Inside process() of an expand stage: adds one child with these fields. At most `count` children per call of
 * process(); LEAT_ELIMIT beyond that. On failure (also LEAT_ENOMEM) the caller still owns the data. */
LEAT_API int leat_task_emit(leat_task *parent, void *data, uint64_t bytes,
                            void (*release)(void *release_cookie, void *data),
                            void *release_cookie) LEAT_MUST_CHECK;

/* Ends a task whose process() returned LEAT_FLOW_PENDING, with the result of the work: 0, LEAT_FLOW_DROP or
 * an error. Call it exactly once, from any thread, also before process() has returned. err may be NULL. */
LEAT_API void leat_task_done(leat_task *task, int rc, const leat_error *err);

/* Inside process(): charges `bytes` that the task will hold beyond its request. LEAT_EBUDGET: the budget has
 * no room for them, so the task must not allocate them. */
LEAT_API int leat_task_charge(leat_task *task, uint64_t bytes) LEAT_MUST_CHECK;

/* 1 when the flow was canceled: a long process() may check it and stop early. */
LEAT_API int leat_task_canceled(const leat_task *task);

/* ---- Stages ----------------------------------------------------------------------------- */

typedef enum leat_stage_kind {
    LEAT_STAGE_SOURCE = 1, /* first stage: one call at a time, fills an empty task */
    LEAT_STAGE_MAP,        /* one to one: changes the task it is given */
    LEAT_STAGE_EXPAND,     /* one to many: leat_task_emit, LEAT_FLOW_MORE until done */
    LEAT_STAGE_GATHER,     /* many to one: task->members in order; fills the task itself */
    LEAT_STAGE_SINK        /* last stage of a flow without a consumer: tasks end here */
} leat_stage_kind;

/* Return values of process() besides 0 and a negative LEAT_E… code. */
enum {
    LEAT_FLOW_END = 1,     /* source: no more tasks, ever */
    LEAT_FLOW_LATER = 2,   /* source: no task now; called again after leat_flow_kick or 10 ms */
    LEAT_FLOW_MORE = 3,    /* expand: call again with the same task */
    LEAT_FLOW_PENDING = 4, /* map, sink: leat_task_done will follow; the thread is free */
    LEAT_FLOW_DROP = 5     /* map: discard this task; it is released and counted, and is not an error */
};

enum {
    LEAT_STAGE_ORDERED = 1 << 0 /* runs tasks one at a time, in their order */
};

/* The worker that runs process(), as passed to setup(). */
typedef struct leat_worker {
    uint32_t index; /* number within the lane, from 0 */
    int32_t gpu;    /* device granted to this worker of this stage, -1 = none */
    leat_lane lane;
    leat_flow *flow;
    int32_t node; /* NUMA node the worker is bound to, -1 = not bound (one node, other lanes) */
} leat_worker;

typedef struct leat_stage {
    uint32_t struct_size;
    leat_stage_kind kind;
    const char *name; /* for meters, logs and errors; copied */
    leat_lane lane;   /* default CPU */
    uint32_t flags;
    uint32_t parallel; /* maximum tasks of this stage at once; 0 = as many as the lane allows. The controller
                          does not change a given value */
    /* Resources of one worker. Setting both `gpus` and `gpu_memory` is an error. */
    double cpus;         /* CPUs one running task keeps busy; 0 = 1 on the CPU lane */
    double gpus;         /* whole devices, or a part of one */
    uint64_t gpu_memory; /* bytes on a shared device */
    uint64_t ram;        /* bytes one worker keeps from setup to teardown */
    /* Bytes of one task: upper bounds. A larger measured value replaces them. */
    uint64_t scratch;   /* extra bytes while process() runs */
    uint64_t bytes_out; /* bytes that the task (or each child, or the group's result) holds afterwards. They
                           are allocated while the task still holds its input. 0 = the task keeps its input */
    uint64_t bytes_in;  /* gather: maximum bytes of all members of one group; 0 = count times
                         * the bytes of one task */
    uint32_t count;     /* gather: members of a group; expand: children per call, 0 = 1 */
    leat_budget_cat category; /* category of the bytes that the task holds afterwards */
    void *cookie;

    /* setup() is called once per worker and stage, on that worker, before its first process(). Only that
     * worker uses the context. teardown() runs on any thread after the last process(). */
    int (*setup)(void *cookie, const leat_worker *worker, void **ctx, leat_error *err);
    void (*teardown)(void *cookie, void *ctx);
    /* Does the work. A task that fails keeps its data, and the flow's policy applies. A source that fails
     * always fails the flow. */
    int (*process)(void *cookie, void *ctx, leat_task *task, leat_error *err);

    /* Optional. need() returns the bytes this task will take for scratch and result, on top of what it holds.
     * It is used instead of scratch + bytes_out, which remain its upper bound. For a source, task is NULL and
     * the next task is meant. closes() returns 1 when this member is the last of its group, also before
     * `count`. Both run under the scheduler's lock: only read fields, and call no function of leat. */
    uint64_t (*need)(void *cookie, const leat_task *task);
    int (*closes)(void *cookie, const leat_task *task);
} leat_stage;

LEAT_API void leat_stage_init_sized(leat_stage *stage, uint32_t struct_size);
#define leat_stage_init(s) leat_stage_init_sized((s), (uint32_t)sizeof *(s))

/* ---- Flows ------------------------------------------------------------------------------ */

typedef enum leat_flow_mode {
    LEAT_FLOW_STREAMING, /* runs the ready task nearest to the output first, so that results leave early */
    LEAT_FLOW_BATCH      /* finishes a stage before the next begins, as far as the budget allows */
} leat_flow_mode;

typedef enum leat_flow_policy {
    LEAT_FLOW_FAIL,     /* the flow fails when the output reaches the first failed task */
    LEAT_FLOW_SKIP,     /* failed tasks are dropped and counted */
    LEAT_FLOW_GIVE_BACK /* failed tasks are delivered (also into groups) with status and error */
} leat_flow_policy;

typedef struct leat_flow_opts {
    uint32_t struct_size;
    const char *name;    /* for meters and logs; NULL = "flow"; copied */
    leat_pool *pool;     /* NULL = the shared pool */
    leat_budget *budget; /* NULL = a private budget with the default limit */
    leat_flow_mode mode;
    leat_flow_policy on_error;
    uint64_t max_errors; /* SKIP and GIVE_BACK: more failures than this fail the flow; 0 =
                          * no limit */
    uint32_t threads;    /* maximum CPU workers busy for this flow; 0 = the pool's */
    uint32_t io_depth;   /* tasks at once in each I/O stage; 0 = the controller decides */
    uint32_t prefetch;   /* results prefetched for the consumer; 0 = the controller decides */
    uint32_t loans;      /* results the consumer may hold at once without stopping the
                          * flow; 0 = 2 */
    uint32_t unordered;  /* 1 = results leave as they finish */
    /* 1 = a SIGSEGV, SIGBUS, SIGFPE or SIGILL inside process() fails its task. Installs
     * process-wide handlers that pass other faults on. Locks and memory held by the op are lost:
     * for untrusted ops, not for normal use */
    uint32_t contain_crashes;
    uint32_t fixed; /* 1 = no controller */
    leat_log log;
    /* 1 = before the last gather or expand, only as many tasks are in flight as the flow's threads and I/O
     * depth can use. More tasks would only wait, and drop out of the CPU caches */
    uint32_t lean;
    leat_tuner *tuner; /* what the controller learned in earlier flows with the same stages; must outlive the
                          flow, and serves one flow at a time */
    uint32_t io_depth_max;   /* maximum for the controller; 0 = the size of the lane */
    uint32_t prefetch_first; /* initial value for the controller; 0 = 4, or the last value of `tuner` */
    uint32_t io_depth_first; /* initial I/O depth for the controller; 0 = 4, or the last value of `tuner` */
    /* Slow start for distant storage: the I/O depth doubles every tick (250 ms) up to this value, as long as
     * the rate grows and the budget has room. 0 = no slow start: each change is judged before the next one */
    uint32_t io_depth_ramp;
} leat_flow_opts;

LEAT_API void leat_flow_opts_init_sized(leat_flow_opts *opts, uint32_t struct_size);
#define leat_flow_opts_init(o) leat_flow_opts_init_sized((o), (uint32_t)sizeof *(o))

/* Opens a flow without stages. opts may be NULL. */
LEAT_API int leat_flow_open(leat_flow **flow, const leat_flow_opts *opts, leat_error *err) LEAT_MUST_CHECK;

/* Appends a stage. The first must be a source; a sink must be the last. The struct is copied; its cookie must
 * outlive the flow. LEAT_EINVAL names the problem. */
LEAT_API int leat_flow_add(leat_flow *flow, const leat_stage *stage, leat_error *err) LEAT_MUST_CHECK;

/* Starts the flow. LEAT_EBUDGET: the budget is too small for one task; err says by how much. LEAT_EINVAL: a
 * stage asks for a GPU that the pool does not have. */
LEAT_API int leat_flow_start(leat_flow *flow, leat_error *err) LEAT_MUST_CHECK;

/* Returns the next result, borrowed until leat_task_release, or NULL after the last one. Waits up to
 * timeout_ms (0 = do not wait, -1 = no limit). LEAT_ETIMEDOUT  nothing came in time           LEAT_EAGAIN
 * leat_flow_interrupt was called LEAT_EBUDGET    (not final) nothing can come because borrowed results hold
 * the memory LEAT_ECANCELED, LEAT_EFORK, or the error of the task that failed the flow: final. */
LEAT_API int leat_flow_next(leat_flow *flow, leat_task **task, int64_t timeout_ms,
                            leat_error *err) LEAT_MUST_CHECK;

/* For flows that end in a sink: waits until all tasks have ended. Returns the codes of leat_flow_next. */
LEAT_API int leat_flow_wait(leat_flow *flow, int64_t timeout_ms, leat_error *err) LEAT_MUST_CHECK;

/* Any thread may call these, also while others wait in the calls above. interrupt: the waiting (or else the
 * next) leat_flow_next or _wait returns LEAT_EAGAIN; async-signal-safe. cancel: no further process() starts,
 * and waiters return LEAT_ECANCELED; it does not wait itself. kick: calls a source that returned
 * LEAT_FLOW_LATER again now. */
LEAT_API void leat_flow_interrupt(leat_flow *flow);
LEAT_API void leat_flow_cancel(leat_flow *flow);
LEAT_API void leat_flow_kick(leat_flow *flow);

/* Cancels the flow, waits for running process() calls and for leat_task_done of pending tasks, then frees
 * everything. Borrowed results stay valid. NULL or a closed flow is allowed. Do not call it inside process()
 * or while another thread is in a call on the flow. */
LEAT_API void leat_flow_close(leat_flow **flow);

/* Pins a setting of the controller (value > 0), or lets the controller change it again (0). */
typedef enum leat_flow_knob {
    LEAT_KNOB_THREADS, /* CPU workers busy at once for this flow */
    LEAT_KNOB_IO_DEPTH,
    LEAT_KNOB_PREFETCH
} leat_flow_knob;
LEAT_API int leat_flow_pin(leat_flow *flow, leat_flow_knob knob, uint32_t value,
                           leat_error *err) LEAT_MUST_CHECK;

/* The controller's memory, kept across consecutive flows with the same stages (the epochs of a loader): its
 * settings, the changes that did not help, and its observations of a flow that ended before it could judge a
 * change. For one running flow at a time. It also keeps the last 64 decisions with their reasons, which any
 * thread may read at any time. */
LEAT_API int leat_tuner_open(leat_tuner **tuner, leat_error *err) LEAT_MUST_CHECK;
LEAT_API void leat_tuner_close(leat_tuner **tuner);

typedef struct leat_decision {
    uint64_t number; /* 0, 1, 2 … of this tuner */
    uint64_t at_ns;  /* time by the monotonic clock */
    leat_flow_knob knob;
    uint32_t from, to;
    char reason[112];
} leat_decision;

/* Reads up to `max` decisions from number `first` on, oldest first; returns how many. Only the
 * last 64 are kept. */
LEAT_API uint32_t leat_tuner_read(leat_tuner *tuner, uint64_t first, leat_decision *out, uint32_t max);
LEAT_API const char *leat_knob_name(leat_flow_knob knob);

/* ---- Statistics ------------------------------------------------------------------------- */

typedef struct leat_stage_stats {
    char name[32];
    leat_lane lane;
    uint64_t items; /* tasks that finished here, failed ones included */
    uint64_t failed, dropped;
    uint64_t bytes;                 /* total bytes that these tasks hold afterwards */
    uint64_t bytes_max;             /* maximum bytes of one of these tasks */
    uint64_t busy_ns;               /* in process(), all workers together */
    uint64_t wait_ns;               /* total time that tasks were ready but not running */
    double readiness;               /* share of the time with a task ready and waiting */
    uint32_t running, ready, limit; /* now; limit 0 = no limit of the stage */
} leat_stage_stats;

typedef struct leat_flow_stats {
    uint32_t struct_size;
    uint32_t stages;
    uint64_t results;                   /* delivered to the consumer or ended in the sink */
    uint64_t failed, dropped, overruns; /* overruns: tasks that held more bytes than requested */
    uint64_t elapsed_ns;
    uint64_t consumer_wait_ns;            /* time the consumer waited for a result */
    uint64_t blocked_ns;                  /* time with work blocked only by the memory budget */
    uint64_t loans, loan_bytes;           /* results borrowed by the consumer now */
    uint64_t floor_bytes;                 /* minimum budget of this flow */
    uint32_t threads, io_depth, prefetch; /* settings now */
    uint64_t decisions;                   /* changes the controller made */
} leat_flow_stats;

/* Read the statistics of a flow or of one stage (0 = the source; LEAT_EINVAL past the last). Any thread, at
 * any time. */
LEAT_API int leat_flow_read(leat_flow *flow, leat_flow_stats *stats, uint32_t struct_size) LEAT_MUST_CHECK;
LEAT_API int leat_flow_read_stage(leat_flow *flow, uint32_t index, leat_stage_stats *stats) LEAT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
