/* SPDX-License-Identifier: Apache-2.0
 *
 * The scheduler's state and its transitions. It is a state machine: every function below is called with the
 * pool's lock held (or by the one thread of deterministic mode), gets the time as an argument, starts no
 * thread and never waits. Threads (pool.c) and the replay (replay.c) call the same functions.
 *
 *   stages   source  map  map | gather  map | …      a gather begins a segment, an expand ends
 *   segments [0              ] [1          ]          one: inside a segment one task stays one
 *                                                     task, so its number stays dense
 *
 * A segment keeps its tasks in a ring indexed by number. Failed and dropped tasks stay in their
 * slot as tombstones until their turn. So order, groups and errors do not depend on the schedule.
 */
#ifndef LEAT_ENGINE_SCHED_H
#define LEAT_ENGINE_SCHED_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/rng.h"
#include "base/thread.h"
#include "engine/budget.h"
#include "engine/placement.h"

enum {
    LEAT__STAGES_MAX = 30, /* limited by the bits of leat_flow.dirty, one per segment */
    LEAT__TAKE_MAX = 32,   /* tasks a worker takes per lock hold */
    LEAT__LANE_MAX = 256,  /* threads per lane, and tasks in flight per I/O stage */
    LEAT__GPUS_MAX = 32,
    LEAT__KIDS_AHEAD = 64,  /* children that a parent may make before it is first in order */
    LEAT__SPARE_MAX = 4096, /* nodes a flow keeps for reuse */
    LEAT__LATER_MS = 10     /* time before a source that returned LEAT_FLOW_LATER is called again */
};

typedef enum leat__node_state {
    LEAT__NODE_READY,   /* ready to run at `stage` */
    LEAT__NODE_RUNNING, /* a worker runs it, or leat_task_done will be called */
    LEAT__NODE_ARRIVED, /* at the end of its segment, waiting for its turn */
    LEAT__NODE_OUT,     /* waits for the consumer */
    LEAT__NODE_LOAN     /* borrowed by the consumer */
} leat__node_state;

typedef struct leat__node leat__node;

typedef struct leat__list {
    leat__node *head, *tail;
    uint32_t count;
} leat__list;

struct leat__node {
    leat_task pub; /* first member: a leat_task * is cast to a leat__node * */
    leat_flow *flow;
    leat__node *next, *prev; /* in one list at a time */
    uint64_t held;           /* bytes charged, also while it waits between stages */
    uint64_t grant;          /* additional bytes charged while it runs */
    uint64_t since_ns;       /* time it became ready or started */
    leat_error *why;         /* owned; pub.error points to it */
    leat__node **members;    /* owned; pub.members points to it */
    leat__list kids;         /* expand: children not yet numbered */
    leat__list fresh;        /* children of the running process() call; private to its worker */
    uint64_t fresh_bytes;
    int32_t rc; /* result of the last process() call */
    uint16_t stage, segment;
    uint8_t state;
    uint8_t cat; /* the category `held` is charged to */
    bool dropped;
    bool fatal;   /* failed with an error that no policy skips */
    bool async;   /* process() returned LEAT_FLOW_PENDING */
    bool pending; /* async, and process() has returned: the task waits for leat_task_done */
    bool early;   /* leat_task_done was called before process() returned */
};

typedef enum leat__ctx_state {
    LEAT__CTX_NONE,
    LEAT__CTX_GRANTED, /* resources are granted, setup() has not run */
    LEAT__CTX_READY
} leat__ctx_state;

typedef struct leat__ctx {
    void *ptr;
    uint8_t state;
    int16_t gpu;
} leat__ctx;

typedef struct leat__task_counts {
    uint64_t items, failed, bytes, busy_ns, wait_ns;
} leat__task_counts;

typedef struct leat__flow_meters leat__flow_meters;

typedef struct leat__stage {
    leat_stage decl; /* decl.name points to `name` */
    char name[32];
    uint32_t segment;
    uint32_t limit; /* maximum tasks at once; UINT32_MAX = no limit */
    uint32_t cpu_milli;
    uint64_t in_bound;         /* maximum bytes that a task holds when it enters the stage */
    uint64_t scratch, out;     /* declared, or measured if larger */
    leat__list ready;          /* not used by ordered stages and the source */
    uint64_t turn;             /* ordered: the number that may run next */
    uint32_t running;          /* tasks running */
    uint32_t workers, pending; /* both count against `limit`: workers in process(), and pending tasks */
    bool answers_later;
    bool starved;           /* its next task was refused bytes … */
    uint64_t starved_epoch; /* … at this value of the pool's epoch */
    leat__ctx *ctx;         /* one per worker of the lane */
    uint32_t ctx_count;     /* contexts that have their resources */
    double cost_ns;         /* moving mean of one process() call */
    /* totals */
    uint64_t items, failed, dropped, bytes, bytes_max, busy_ns, wait_ns;
    uint64_t ready_since_ns, ready_ns; /* time with a non-empty queue */
    leat__task_counts told;            /* the part of these totals that is already in the meters */
} leat__stage;

