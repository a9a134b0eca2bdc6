/* SPDX-License-Identifier: Apache-2.0 */
/* One id for each kind of event in the journal; systemd/tierprobe.catalog explains each. Never change one. */
#pragma once

#define MESSAGE_STARTED "5d3c0a5be1de4a0f9b6d4b6ee4a1c001"
#define MESSAGE_CONFIG_INVALID "5d3c0a5be1de4a0f9b6d4b6ee4a1c002"
#define MESSAGE_RELOADED "5d3c0a5be1de4a0f9b6d4b6ee4a1c003"
#define MESSAGE_RUN_STARTED "5d3c0a5be1de4a0f9b6d4b6ee4a1c004"
#define MESSAGE_RUN_PASSED "5d3c0a5be1de4a0f9b6d4b6ee4a1c005"
#define MESSAGE_RUN_FAILED "5d3c0a5be1de4a0f9b6d4b6ee4a1c006"
#define MESSAGE_RUN_INCONCLUSIVE "5d3c0a5be1de4a0f9b6d4b6ee4a1c007"
#define MESSAGE_RUN_STALLED "5d3c0a5be1de4a0f9b6d4b6ee4a1c008"
#define MESSAGE_RUN_REFUSED "5d3c0a5be1de4a0f9b6d4b6ee4a1c009"
#define MESSAGE_TARGET_CHANGED "5d3c0a5be1de4a0f9b6d4b6ee4a1c00a"
#define MESSAGE_VERDICT_CHANGED "5d3c0a5be1de4a0f9b6d4b6ee4a1c00b"
