/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler's clock. Touches the event loop alone. */

#include "ticker.h"

#include "tierprobe/clock.h"
#include "tierprobe/iostat.h"

#include <stdbool.h>

#define ACCURACY_US 1 /* accuracy: 0 would mean 250 ms, by which systemd groups timers */

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
        Ticker *ticker = userdata;
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), missed;

        (void) usec;
        histogram_add(&ticker->lateness, now_ns > ticker->next_ns ? now_ns - ticker->next_ns : 0);
        ticker->events.tick(ticker->events.userdata);

        ticker->next_ns = tick_after(ticker->next_ns, ticker->interval_ns, now_ns, &missed);
        ticker->missed += missed;
        int r = sd_event_source_set_time(source, ticker->next_ns / NS_PER_US);
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int ticker_start(Ticker *ticker, sd_event *event, uint64_t interval_ns, const TickerEvents *events)
{
        ticker_stop(ticker);
        ticker->events = *events;
        ticker->interval_ns = interval_ns;
        ticker->next_ns = clock_ns(CLOCK_MONOTONIC);
        int r = sd_event_add_time(event, &ticker->timer, CLOCK_MONOTONIC, ticker->next_ns / NS_PER_US,
                                  ACCURACY_US, on_tick, ticker);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(ticker->timer, "sample-tick");
        /* A daemon whose sampler has stopped must not go on unnoticed: the loop ends. */
        (void) sd_event_source_set_exit_on_failure(ticker->timer, true);
        return sd_event_source_set_priority(ticker->timer, SD_EVENT_PRIORITY_IMPORTANT);
}

void ticker_stop(Ticker *ticker)
{
        ticker->timer = sd_event_source_disable_unref(ticker->timer);
}