typedef enum leat__end { LEAT__END_EXIT, LEAT__END_SINK, LEAT__END_GATHER, LEAT__END_EXPAND } leat__end;

typedef struct leat__segment {
    uint32_t first, last; /* stages [first, last) */
    leat__end end;
    leat__node **ring;
    uint64_t mask;
    uint64_t base;      /* lowest number whose slot may be taken */
    uint64_t low;       /* lowest number that has not left the segment in order */
    uint64_t next;      /* number of the next task to enter */
    uint32_t inside;    /* entered, not yet retired */
    uint32_t window;    /* maximum of `inside` */
    uint64_t filled;    /* how often the window became full */
    bool lean;          /* the window counts only tasks in flight, not tasks that wait in `group` */
    bool closed;        /* nothing more will enter */
    leat__node **group; /* before a gather: members so far */
    uint32_t group_count;
    bool group_full;
} leat__segment;

typedef enum leat__flow_state {
    LEAT__FLOW_OPEN,
    LEAT__FLOW_RUNNING,
    LEAT__FLOW_ENDED,
    LEAT__FLOW_FAILED,
    LEAT__FLOW_CANCELED
} leat__flow_state;

typedef struct leat__knob {
    uint32_t value;
    bool pinned;
} leat__knob;

/* Actions of the controller; the first three raise the knobs. */
enum { LEAT__ACTION_FEWER_THREADS = 3, LEAT__ACTIONS };

/* A rate over ticks with the same settings, weighted towards recent ticks; the last eight at
 * most. */
typedef struct leat__rate_mean {
    double mean, var;
    uint32_t ticks;
} leat__rate_mean;

/* How long an action is not retried, and the conditions when it was useless. */
typedef struct leat__retry_wait {
    uint32_t ticks;  /* ticks left */
    uint32_t futile; /* consecutive useless attempts */
    uint32_t stage;
    uint32_t changed; /* consecutive ticks with changed conditions */
    double cost_ns, step_ns;
} leat__retry_wait;

/* The controller's memory: the counters at its last tick, to compute differences, and the change on trial. */
typedef struct leat__control_state {
    uint64_t at_ns, results, consumer_wait_ns, blocked_ns, filled;
    uint64_t items[LEAT__STAGES_MAX], busy_ns[LEAT__STAGES_MAX], ready_ns[LEAT__STAGES_MAX];
    leat__rate_mean rate[LEAT__STAGES_MAX]; /* items/s with the current settings */
    double cost_ns[LEAT__STAGES_MAX];       /* per task */
    bool changing;                          /* the last tick was skipped */
    int32_t tried;                          /* knob + 1 of the change being judged, 0 = none */
    uint32_t tried_from, tried_stage;
    leat__rate_mean tried_rate;
    double tried_cost_ns, tried_step_ns; /* cost per task and step time before that change */
    uint32_t judging;                    /* ticks since the change */
    uint64_t judged_items;
    bool ramped;      /* the slow start of the I/O depth is over */
    double ramp_rate; /* items/s in the last tick of the slow start */
    bool elastic;     /* the last increase did not make reads slower, so the next may be larger */
    bool narrow;      /* more reads in flight only increased latency, so fewer may be enough */
    leat__retry_wait wait[LEAT__ACTIONS];
    uint32_t calm;   /* consecutive ticks in which the consumer did not wait */
    uint32_t rested; /* ticks left in which a need for workers means that idling them was a mistake */
} leat__control_state;

struct leat_flow {
    leat_flow *next; /* in the pool's list */
    leat_pool *pool;
    leat_budget *budget;
    leat__budget_listener listener;
    char name[32];
    const char *results_name; /* for messages, such as "batches"; NULL = "results" */
    leat_flow_opts opts;
    uint32_t fork_generation;
    leat__stage *stages;
    uint32_t stage_count;
    leat__segment *segments;
    uint32_t segment_count;
    uint64_t dirty; /* segments to advance, one bit each */

