/* SPDX-License-Identifier: Apache-2.0
 *
 * Flows: a sequence of stages, run by one pool of threads with one budget of bytes.
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

/* A budget of `limit` bytes, 0 = half of the memory still available to this process. Any number
 * of flows can share it; each open flow keeps it alive. Any thread may call all of these. */
LEAT_API int leat_budget_open(leat_budget **budget, uint64_t limit, leat_error *err) LEAT_MUST_CHECK;
LEAT_API void leat_budget_close(leat_budget **budget);

/* Changes the limit while flows run. Raising takes effect at once. After lowering, nothing new is
 * granted until usage has drained below it. LEAT_EBUDGET, and no change, when the running flows
 * need more than that to make progress. */
LEAT_API int leat_budget_set_limit(leat_budget *budget, uint64_t limit, leat_error *err) LEAT_MUST_CHECK;

/* Charges bytes for memory kept outside tasks (such as a page cache); return them with
 * leat_budget_release. Without waiting: 0 or LEAT_EAGAIN; LEAT_EBUDGET when it can never fit.
 * leat_budget_charge waits up to timeout_ms (-1: no limit) and may then return
 * LEAT_ETIMEDOUT; never call it inside a stage's process(), which holds bytes itself. A release of more
 * than was charged returns what was charged. */
LEAT_API int leat_budget_try(leat_budget *budget, leat_budget_cat cat, uint64_t bytes) LEAT_MUST_CHECK;
LEAT_API int leat_budget_charge(leat_budget *budget, leat_budget_cat cat, uint64_t bytes, int64_t timeout_ms,
                                leat_error *err) LEAT_MUST_CHECK;
LEAT_API void leat_budget_release(leat_budget *budget, leat_budget_cat cat, uint64_t bytes);

typedef struct leat_budget_stats {
    uint64_t limit;
    uint64_t used, peak; /* charged now; the peak */
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
    uint32_t io_threads;     /* most threads of the I/O lane; 0 = 32. Started when needed */
    uint32_t gpu_threads;    /* 0 = two per GPU, at least 1 */
    uint32_t python_threads; /* 0 = 1 */
    uint32_t gpus;           /* devices that stages may ask for; 0 = none */
    uint64_t gpu_memory;     /* bytes of each device that stages may share */
} leat_pool_opts;

LEAT_API void leat_pool_opts_init_sized(leat_pool_opts *opts, uint32_t struct_size);
#define leat_pool_opts_init(o) leat_pool_opts_init_sized((o), (uint32_t)sizeof *(o))

/* A private pool. Most callers need none: a flow without one uses the process's shared pool,
 * which exists while any flow uses it. opts may be NULL. Close it after its flows. */
LEAT_API int leat_pool_open(leat_pool **pool, const leat_pool_opts *opts, leat_error *err) LEAT_MUST_CHECK;
LEAT_API void leat_pool_close(leat_pool **pool);

/* Takes a reference to the shared pool, creating it with defaults if needed; return it with
 * leat_pool_close. */
LEAT_API int leat_pool_shared(leat_pool **pool, leat_error *err) LEAT_MUST_CHECK;

/* How many CPU workers may be busy at once, 1 to the number started; from any thread. */
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

    uint64_t seq;              /* dense position among the tasks of this part of the flow */
    int32_t status;            /* 0, or the LEAT_E… it failed with */
    uint32_t member_count;     /* in a gather stage: the tasks of the group, in order; they are */
    leat_task *const *members; /* released after process(), unless it moved their data out */
    const leat_error *error;   /* why it failed; NULL when it did not, or when out of memory */
};

/* Releases a task taken with leat_flow_next: its release is called and its bytes leave the
 * budget. From any thread, also after the flow was closed. NULL is allowed. */
LEAT_API void leat_task_release(leat_task *task);

/* Inside process() of an expand stage: adds one child with these fields. At most `count` children
 * per call. LEAT_ELIMIT beyond that, LEAT_ENOMEM; on failure the caller still owns the data. */
