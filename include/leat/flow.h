/* SPDX-License-Identifier: Apache-2.0
 *
 * Flows: stages in a row, run by one pool of threads under one budget of bytes.
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
 * What comes out never depends on how many threads ran or which was faster: tasks are numbered
 * where they enter, groups are formed in that order, and results leave in it unless asked
 * otherwise. docs/internals/engine.md explains the scheduler and why it cannot deadlock.
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

/* ---- Budget: one number in bytes, hard ------------------------------------------------- */

typedef enum leat_budget_cat {
    LEAT_BUDGET_TASK,    /* what tasks carry between stages; the default */
    LEAT_BUDGET_PAGE,    /* pages read from storage, and caches of them */
    LEAT_BUDGET_SCRATCH, /* working memory while a stage runs, and of its workers */
    LEAT_BUDGET_BATCH,   /* finished results, also while the user holds them */
    LEAT_BUDGET_OTHER,
    LEAT_BUDGET_CATS
} leat_budget_cat;

/* A budget of `limit` bytes, 0 = half of what this process may still take now. Give it to any
 * number of flows; each open flow keeps it alive. Any thread may call all of these. */
LEAT_API int leat_budget_open(leat_budget **budget, uint64_t limit, leat_error *err)
    LEAT_MUST_CHECK;
LEAT_API void leat_budget_close(leat_budget **budget);

/* Changes the limit while flows run. Raising acts at once. After lowering, nothing new is
 * granted until what is in flight has drained below it. LEAT_EBUDGET, and no change, when the
 * flows that are running need more than that to make progress at all. */
LEAT_API int leat_budget_set_limit(leat_budget *budget, uint64_t limit, leat_error *err)
    LEAT_MUST_CHECK;

/* Charges bytes for memory kept outside tasks (such as a page cache); return them with
 * leat_budget_release. Without waiting: 0 or LEAT_EAGAIN; LEAT_EBUDGET when it can never fit.
 * leat_budget_charge waits up to timeout_ms (-1: no limit) and may then return
 * LEAT_ETIMEDOUT; never call it inside a stage's process(), which holds bytes itself. */
LEAT_API int leat_budget_try(leat_budget *budget, leat_budget_cat cat, uint64_t bytes)
    LEAT_MUST_CHECK;
LEAT_API int leat_budget_charge(leat_budget *budget, leat_budget_cat cat, uint64_t bytes,
                                int64_t timeout_ms, leat_error *err) LEAT_MUST_CHECK;
LEAT_API void leat_budget_release(leat_budget *budget, leat_budget_cat cat, uint64_t bytes);

typedef struct leat_budget_stats {
    uint64_t limit;
    uint64_t used, peak;                     /* charged now; the highest it ever was */
    uint64_t floors;                         /* least that the running flows need together */
    uint64_t cat_used[LEAT_BUDGET_CATS];
    uint64_t cat_peak[LEAT_BUDGET_CATS];
    uint64_t refused;                        /* requests that had to wait */
} leat_budget_stats;
LEAT_API void leat_budget_read(const leat_budget *budget, leat_budget_stats *stats);

/* ---- Pool: the threads ----------------------------------------------------------------- */

/* Where a stage runs. CPU workers are as many as usable CPUs; the other lanes have threads of
 * their own, because their stages wait (I/O), hold a device (GPU) or a lock (Python). */
typedef enum leat_lane {
    LEAT_LANE_CPU,
    LEAT_LANE_IO,
    LEAT_LANE_GPU,
    LEAT_LANE_PYTHON,
    LEAT_LANES
} leat_lane;

typedef struct leat_pool_opts {
    uint32_t struct_size;
    uint32_t threads;        /* CPU workers; 0 = usable CPUs */
    uint32_t io_threads;     /* most threads of the I/O lane; 0 = 32. Started when needed */
    uint32_t gpu_threads;    /* 0 = two per GPU, at least 1 */
    uint32_t python_threads; /* 0 = 1 */
    uint32_t gpus;           /* devices that stages may ask for; 0 = none */
    uint64_t gpu_memory;     /* bytes of each device that stages may share */
} leat_pool_opts;

