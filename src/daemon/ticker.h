/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler's clock: calls at a fixed interval, and counts what came too late. Knows base. */
#pragma once

#include <stdint.h>

#include <systemd/sd-event.h>

#include "tierprobe/histogram.h"

typedef struct TickerEvents {
        void *userdata;
        void (*tick)(void *userdata);
} TickerEvents;

/* To be read by anyone, changed by ticker.c alone. */
typedef struct Ticker {
        TickerEvents events;
        uint64_t interval_ns, next_ns; /* MONOTONIC */
        sd_event_source *timer;
        uint64_t missed;    /* ticks that came too late to be taken */
        Histogram lateness; /* of the others */
} Ticker;

/* Begins, or begins anew at another interval; the first tick comes at once. 0 or negative errno. */
int ticker_start(Ticker *ticker, sd_event *event, uint64_t interval_ns, const TickerEvents *events);
void ticker_stop(Ticker *ticker);
