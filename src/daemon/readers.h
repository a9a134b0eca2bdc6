/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon as its readers see it, and what they may ask of it: the table of calls that http knows. */
#pragma once

#include "parts.h"

#include "tierprobe/http.h"
#include "tierprobe/views.h"

void readers_view_service(const Parts *parts, ServiceView *ret);

/* PARTS must outlive it. */
Service readers_service(Parts *parts);