LEAT_API int leat_task_emit(leat_task *parent, void *data, uint64_t bytes,
                            void (*release)(void *release_cookie, void *data),
                            void *release_cookie) LEAT_MUST_CHECK;

/* Ends a task whose process() returned LEAT_FLOW_PENDING, with the code that process() would have
 * returned otherwise (0, LEAT_FLOW_DROP or an error). From any thread, also before process()
 * itself has returned; exactly once. err may be NULL. */
LEAT_API void leat_task_done(leat_task *task, int rc, const leat_error *err);

/* Inside process(): charges `bytes` that the task is going to hold beyond its request. LEAT_EBUDGET: the
 * budget has no room for them, and the task must do without. */
LEAT_API int leat_task_charge(leat_task *task, uint64_t bytes) LEAT_MUST_CHECK;

/* 1 when the flow was canceled: a long process() may check it and stop early. */
LEAT_API int leat_task_canceled(const leat_task *task);

/* ---- Stages ----------------------------------------------------------------------------- */

typedef enum leat_stage_kind {
    LEAT_STAGE_SOURCE = 1, /* first of the flow; called one at a time, fills an empty task */
    LEAT_STAGE_MAP,        /* one to one: changes the task it is given */
    LEAT_STAGE_EXPAND,     /* one to many: leat_task_emit, LEAT_FLOW_MORE until done */
    LEAT_STAGE_GATHER,     /* many to one: task->members in order; fills the task itself */
    LEAT_STAGE_SINK        /* last stage of a flow without a consumer: the task ends here */
} leat_stage_kind;

/* Return values of process() besides 0 and a negative LEAT_E… code. */
enum {
    LEAT_FLOW_END = 1,     /* source: no more tasks, ever */
    LEAT_FLOW_LATER = 2,   /* source: none now; asked again after leat_flow_kick or 10 ms */
    LEAT_FLOW_MORE = 3,    /* expand: call again with the same task */
    LEAT_FLOW_PENDING = 4, /* map, sink: leat_task_done will follow; the thread is free */
    LEAT_FLOW_DROP = 5     /* map: discard this task: released and counted, no error */
};

enum {
    LEAT_STAGE_ORDERED = 1 << 0 /* runs tasks one at a time, in their order */
};

/* The worker that runs process(): for setup(). */
typedef struct leat_worker {
    uint32_t index; /* within the lane, 0 … most threads - 1 */
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
    uint32_t parallel; /* most tasks of this stage at once; 0 = as the lane allows. Pinned
                        * when given: the controller does not change it */
    /* Resources of one worker. Both `gpus` and `gpu_memory` is an error. */
    double cpus;         /* CPUs one running task keeps busy; 0 = 1 on the CPU lane */
    double gpus;         /* whole or part of one device */
    uint64_t gpu_memory; /* bytes on a shared device */
    uint64_t ram;        /* bytes one worker keeps from setup to teardown */
    /* Bytes of one task. Taken as bounds; a larger measured value replaces them. */
    uint64_t scratch;         /* extra while process() runs */
    uint64_t bytes_out;       /* bytes that the task (each child, the group's result) holds
                               * afterwards, allocated while it still holds its input; 0 = it keeps
                               * its input */
    uint64_t bytes_in;        /* gather: maximum bytes of all members of one group; 0 = count times
                               * the bytes of one task */
    uint32_t count;           /* gather: members of a group; expand: children per call, 0 = 1 */
    leat_budget_cat category; /* of what the task holds afterwards */
    void *cookie;

    /* Each is called once per worker and stage, on that worker, before its first process(); the
     * context belongs to that worker alone. teardown runs on some thread after the last one. */
    int (*setup)(void *cookie, const leat_worker *worker, void **ctx, leat_error *err);
    void (*teardown)(void *cookie, void *ctx);
    /* The work. On failure the task keeps what it holds and the flow's policy applies; a failing
     * source ends and fails the flow, whatever the policy. */
    int (*process)(void *cookie, void *ctx, leat_task *task, leat_error *err);

    /* Optional. need(): bytes this task will take on top of what it holds (scratch and result),
     * instead of scratch + bytes_out; for a source, of the next task (task is NULL). scratch +
     * bytes_out remain its bound. closes(): 1 when this member is the last of its group, also
     * before `count`. Both run under the scheduler's lock: read fields and return; call no
     * function of leat. */
    uint64_t (*need)(void *cookie, const leat_task *task);
    int (*closes)(void *cookie, const leat_task *task);
} leat_stage;

