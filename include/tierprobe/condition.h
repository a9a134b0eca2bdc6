/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of a test's surroundings, beside the counters: the limits that this process is under,
 * the state and the heat of the disks, and who waited for what. Evidence: what of it explains a verdict is
 * the judge's to say.
 *
 * Knows base and device. Bounded reads below the given roots, of what the kernel answers from memory: nothing
 * here waits for a disk, but for the heat, which a child reads. All text is UTF-8 without control characters.
 * Nothing here fails: what cannot be read is unknown, or not in the list.
 *
 * Attributes of /sys and /proc that may wait for a device, and are never read outside a child:
 *   hwmon/tempN_*          a command to the drive (nvme: SMART log and Get Features, drivetemp: SCT or SMART)
 *   current_link_speed, current_link_width, config     PCI configuration space of a device that may be gone
 *   ufs health_descriptor/..., nvme reset_controller, scsi rescan, delete     commands
 *   md/bitmap/..., bcache/...     a lock that is held across I/O
 *   quotactl(Q_GETQUOTA)   reads the quota file
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tierprobe/device.h"

/* ---- own limits: what holds this process back, and so every writer, which inherits it ---- */

typedef enum LimitKind {
        LIMIT_WRITE_BYTES, /* bytes a second: io.max wbps=, blkio.throttle.write_bps_device */
        LIMIT_WRITE_OPS,   /* writes a second, before the device splits them: io.max wiops=,
                            * blkio.throttle.write_iops_device */
        LIMIT_PROCESSORS,  /* processors: cpu.max, cpu.cfs_quota_us / cpu.cfs_period_us */
        LIMIT_FILE_SIZE,   /* bytes: RLIMIT_FSIZE */
        LIMIT_IDLE_IO,     /* I/O class idle, or scheduling policy idle: value is 0 */
        _LIMIT_KIND_MAX,
} LimitKind;

/* "write_bytes_per_s", "writes_per_s", "processors", "file_size_bytes", "idle_io" */
const char *limit_kind_to_string(LimitKind kind);

typedef struct OwnLimit {
        LimitKind kind;
        double value;
        char device[DEVICE_NAME_SIZE]; /* whose writes it limits: a node of the stack; empty: everything */
        char where[256]; /* "/sys/fs/cgroup/system.slice/db.service/io.max", "RLIMIT_FSIZE", "I/O class" */
        char text[96];   /* as it stands there: "8:0 wbps=104857600" */
} OwnLimit;

#define MAX_OWN_LIMITS 16 /* of more the strictest of each kind are kept */

typedef struct OwnLimits {
        OwnLimit items[MAX_OWN_LIMITS];
        size_t n;
} OwnLimits;

/* Reads the limits of the own control group and all its ancestors (v1 and v2, as far as they are visible) on
 * the devices of DEVICE's stack (NULL: none), of the processor, of file sizes, and the I/O class. The group
 * is the one in PROCFS/self/cgroup, its files lie below SYSFS/fs/cgroup. */
void own_limits_read(const DeviceRoots *roots, const Device *device, OwnLimits *ret);

/* What a test used of what may be limited; NAN or 0: not known. */
typedef struct LimitUse {
        double write_bytes_per_s, writes_per_s; /* of the judged row */
        double processors;                      /* of all writers: processor time / time */
        uint64_t file_bytes;                    /* the largest file that was, or was to be, written */
} LimitUse;

/* The limit that a test with that USE ran into: used to at least 85 % (blk-throttle lets through what it owes
 * in slices of 20 to 100 ms, so that a short window can show a little less than the limit). A rate on one
 * device of a stack is held against the whole row: with a stripe the row shows more than that, never less.
 * I/O class idle is reached always. NULL: none. Pure; borrowed from LIMITS. */
const OwnLimit *own_limits_reached(const OwnLimits *limits, const LimitUse *use);

/* ---- whom the kernel has killed ---- */

typedef struct MemoryKills {
        int64_t n;       /* processes, for want of memory, up to now; -1: not known */
        char where[256]; /* "/sys/fs/cgroup/system.slice/db.service/memory.events" */
} MemoryKills;

/* Reads how many processes of the own control group the kernel has killed for want of memory: the field
 * oom_kill of memory.events (v2, with the groups below), or of memory.oom_control (v1). */
void memory_kills_read(const DeviceRoots *roots, MemoryKills *ret);

/* ---- waiting: counters, to be read at both edges of the window ---- */

/* Cumulated; -1: not known. "Some": at least one task waited; "full": nothing else could run. All of one
 * type, so that they can be gone through. */
typedef struct WaitCounters {
        int64_t host_cpu_some_us, host_io_some_us, host_io_full_us, host_memory_some_us; /* PROCFS/pressure */
        int64_t own_cpu_some_us, own_io_some_us, own_io_full_us; /* the own control group's *.pressure (v2) */
        int64_t own_cpu_throttled_us;   /* cpu.stat, summed over the own control group and its ancestors: the
                                         * time in which LIMIT_PROCESSORS held it back */
        int64_t own_io_delayed_us;      /* io.stat of the own group on the stack's devices: what iocost and
                                         * iolatency held back. (io.max leaves no such trace: see own_io_some_us)
                                         */
        int64_t steal_ms, processor_ms; /* PROCFS/stat, all processors: taken by the hypervisor; all time */
        int64_t writers_ran_ns,
                writers_waited_ns; /* /proc/PID/schedstat: on a processor; runnable without one */
} WaitCounters;

