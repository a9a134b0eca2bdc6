/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a run that is under way must end for the sake of others, who write to the same device. Pure. */

#include "tierprobe/guards.h"

#define LOOK_NS NS_PER_S
#define PATIENCE_NS (3 * NS_PER_S) /* a checkpoint's burst ends no test */
#define BYTES_PER_MB 1024e3        /* wkB/s / 1000 */

bool guard_gives_way(const GuardRules *rules, GiveWay *give_way, uint64_t now_ns, uint64_t device_bytes,
                     uint64_t own_bytes, double *ret_mb_per_s)
{
        if (rules->abort_foreign_mb_per_s <= 0)
                return false;
        if (give_way->since_ns == 0) {
                *give_way = (GiveWay){ .since_ns = now_ns, .own_bytes = own_bytes };
                return false;
        }
        give_way->device_bytes += device_bytes;
        uint64_t time_ns = now_ns > give_way->since_ns ? now_ns - give_way->since_ns : 0;
        if (time_ns < LOOK_NS)
                return false;
        uint64_t own = own_bytes > give_way->own_bytes ? own_bytes - give_way->own_bytes : 0;
        uint64_t foreign = give_way->device_bytes > own ? give_way->device_bytes - own : 0;
        double mb_per_s = (double) foreign / BYTES_PER_MB / ((double) time_ns / 1e9);
        bool is_over = mb_per_s > rules->abort_foreign_mb_per_s;

        *give_way = (GiveWay){ .since_ns = now_ns,
                               .own_bytes = own_bytes,
                               .over_ns = is_over ? give_way->over_ns + time_ns : 0 };
        *ret_mb_per_s = mb_per_s;
        return give_way->over_ns >= PATIENCE_NS;
}