LEAT_API void leat_stage_init_sized(leat_stage *stage, uint32_t struct_size);
#define leat_stage_init(s) leat_stage_init_sized((s), (uint32_t)sizeof *(s))

/* ---- Flows ------------------------------------------------------------------------------ */

typedef enum leat_flow_mode {
    LEAT_FLOW_STREAMING, /* the most downstream ready task first: results leave early */
    LEAT_FLOW_BATCH      /* a stage finishes before the next begins, as far as the budget
                          * allows */
} leat_flow_mode;

typedef enum leat_flow_policy {
    LEAT_FLOW_FAIL,     /* the flow fails at the place of the first failed task in the output */
    LEAT_FLOW_SKIP,     /* failed tasks are dropped and counted */
    LEAT_FLOW_GIVE_BACK /* failed tasks come out (and into groups) with status and error */
} leat_flow_policy;

typedef struct leat_flow_opts {
    uint32_t struct_size;
    const char *name;    /* for meters and logs; NULL = "flow"; copied */
    leat_pool *pool;     /* NULL = the shared pool */
    leat_budget *budget; /* NULL = its own budget with the default limit */
    leat_flow_mode mode;
    leat_flow_policy on_error;
    uint64_t max_errors; /* SKIP and GIVE_BACK: more failures than this fail the flow; 0 =
                          * no limit */
    uint32_t threads;    /* most CPU workers busy for this flow; 0 = the pool's */
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
    /* 1 = before the last gather or expand, only as many tasks are in flight as its threads and
     * its I/O depth can use: tasks admitted earlier would only wait, and leave the caches */
    uint32_t lean;
    leat_tuner *tuner;       /* the memory of earlier flows with the same stages; outlives the
                              * flow */
    uint32_t io_depth_max;   /* maximum for the controller; 0 = the size of the lane */
    uint32_t prefetch_first; /* initial value for the controller; 0 = 4, or what it learned
                              * before */
    uint32_t io_depth_first; /* the same for the I/O depth */
    /* slow start for distant storage: the I/O depth doubles every tick (250 ms) up to this, as long as the
     * rate grows and the budget has room; 0 = a change is judged before the next one */
    uint32_t io_depth_ramp;
} leat_flow_opts;

LEAT_API void leat_flow_opts_init_sized(leat_flow_opts *opts, uint32_t struct_size);
#define leat_flow_opts_init(o) leat_flow_opts_init_sized((o), (uint32_t)sizeof *(o))

/* opts may be NULL. */
LEAT_API int leat_flow_open(leat_flow **flow, const leat_flow_opts *opts, leat_error *err) LEAT_MUST_CHECK;

/* Appends a stage; the first must be a source, a sink the last. The struct is copied, its cookie
 * must outlive the flow. LEAT_EINVAL names the problem. */
LEAT_API int leat_flow_add(leat_flow *flow, const leat_stage *stage, leat_error *err) LEAT_MUST_CHECK;

/* LEAT_EBUDGET when the budget is below the needs of one task, and by how much; LEAT_EINVAL when
 * a stage asks for a GPU that the pool does not have. */
LEAT_API int leat_flow_start(leat_flow *flow, leat_error *err) LEAT_MUST_CHECK;

/* The next result, borrowed until leat_task_release; NULL after the last one. Waits up to
 * timeout_ms (0 = do not wait, -1 = no limit).
 *   LEAT_ETIMEDOUT  nothing came in time           LEAT_EAGAIN  leat_flow_interrupt was called
 *   LEAT_EBUDGET    (not final) nothing can come because borrowed results hold the memory
 *   LEAT_ECANCELED, LEAT_EFORK, or the error of the task that failed the flow: final. */
