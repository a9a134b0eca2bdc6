/* SPDX-License-Identifier: Apache-2.0 */
/* A long answer, compressed while it is made. Private to src/http. */
#pragma once

#include "stream.h"

/* Puts a compressing source in the place of SOURCE, which never waits: STREAM_WAIT is a failure. 0, or -1
 * when out of memory; SOURCE is then as it was. */
int gzip_source(StreamSource *source);