LEAT_API void leat_pool_opts_init_sized(leat_pool_opts *opts, uint32_t struct_size);
#define leat_pool_opts_init(o) leat_pool_opts_init_sized((o), (uint32_t)sizeof *(o))

/* A private pool. Most callers want none: a flow without one uses the process's shared pool,
 * which exists while any flow uses it. opts may be NULL. Close it after its flows. */
LEAT_API int leat_pool_open(leat_pool **pool, const leat_pool_opts *opts, leat_error *err)
    LEAT_MUST_CHECK;
LEAT_API void leat_pool_close(leat_pool **pool);

/* Takes a reference to the shared pool, making it with defaults when there is none; give it
 * back with leat_pool_close. */
LEAT_API int leat_pool_shared(leat_pool **pool, leat_error *err) LEAT_MUST_CHECK;

/* How many CPU workers may be busy at once, 1 to the number started; from any thread. */
LEAT_API int leat_pool_set_active(leat_pool *pool, uint32_t threads, leat_error *err)
    LEAT_MUST_CHECK;
LEAT_API uint32_t leat_pool_threads(const leat_pool *pool);

/* ---- Tasks ------------------------------------------------------------------------------ */

/* The unit of work: a small run of samples, a file, a batch. Made by the engine, one owner at
 * a time: the stage that runs it, the engine between stages, the caller after leat_flow_next.
 * process() reads and writes the first four fields; the rest is read-only. */
struct leat_task {
    void *data;    /* payload, the stages' business */
    uint64_t bytes; /* bytes it holds: stays charged to the budget until released */
    /* Frees `data`; called exactly once, on any thread, when the task ends in any way. NULL
     * when there is nothing to free. */
    void (*release)(void *release_cookie, void *data);
    void *release_cookie;

    uint64_t seq;             /* dense position among the tasks of this part of the flow */
    int32_t status;           /* 0, or the LEAT_E… it failed with */
    uint32_t member_count;    /* in a gather stage: the tasks of the group, in order; they are */
    leat_task *const *members; /* released after process(), unless it moved their data out */
    const leat_error *error;  /* why it failed; NULL when fine, or when memory was short */
};

/* Gives back a task taken with leat_flow_next: its release is called and its bytes leave the
 * budget. From any thread, also after the flow was closed. NULL is fine. */
LEAT_API void leat_task_release(leat_task *task);

/* Inside process() of an expand stage: adds one child with these fields. At most `count`
 * children per call. LEAT_ELIMIT beyond that, LEAT_ENOMEM; on failure the data is still the
 * caller's. */
LEAT_API int leat_task_emit(leat_task *parent, void *data, uint64_t bytes,
                            void (*release)(void *release_cookie, void *data),
                            void *release_cookie) LEAT_MUST_CHECK;

/* Ends a task whose process() answered LEAT_FLOW_PENDING, with what process() would have
 * answered otherwise (0, LEAT_FLOW_DROP or an error). From any thread, also before process()
 * itself has returned; exactly once. err may be NULL. */
LEAT_API void leat_task_done(leat_task *task, int rc, const leat_error *err);

/* 1 when the flow was canceled: a long process() may look and give up early. */
LEAT_API int leat_task_canceled(const leat_task *task);

/* ---- Stages ----------------------------------------------------------------------------- */

typedef enum leat_stage_kind {
    LEAT_STAGE_SOURCE = 1, /* first of the flow; called one at a time, fills an empty task */
    LEAT_STAGE_MAP,        /* one to one: changes the task it is given */
    LEAT_STAGE_EXPAND,     /* one to many: leat_task_emit, LEAT_FLOW_MORE until done */
    LEAT_STAGE_GATHER,     /* many to one: task->members in order; fills the task itself */
    LEAT_STAGE_SINK        /* last stage of a flow without a consumer: the task ends here */
} leat_stage_kind;