LEAT_API int leat_flow_next(leat_flow *flow, leat_task **task, int64_t timeout_ms,
                            leat_error *err) LEAT_MUST_CHECK;

/* For flows that end in a sink: waits until all tasks ended. Returns as leat_flow_next. */
LEAT_API int leat_flow_wait(leat_flow *flow, int64_t timeout_ms, leat_error *err) LEAT_MUST_CHECK;

/* From any thread, also while others wait in the calls above. interrupt: the waiting (or else the
 * next) leat_flow_next or _wait returns LEAT_EAGAIN. Async-signal-safe: it may be called from a
 * signal handler. cancel: no further process() starts; waiters return LEAT_ECANCELED. Does not
 * wait. kick: a source that returned LEAT_FLOW_LATER is asked again now. */
LEAT_API void leat_flow_interrupt(leat_flow *flow);
LEAT_API void leat_flow_cancel(leat_flow *flow);
LEAT_API void leat_flow_kick(leat_flow *flow);

/* Cancels, waits for the process() calls that are running (and for leat_task_done of pending
 * tasks), frees everything except borrowed results, which stay valid. NULL or a closed flow is
 * allowed. Not from inside process(), and not while another thread is in a call on the flow. */
LEAT_API void leat_flow_close(leat_flow **flow);

/* Pins a setting of the controller (value > 0), or lets the controller change it again (0). */
typedef enum leat_flow_knob {
    LEAT_KNOB_THREADS, /* CPU workers busy at once for this flow */
    LEAT_KNOB_IO_DEPTH,
    LEAT_KNOB_PREFETCH
} leat_flow_knob;
LEAT_API int leat_flow_pin(leat_flow *flow, leat_flow_knob knob, uint32_t value,
                           leat_error *err) LEAT_MUST_CHECK;

/* The controller's memory, kept across consecutive flows with the same stages (the epochs of a
 * loader): its settings, the changes it found useless, and its observations of a flow that ended
 * before it could judge. For one running flow at a time. Also keeps the last 64 decisions with
 * their reasons, which any thread may read at any time. */
LEAT_API int leat_tuner_open(leat_tuner **tuner, leat_error *err) LEAT_MUST_CHECK;
LEAT_API void leat_tuner_close(leat_tuner **tuner);

typedef struct leat_decision {
    uint64_t number; /* 0, 1, 2 … of this tuner */
    uint64_t at_ns;  /* of the monotonic clock */
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
    uint64_t bytes;                 /* sum of what they held afterwards */
    uint64_t bytes_max;             /* most that one held */
    uint64_t busy_ns;               /* in process(), all workers together */
    uint64_t wait_ns;               /* tasks ready but not yet run, all together */
    double readiness;               /* share of the time in which a task was ready and waiting */
    uint32_t running, ready, limit; /* now; limit 0 = no limit of the stage */
} leat_stage_stats;

typedef struct leat_flow_stats {
    uint32_t struct_size;
    uint32_t stages;
    uint64_t results;                   /* delivered to the consumer or ended in the sink */
    uint64_t failed, dropped, overruns; /* overruns: held more bytes than requested */
    uint64_t elapsed_ns;
    uint64_t consumer_wait_ns;            /* the consumer waited for a result */
    uint64_t blocked_ns;                  /* time with work blocked only by the memory budget */
    uint64_t loans, loan_bytes;           /* borrowed by the consumer now */
    uint64_t floor_bytes;                 /* minimum budget of this flow */
    uint32_t threads, io_depth, prefetch; /* settings now */
    uint64_t decisions;                   /* changes the controller made */
} leat_flow_stats;

/* Stage i of the flow, 0 = the source; LEAT_EINVAL past the last. Any time, any thread. */
LEAT_API int leat_flow_read(leat_flow *flow, leat_flow_stats *stats, uint32_t struct_size) LEAT_MUST_CHECK;
LEAT_API int leat_flow_read_stage(leat_flow *flow, uint32_t index, leat_stage_stats *stats) LEAT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
