/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for something to happen, without costing anything meanwhile. Private to src/http. */
#pragma once

#include "server.h"

#define WAITING_MAX 16 /* half of a listener's places */
#define WAIT_MAX_S 3600

/* Lets REQUEST rest until OVER says so, which is asked whenever the daemon's state has changed, or TIMEOUT_NS
 * have passed. To be called in its handler, or in the reader of its answer, which is called again then.
 * False: too many wait already, or out of memory; it does not rest. */
bool wait_begin(Request *request, uint64_t timeout_ns, bool (*over)(const void *userdata),
                const void *userdata);

/* For a handler with a parameter wait=SECONDS. OVER is asked with REQUEST. */
typedef enum WaitState {
        WAIT_RESTS,   /* the handler is called again */
        WAIT_OVER,    /* it is time to answer, or there was nothing to wait for */
        WAIT_REFUSED, /* PROBLEM says why */
} WaitState;

WaitState wait_for(Request *request, bool (*over)(const void *request), Problem *problem);

/* How many wait, of all listeners. */
size_t wait_count(const HttpServer *server);

/* The daemon's state has changed. */
void wait_follow(HttpServer *server);

/* The server ends: all of them go on at once, and none waits any more. */
void wait_end_all(HttpServer *server);

/* REQUEST goes, waiting or not. */
void wait_forget(Request *request);
