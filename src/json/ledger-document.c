/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger as a file:
 *
 *   {"schema": 1,
 *    "disks": [{"disk": "wwid:eui.0025...", "lifetime_bytes": 20971520000, "last_end_at": "...",
 *               "written": [{"from": "...", "to": "...", "bytes": 10485760000}]}],
 *    "runs": [{"id": "...", "asked_at": "...", "reserved_bytes": 10485760000, "counted_bytes": 1048576,
 *              "disks": ["wwid:eui.0025..."]}]}
 */

#include "json-internal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/clock.h"
#include "tierprobe/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- out ---- */

static json_t *print_entries(const LedgerDisk *disk)
{
        json_auto_t *array = json_array();

        if (!array)
                return NULL;
        for (size_t i = 0; i < disk->n_entries; i++)
                if (json_array_append_new(
                            array, OBJECT({ "from", json_time_or_null(disk->entries[i].first_real_ns) },
                                          { "to", json_time_or_null(disk->entries[i].last_real_ns) },
                                          { "bytes", json_u64(disk->entries[i].bytes) })) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

static json_t *print_disks(const Ledger *ledger)
{
        json_auto_t *array = json_array();

        if (!array)
                return NULL;
        for (size_t i = 0; i < ledger->n_disks; i++) {
                const LedgerDisk *disk = &ledger->disks[i];

                if (json_array_append_new(array,
                                          OBJECT({ "disk", json_text(disk->key) },
                                                 { "lifetime_bytes", json_u64(disk->lifetime_bytes) },
                                                 { "last_end_at", json_time_or_null(disk->last_end_real_ns) },
                                                 { "written", print_entries(disk) })) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

static json_t *print_keys(const LedgerRun *run)
{
        json_auto_t *array = json_array();

        if (!array)
                return NULL;
        for (size_t i = 0; i < run->n_disks; i++)
                if (json_array_append_new(array, json_text(run->disks[i])) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

static json_t *print_runs(const Ledger *ledger)
{
        json_auto_t *array = json_array();

        if (!array)
                return NULL;
        for (size_t i = 0; i < ledger->n_runs; i++) {
                const LedgerRun *run = &ledger->runs[i];

                if (json_array_append_new(array, OBJECT({ "id", json_text(run->id) },
                                                        { "asked_at", json_time_or_null(run->asked_real_ns) },
                                                        { "reserved_bytes", json_u64(run->reserved_bytes) },
                                                        { "counted_bytes", json_u64(run->counted_bytes) },
                                                        { "disks", print_keys(run) })) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

json_t *json_ledger(const Ledger *ledger)
{
        return OBJECT({ "schema", json_integer(JSON_SCHEMA) }, { "disks", print_disks(ledger) },
                      { "runs", print_runs(ledger) });
}

/* ---- in ---- */

static uint64_t read_bytes(const json_t *object, const char *key)
{
        json_int_t value = json_integer_value(json_object_get(object, key));

        return value > 0 ? (uint64_t) value : 0;
}

static int64_t read_time(const json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));
        int64_t real_ns = 0;

        return text && rfc3339_parse(text, &real_ns) == 0 && real_ns > 0 ? real_ns : 0;
}

static void read_entries(const json_t *array, LedgerDisk *disk)
{
        const json_t *item = NULL;
        size_t i = 0;

        json_array_foreach(array, i, item)
        {
                LedgerEntry entry = { .first_real_ns = read_time(item, "from"),
                                      .last_real_ns = read_time(item, "to"),
                                      .bytes = read_bytes(item, "bytes") };
                const LedgerEntry *before = disk->n_entries > 0 ? &disk->entries[disk->n_entries - 1] : NULL;

                if (disk->n_entries == LEDGER_MAX_ENTRIES)
                        return;
                /* What is out of order counts, at the latest time that it can be of. */
                if (before && entry.first_real_ns < before->first_real_ns)
                        entry.first_real_ns = before->first_real_ns;
                if (entry.last_real_ns < entry.first_real_ns)
                        entry.last_real_ns = entry.first_real_ns;
                disk->entries[disk->n_entries++] = entry;
        }
}

static int read_disk(const json_t *item, Ledger *ledger)
{
        const char *key = json_string_value(json_object_get(item, "disk"));

        if (!key || !*key || strlen(key) >= DISK_KEY_SIZE)
                return 0;
        LedgerDisk *disk = ledger_disk(ledger, key);
        if (!disk)
                return ledger->n_disks < LEDGER_MAX_DISKS ? -ENOMEM : 0;
        disk->lifetime_bytes = read_bytes(item, "lifetime_bytes");
        disk->last_end_real_ns = read_time(item, "last_end_at");
        disk->n_entries = 0;
        read_entries(json_object_get(item, "written"), disk);
        return 0;
}

static int read_run(const json_t *item, Ledger *ledger)
{
        const char *id = json_string_value(json_object_get(item, "id"));
        const json_t *disks = json_object_get(item, "disks");
        size_t n = 0, n_listed = json_array_size(disks);

        if (!id || !run_id_is_valid(id) || n_listed > LEDGER_MAX_DISKS)
                return 0;
        _cleanup_free_ DiskKey *keys = calloc(n_listed + 1, sizeof *keys);
        if (!keys)
                return -ENOMEM;
        for (size_t i = 0; i < n_listed; i++) {
                const char *key = json_string_value(json_array_get(disks, i));

                if (key && *key && strlen(key) < sizeof *keys)
                        memcpy(keys[n++], key, strlen(key) + 1);
        }
        int r = ledger_reserve(ledger, id, (const DiskKey *) keys, n, read_bytes(item, "reserved_bytes"),
                               read_time(item, "asked_at"));
        if (r == -ENOSPC || r == -EEXIST)
                return 0;
        for (size_t i = 0; r >= 0 && i < ledger->n_runs; i++)
                if (strcmp(ledger->runs[i].id, id) == 0)
                        ledger->runs[i].counted_bytes = read_bytes(item, "counted_bytes");
        return r;
}

static int read_all(const json_t *array, int (*read_one)(const json_t *item, Ledger *ledger), Ledger *ledger)
{
        const json_t *item = NULL;
        size_t i = 0;
        int r = 0;

        json_array_foreach(array, i, item)
        {
                r = read_one(item, ledger);
                if (r < 0)
                        break;
        }
        return r;
}

int json_read_ledger(const char *text, size_t size, Ledger **ret)
{
        _cleanup_(ledger_freep) Ledger *ledger = NULL;

        json_auto_t *document = json_loadb(text, size, JSON_ALLOW_NUL, NULL);
        if (!json_is_object(document))
                return -EBADMSG;
        int r = ledger_new(&ledger);
        if (r >= 0)
                r = read_all(json_object_get(document, "disks"), read_disk, ledger);
        if (r >= 0)
                r = read_all(json_object_get(document, "runs"), read_run, ledger);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(ledger);
        return 0;
}