/* What process() may answer besides 0 and a negative LEAT_E… code. */
enum {
    LEAT_FLOW_END = 1,    /* source: no more tasks, ever */
    LEAT_FLOW_LATER = 2,  /* source: none now; asked again after leat_flow_kick or 10 ms */
    LEAT_FLOW_MORE = 3,   /* expand: call again with the same task */
    LEAT_FLOW_PENDING = 4, /* map, sink: leat_task_done will follow; the thread is free */
    LEAT_FLOW_DROP = 5    /* map: this task is not wanted: released and counted, no error */
};

enum {
    LEAT_STAGE_ORDERED = 1 << 0 /* runs tasks one at a time, in their order */
};

/* Who runs process(): for setup(). */
typedef struct leat_worker {
    uint32_t index; /* within the lane, 0 … most threads - 1 */
    int32_t gpu;    /* device granted to this worker of this stage, -1 = none */
    leat_lane lane;
    leat_flow *flow;
    int32_t node;   /* NUMA node the worker is bound to, -1 = not bound (one node, other lanes) */
} leat_worker;

typedef struct leat_stage {
    uint32_t struct_size;
    leat_stage_kind kind;
    const char *name;   /* for meters, logs and errors; copied */
    leat_lane lane;     /* default CPU */
    uint32_t flags;
    uint32_t parallel;  /* most tasks of this stage at once; 0 = as the lane allows. Pinned
                           when given: the controller leaves it alone */
    /* Resources of one worker. Both `gpus` and `gpu_memory` is an error. */
    double cpus;         /* CPUs one running task keeps busy; 0 = 1 on the CPU lane */
    double gpus;         /* whole or part of one device */
    uint64_t gpu_memory; /* bytes on a shared device */
    uint64_t ram;        /* bytes one worker keeps from setup to teardown */
    /* Bytes of one task. Taken as bounds; a larger measured value replaces them. */
    uint64_t scratch;   /* extra while process() runs */
    uint64_t bytes_out; /* what the task (each child, the group's result) holds afterwards,
                           allocated while it still holds its input; 0 = it keeps
                           its input */
    uint64_t bytes_in;  /* gather: most that the members of one group bring together; 0 =
                           count times what one task brings */
    uint32_t count;     /* gather: members of a group; expand: children per call, 0 = 1 */
    leat_budget_cat category; /* of what the task holds afterwards */
    void *cookie;

    /* Each once per worker and stage, on that worker, before its first process(); its
     * context is that worker's alone. teardown runs on some thread after the last one. */
    int (*setup)(void *cookie, const leat_worker *worker, void **ctx, leat_error *err);
    void (*teardown)(void *cookie, void *ctx);
    /* The work. On failure the task keeps whatever it holds and goes to the flow's policy; a
     * source's failure ends the source and fails the flow, whatever the policy. */
    int (*process)(void *cookie, void *ctx, leat_task *task, leat_error *err);

    /* Optional. need(): bytes this task will take on top of what it holds (scratch and
     * result), instead of scratch + bytes_out; for a source, of the next task (task is
     * NULL). scratch + bytes_out stay its bound. closes(): 1 when this member is the last of
     * its group, also before `count`. Both run under the scheduler's lock: look at fields
     * and return; call nothing of leat. */
    uint64_t (*need)(void *cookie, const leat_task *task);
    int (*closes)(void *cookie, const leat_task *task);
} leat_stage;

LEAT_API void leat_stage_init_sized(leat_stage *stage, uint32_t struct_size);
#define leat_stage_init(s) leat_stage_init_sized((s), (uint32_t)sizeof *(s))

/* ---- Flows ------------------------------------------------------------------------------ */

typedef enum leat_flow_mode {
    LEAT_FLOW_STREAMING, /* the most downstream ready task first: results leave early */
    LEAT_FLOW_BATCH      /* a stage finishes before the next begins, as far as the budget lets */
} leat_flow_mode;

typedef enum leat_flow_policy {
    LEAT_FLOW_FAIL,     /* the flow fails where the first failed task would have come out */
    LEAT_FLOW_SKIP,     /* failed tasks are dropped and counted */
    LEAT_FLOW_GIVE_BACK /* failed tasks come out (and into groups) with status and error */
} leat_flow_policy;