    leat__flow_state state;
    atomic_bool stop; /* no further process() starts */
    leat_error error; /* why the flow failed */
    uint32_t running; /* tasks running or pending */
    uint32_t reaping; /* nodes being freed */
    uint32_t busy[LEAT_LANES];
    bool source_ended;
    uint64_t source_later_ns; /* do not call the source before this time */
    uint64_t floor;
    uint64_t out_bound; /* maximum bytes that one result holds */
    uint64_t reclaim;   /* bytes its senior task was refused; the keepers of caches are asked to free them */
    bool reclaimed;     /* the keepers were asked since the last change */
    uint64_t moved_ns;  /* time a task was last started */
    atomic_uint_fast64_t charged;
    uint64_t scan; /* number of the pool's scan that last visited it */
    double vtime;  /* ns of work done for it; the flow with the least goes first */
    leat__knob knobs[3];
    leat__list out;
    leat__list spare;    /* nodes for reuse */
    leat__bell *changed; /* wakes the consumer; the flow's own bell, or one that outlives it */
    leat__bell own_bell;
    uint32_t waiters;
    uint64_t wait_since_ns; /* start of the first wait */
    atomic_bool *interrupted, own_interrupted;
    bool closing;     /* a thread waits for `running` and `reaping` to be 0 */
    bool tell_others; /* bytes were released that another pool may wait for */

    /* Borrowed results outlive the flow: `refs` counts the handle and the borrowed results.
     * `lending` guards `attached` (and borrowed results once detached) and is taken before the
     * pool's lock. */
    leat__mutex lending;
    bool attached;
    atomic_uint refs;
    uint32_t loans;
    uint64_t loan_bytes;

    uint64_t started_ns, ended_ns;
    uint64_t results, failed, dropped, overruns, consumer_wait_ns, decisions;
    uint64_t blocked_since_ns, blocked_ns;
    leat__control_state control;
    leat_tuner *tuner; /* owned by the caller, or NULL */
    leat__flow_meters *meters;
};

/* One thread of a lane, or a virtual one. */
typedef struct leat__worker {
    leat_pool *pool;
    leat_lane lane;
    uint32_t index;
    uint32_t place; /* index of its NUMA node, if there is a placement */
    leat__thread thread;
    leat_flow *flow; /* the flow of its current tasks */
    leat__stage *stage;
    leat__node *tasks[LEAT__TAKE_MAX];
    uint32_t count;
    double charged_vtime;
    uint64_t started_ns, ended_ns;
    int setup_rc;
    leat_error setup_error;
} leat__worker;

typedef struct leat__lane {
    leat__worker *workers;
    uint32_t max;     /* maximum number of threads */
    uint32_t started; /* threads running */
    uint32_t idle, waking;
    leat__cond wake;
    leat__cond parked; /* for CPU workers that are not active; separate, so that they take no wake-ups */
} leat__lane;

struct leat_pool {
    leat__mutex lock;
    uint32_t refs; /* guarded by the lock of `shared` when shared */
    bool shared, stopping;
    uint32_t fork_generation;
    leat__lane lanes[LEAT_LANES];
    leat__placement *placement; /* NULL on one NUMA node */
    uint32_t active;            /* CPU workers allowed to run */
    uint32_t cpu_milli_used;
    uint32_t gpus;
    uint32_t gpu_milli_free[LEAT__GPUS_MAX];
    uint64_t gpu_memory, gpu_memory_free[LEAT__GPUS_MAX];
    leat_flow *flows;
    uint64_t now_ns; /* time of the last take or settlement; it never goes back */
    uint64_t scan;
    double vclock;      /* vtime of the flow served last */
    bool stirred;       /* a scan without a take changed something: others should scan again */
    bool reclaims;      /* a flow's `reclaim` is set */
    uint64_t epoch;     /* changes whenever refused requests should be retried */
    leat__list dead;    /* to be freed by the thread that unlocks */
    struct leat__note { /* lines for the flows' logs, written by the thread that unlocks */
        leat_flow *flow;
        leat_log_level level;
        char text[224];
    } notes[4];
    uint32_t note_count;
    leat__thread controller;
    leat__cond controller_wake;
    struct leat__replay *replay; /* deterministic mode, NULL with threads */
};