/* Reads them; WRITERS are N pids (of this pid namespace, whatever the roots) whose times are summed: the
 * writers' while they live, i.e. before probe_release(). */
void wait_counters_read(const DeviceRoots *roots, const Device *device, const pid_t *writers, size_t n,
                        WaitCounters *ret);

/* AFTER - BEFORE in each field; -1 where either is unknown or it went back. Pure. */
void wait_counters_subtract(const WaitCounters *before, const WaitCounters *after, WaitCounters *ret);

/* ---- others' waiting ---- */

typedef struct OthersPressure {
        double percent;  /* of the last ten seconds some task of theirs waited for a disk; NAN: not known */
        char where[256]; /* whose it is: "/sys/fs/cgroup/system.slice/db.service" */
} OthersPressure;

/* Reads the highest io.pressure ("some", avg10) of the control groups of version 2 that stand beside the own
 * one and beside each of its ancestors. The host's own (/proc/pressure/io) would not do: a test waits for the
 * disk all the time, and that counts there. Not known without PSI (psi=1), without version 2, or where only
 * the own group is visible (in a container). */
void others_pressure_read(const DeviceRoots *roots, OthersPressure *ret);

/* ---- states: the kernel's own words on the stack ---- */

typedef struct StateFact {
        char device[DEVICE_NAME_SIZE]; /* a node of the stack, or the file system's name for it */
        const char *name;              /* static: "md.sync_action", "scsi.state", "ext4.errors", ... */
        char value[64];                /* as the kernel says it */
        char was[64];                  /* what it was before, when states_compare() found it changed */
        const char *meaning; /* static; NULL: as it should be. Else what it does to a test, as a clause: "the
                              * array is being rebuilt, checked or reshaped, which takes a part of its ..." */
        const char *if_changed; /* static; what it means, that it changed while the test ran; NULL: nothing */
} StateFact;

#define MAX_STATE_FACTS 64

typedef struct States {
        StateFact items[MAX_STATE_FACTS];
        size_t n;
        bool cut; /* there were more */
} States;

/* Reads what /sys shows to everybody of each node of DEVICE and of its file system: md (level, state, resync,
 * check, recovery, missing members), SCSI device state and time-outs, NVMe controller state and transport,
 * device-mapper suspended, btrfs (balance, resize, replace, write errors, missing devices; scrub is not
 * shown), ext4 errors, what was written in the life of the file system or shown by the drive itself (mmc),
 * virtual disks. fstrim is not shown anywhere; its discards are in the samples (d/s). */
void states_read(const DeviceRoots *roots, const Device *device, States *ret);

/* Fills `was` of each fact in AFTER that BEFORE has with another value; where the change itself means
 * something (commands timed out), that becomes its meaning. Pure. */
void states_compare(const States *before, States *after);

/* The first fact that is not as it should be; NULL: none. */
const StateFact *states_worst(const States *states);

/* ---- heat ---- */

/* Degrees Celsius; NAN: not known. */
typedef struct HeatSensor {
        char device[DEVICE_NAME_SIZE];    /* the node it belongs to */
        char label[64];                   /* "Composite", "Sensor 1"; "temp1" where the driver has no name */
        double before_c, peak_c, after_c; /* at the first, hottest and last reading */
        double max_c, crit_c;             /* the drive's own limits: it slows down; it gives up */
} HeatSensor;

#define MAX_HEAT_SENSORS 32

typedef struct Heat {
        HeatSensor items[MAX_HEAT_SENSORS];
        size_t n;
        unsigned readings; /* complete ones; 0: none has come back yet */
} Heat;

/* Reads all sensors (hwmon of nvme and drivetemp) of the nodes of DEVICE once: the first call fills
 * everything, later ones peak and after. May wait for the drive: for children only. */
void heat_read(const DeviceRoots *roots, const Device *device, Heat *heat);

typedef struct HeatWatch HeatWatch;

/* Starts a child that reads them now and every EVERY_NS; nothing of it can hold up the caller. 0 or negative
 * errno (-ENODEV: the stack has no sensor). */
int heat_watch_new(const DeviceRoots *roots, const Device *device, uint64_t every_ns, HeatWatch **ret);
HeatWatch *heat_watch_free(HeatWatch *watch); /* kills the child */
void heat_watch_freep(HeatWatch **watch);

/* What has been read so far, from memory: never blocks. */
void heat_watch_get(const HeatWatch *watch, Heat *ret);

/* The sensor that came nearest to, and reached, its limit (max, or crit where there is no max); NULL: none.
 */
const HeatSensor *heat_crossed(const Heat *heat);