typedef struct leat_flow_opts {
    uint32_t struct_size;
    const char *name;        /* for meters and logs; NULL = "flow"; copied */
    leat_pool *pool;         /* NULL = the shared pool */
    leat_budget *budget;     /* NULL = a budget of its own with the default limit */
    leat_flow_mode mode;
    leat_flow_policy on_error;
    uint64_t max_errors;     /* skip and give back: more failures than this fail the flow; 0 =
                                no limit */
    uint32_t threads;        /* most CPU workers busy for this flow; 0 = the pool's */
    uint32_t io_depth;       /* tasks at once in each I/O stage; 0 = the controller decides */
    uint32_t prefetch;       /* results made ahead of the consumer; 0 = the controller decides */
    uint32_t loans;          /* results the consumer keeps at once without stopping the flow; 0
                                = 2 */
    uint32_t unordered;      /* 1 = results leave as they finish */
    uint32_t contain_crashes; /* 1 = a SIGSEGV, SIGBUS, SIGFPE or SIGILL inside process() fails
                                its task. Installs process-wide handlers that pass on what is
                                not theirs. Whatever the op had locked or allocated is lost:
                                for ops you cannot trust, not for normal running */
    uint32_t fixed;          /* 1 = no controller */
    leat_log log;
    uint32_t lean;           /* 1 = before the last gather or expand no more tasks are on their
                                way than its threads and its I/O depth can use: what is taken in
                                early only waits, and leaves the caches */
    leat_tuner *tuner;       /* what earlier flows of the same stages learned; outlives the flow */
    uint32_t io_depth_max;   /* most the controller may choose; 0 = what the lane holds */
    uint32_t prefetch_first; /* where the controller begins; 0 = 4, or what it learned before */
    uint32_t io_depth_first; /* the same for the I/O depth */
} leat_flow_opts;

LEAT_API void leat_flow_opts_init_sized(leat_flow_opts *opts, uint32_t struct_size);
#define leat_flow_opts_init(o) leat_flow_opts_init_sized((o), (uint32_t)sizeof *(o))

/* opts may be NULL. */
LEAT_API int leat_flow_open(leat_flow **flow, const leat_flow_opts *opts, leat_error *err)
    LEAT_MUST_CHECK;

/* Appends a stage; the first must be a source, a sink the last. The struct is copied, its
 * cookie must outlive the flow. LEAT_EINVAL says what is wrong. */
LEAT_API int leat_flow_add(leat_flow *flow, const leat_stage *stage, leat_error *err)
    LEAT_MUST_CHECK;

/* LEAT_EBUDGET when the budget is below what one task needs on its way, and by how much;
 * LEAT_EINVAL when a stage asks for a GPU the pool does not have. */
LEAT_API int leat_flow_start(leat_flow *flow, leat_error *err) LEAT_MUST_CHECK;

/* The next result, on loan until leat_task_release; NULL after the last one. Waits up to
 * timeout_ms (0 = do not wait, -1 = no limit).
 *   LEAT_ETIMEDOUT  nothing came in time           LEAT_EAGAIN  leat_flow_interrupt was called
 *   LEAT_EBUDGET    (not final) nothing can come because the results on loan hold the memory
 *   LEAT_ECANCELED, LEAT_EFORK, or the error of the task that failed the flow: final. */
LEAT_API int leat_flow_next(leat_flow *flow, leat_task **task, int64_t timeout_ms,
                            leat_error *err) LEAT_MUST_CHECK;

/* For flows that end in a sink: waits until all tasks ended. Returns as leat_flow_next. */
LEAT_API int leat_flow_wait(leat_flow *flow, int64_t timeout_ms, leat_error *err)
    LEAT_MUST_CHECK;

/* From any thread, also while others wait in the calls above.
 * interrupt: the waiting (or else the next) leat_flow_next or _wait answers LEAT_EAGAIN. Async-
 *   signal-safe: it may be called from a signal handler.
 * cancel: no further process() begins; waiters answer LEAT_ECANCELED. Does not wait.
 * kick: a source that answered LEAT_FLOW_LATER is asked again now. */
