/* SPDX-License-Identifier: Apache-2.0 */
/* The whole daemon as it is now, for documents about all of it. Private to src/http. */
#pragma once

#include "tierprobe/http.h"

/* Fills RET_VIEW and returns views of its n_targets targets, owned by the caller, free(); NULL when out of
 * memory. */
TargetView *view_all(const Service *service, ServiceView *ret_view);