/* sched.c */
uint32_t leat__sched_take(leat_pool *p, leat__worker *w, uint64_t now);
/* Settles the tasks of a worker. `ended`: when they were done; `now`: the time under the lock. */
void leat__sched_settle(leat_pool *p, leat__worker *w, uint64_t ended, uint64_t now);
void leat__sched_settle_pending(leat__node *n, uint64_t now);
bool leat__sched_has_work(leat_pool *p, leat_lane lane, uint64_t now);
/* True when a stage of the lane needs bytes or a GPU per worker that not every thread has. A woken thread may
 * then be unable to run the stage. */
bool leat__sched_scarce(const leat_pool *p, leat_lane lane);
uint64_t leat__sched_next_timer(leat_pool *p, leat_lane lane); /* UINT64_MAX = none */
void leat__sched_run(leat__worker *w);                         /* the only function called WITHOUT the lock */
uint64_t leat__sched_floor(const leat_flow *f);
void leat__sched_bounds(leat_flow *f);
void leat__sched_ctx_drop(leat_flow *f, leat__stage *s, leat__ctx *ctx);

/* segment.c */
int leat__segments_build(leat_flow *f, uint32_t parallel, leat_error *err) LEAT_MUST_CHECK;
void leat__segments_window(leat_flow *f);
uint32_t leat__segment_room(const leat__segment *seg); /* number of tasks that may enter now */
void leat__segment_enter(leat_flow *f, uint32_t index, leat__node *n, uint64_t now);
void leat__segment_leave(leat_flow *f, leat__node *n); /* after it left in order: frees its slot */
void leat__node_forward(leat_flow *f, leat__node *n, uint32_t stage, uint64_t now);
void leat__flow_advance(leat_flow *f, uint64_t now);
void leat__flow_at_least(leat_flow *f, leat_flow_knob knob,
                         uint32_t value); /* raises a knob to `value`, unless it is pinned */
void leat__flow_fail(leat_flow *f, const leat__node *n, int code, const char *message);
leat__node *leat__segment_at(const leat__segment *seg, uint64_t seq);
/* For a stopped flow: frees up to `most` of the remaining nodes; true when more remain. */
bool leat__segments_drain(leat_flow *f, uint32_t most);
void leat__segments_free(leat_flow *f);

/* task.c */
leat__node *leat__node_new(leat_flow *f);
void leat__node_bury(leat_flow *f, leat__node *n); /* moves it to the pool's dead list */
void leat__node_fail(leat_flow *f, leat__node *n, int rc, const leat_error *err);
void leat__node_spare(leat_flow *f, leat__node *n);
void leat__flow_unref(leat_flow *f);
/* Free dead nodes: release() and the bytes without the lock, then the nodes with it. */
void leat__nodes_release(leat__list *dead);
void leat__nodes_recycle(leat_pool *p, leat__list *dead);
/* After process(), without the lock: charges bytes held beyond the grant, or fails the task. */
void leat__node_audit(leat__stage *s, leat__node *n, leat_error *err);

void leat__list_push(leat__list *l, leat__node *n);
leat__node *leat__list_pop(leat__list *l);
void leat__list_remove(leat__list *l, leat__node *n);

/* pool.c */
void leat__pool_lock(leat_pool *p);
/* Wakes workers that have work, unlocks, and frees dead tasks. */
void leat__pool_unlock(leat_pool *p);
uint64_t leat__pool_now(leat_pool *p);
/* Queues a line for the flow's log. The callback is user code, so it never runs under the lock.
 * Locked. */
void leat__pool_note(leat_flow *f, leat_log_level level, const char *fmt, ...) LEAT_PRINTF(3, 4);
void leat__pool_freed(void *pool); /* a budget's listener */
int leat__pool_attach(leat_pool *p, leat_flow *f, leat_error *err) LEAT_MUST_CHECK;
void leat__pool_detach(leat_pool *p, leat_flow *f);
void leat__pool_ref(leat_pool *p);

/* lane.c */
int leat__lane_open(leat__lane *l, leat_pool *p, leat_lane kind, uint32_t max,
                    leat_error *err) LEAT_MUST_CHECK;
int leat__lane_start(leat__lane *l, uint32_t count, leat_error *err) LEAT_MUST_CHECK;
void leat__lane_join(leat__lane *l); /* join all lanes before closing any, because threads read all lanes */
void leat__lane_close(leat__lane *l);

/* contain.c: runs process() with faults caught. Returns its result, or LEAT_EINTERNAL with the
 * signal in err and *crashed set. */
int leat__contain_install(leat_error *err) LEAT_MUST_CHECK;
int leat__contain_call(const leat__stage *s, void *ctx, leat_task *task, bool *crashed, leat_error *err);

#endif