LEAT_API void leat_flow_interrupt(leat_flow *flow);
LEAT_API void leat_flow_cancel(leat_flow *flow);
LEAT_API void leat_flow_kick(leat_flow *flow);

/* Cancels, waits for the process() calls that are running (and for leat_task_done of pending
 * tasks), frees everything but results on loan, which stay valid. NULL or a closed flow is
 * fine. Not from inside process(), and not while another thread is in a call on the flow. */
LEAT_API void leat_flow_close(leat_flow **flow);

/* Pins a number that the controller would move (value > 0) or lets it move again (0). */
typedef enum leat_flow_knob {
    LEAT_KNOB_THREADS, /* CPU workers busy at once for this flow */
    LEAT_KNOB_IO_DEPTH,
    LEAT_KNOB_PREFETCH
} leat_flow_knob;
LEAT_API int leat_flow_pin(leat_flow *flow, leat_flow_knob knob, uint32_t value,
                           leat_error *err) LEAT_MUST_CHECK;

/* What the controller learned, kept over flows that follow each other and have the same stages
 * (the epochs of a loader): its settings, what it found useless, and what it saw of a flow that
 * ended before it could judge. Give it to one running flow at a time. Also keeps the last 64
 * decisions with their reasons, which any thread may read at any time. */
LEAT_API int leat_tuner_open(leat_tuner **tuner, leat_error *err) LEAT_MUST_CHECK;
LEAT_API void leat_tuner_close(leat_tuner **tuner);

typedef struct leat_decision {
    uint64_t number; /* 0, 1, 2 … of this tuner */
    uint64_t at_ns;  /* of the monotonic clock */
    leat_flow_knob knob;
    uint32_t from, to;
    char reason[112];
} leat_decision;

/* Up to `max` decisions from number `first` on, oldest first; how many. What is older than the
 * last 64 is gone. */
LEAT_API uint32_t leat_tuner_read(leat_tuner *tuner, uint64_t first, leat_decision *out,
                                  uint32_t max);
LEAT_API const char *leat_knob_name(leat_flow_knob knob);

/* ---- What it did ------------------------------------------------------------------------ */

typedef struct leat_stage_stats {
    char name[32];
    leat_lane lane;
    uint64_t items;      /* tasks that finished here, failed ones included */
    uint64_t failed, dropped;
    uint64_t bytes;      /* sum of what they held afterwards */
    uint64_t bytes_max;  /* most that one held */
    uint64_t busy_ns;    /* in process(), all workers together */
    uint64_t wait_ns;    /* tasks ready but not yet run, all together */
    double readiness;    /* share of the time in which a task was ready and waiting */
    uint32_t running, ready, limit; /* now; limit 0 = none of its own */
} leat_stage_stats;

typedef struct leat_flow_stats {
    uint32_t struct_size;
    uint32_t stages;
    uint64_t results;      /* handed to the consumer or ended in the sink */
    uint64_t failed, dropped, overruns; /* overruns: held more bytes than they had asked for */
    uint64_t elapsed_ns;
    uint64_t consumer_wait_ns; /* the consumer waited for a result */
    uint64_t blocked_ns;   /* something was ready but for bytes */
    uint64_t loans, loan_bytes; /* out with the consumer now */
    uint64_t floor_bytes;  /* least budget this flow can run with */
    uint32_t threads, io_depth, prefetch; /* settings now */
    uint64_t decisions;    /* changes the controller made */
} leat_flow_stats;

/* Stage i of the flow, 0 = the source; LEAT_EINVAL past the last. Any time, any thread. */
LEAT_API int leat_flow_read(leat_flow *flow, leat_flow_stats *stats, uint32_t struct_size)
    LEAT_MUST_CHECK;
LEAT_API int leat_flow_read_stage(leat_flow *flow, uint32_t index, leat_stage_stats *stats)
    LEAT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
