/* SPDX-License-Identifier: Apache-2.0 */
/* The journal: where log lines go, and the daemon's events with their fields. The only place that knows
 * sd-journal. */

#include "journal.h"

#include "tierprobe/cleanup.h"
#include "tierprobe/file.h"
#include "tierprobe/log.h"
#include "tierprobe/message-ids.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

/* Location fields would name this file for every line. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#define MAX_FIELDS 16

static void sink_journal(const LogRecord *record)
{
        struct iovec iov[MAX_FIELDS + 3];
        char *texts[MAX_FIELDS + 3] = { 0 };
        int n = 0;

        for (size_t i = 0; i < record->n_fields && i < MAX_FIELDS; i++)
                texts[n++] = path_format("%s=%s", record->fields[i].name, record->fields[i].value);
        texts[n++] = path_format("MESSAGE=%s", record->message);
        texts[n++] = path_format("PRIORITY=%d", record->level);
        if (record->message_id)
                texts[n++] = path_format("MESSAGE_ID=%s", record->message_id);
        int kept = 0;
        for (int i = 0; i < n; i++)
                if (texts[i])
                        iov[kept++] = (struct iovec){ .iov_base = texts[i], .iov_len = strlen(texts[i]) };
        /* No journald there: nothing more can be done, and stderr is not connected to anyone. */
        (void) sd_journal_sendv(iov, kept);
        for (int i = 0; i < n; i++)
                free(texts[i]);
}

void journal_init(void)
{
        const char *stream = getenv("JOURNAL_STREAM");
        uintmax_t dev = 0, ino = 0;
        struct stat st;

        /* systemd.exec(5): DEVICE:INODE of what it connected stderr to; a redirected stderr differs. */
        if (!stream || sscanf(stream, "%ju:%ju", &dev, &ino) != 2 || fstat(STDERR_FILENO, &st) < 0)
                return;
        if (dev == (uintmax_t) st.st_dev && ino == (uintmax_t) st.st_ino)
                log_set_sink(sink_journal);
}

static void journal_run(int level, const char *id, const RunRecord *record, const char *message)
{
        const Judgement *judgement = &record->judgement;
        LogField fields[MAX_FIELDS];
        char figures[N_CRITERIA][32], reasons[512] = "";
        size_t n = 0, at = 0;

        fields[n++] = (LogField){ "TIERPROBE_RUN_ID", record->id };
        fields[n++] = (LogField){ "TIERPROBE_TARGET", record->target };
        if (record->device && record->device->name[0])
                fields[n++] = (LogField){ "TIERPROBE_DEVICE", record->device->name };
        if (run_state_ended(record->state)) {
                fields[n++] = (LogField){ "TIERPROBE_VERDICT", verdict_to_string(judgement->verdict) };
                for (size_t i = 0; i < judgement->reasons.n && at < sizeof reasons; i++)
                        at += (size_t) snprintf(reasons + at, sizeof reasons - at, "%s%s", i ? "," : "",
                                                reason_to_string(judgement->reasons.items[i].code));
                if (reasons[0])
                        fields[n++] = (LogField){ "TIERPROBE_REASON", reasons };
                for (CriterionName name = 0; name < N_CRITERIA; name++) {
                        const CriterionRule *rule = &criterion_rules[name];
                        double value = criterion_value(name, &judgement->measured) * rule->per_unit;

                        if (!isfinite(value))
                                continue;
                        (void) snprintf(figures[name], sizeof figures[name], "%.2f", value);
                        fields[n++] = (LogField){ rule->field, figures[name] };
                }
        }
        log_event(level, id, fields, n, "%s", message);
}

void journal_run_started(const RunRecord *record)
{
        char message[512];

        (void) snprintf(message, sizeof message, "run %s of %s started (%s, profile %s) on %s", record->id,
                        record->target, run_trigger_to_string(record->trigger), record->profile.name,
                        record->device ? record->device->name : "no device");
        journal_run(LOG_INFO, MESSAGE_RUN_STARTED, record, message);
}

void journal_run_ended(const RunRecord *record)
{
        const Judgement *judgement = &record->judgement;
        const char *device = record->device && record->device->name[0] ? record->device->name : "no device";
        const char *id = MESSAGE_RUN_INCONCLUSIVE;
        int level = LOG_WARNING;
        char message[1600], figures[256] = "";
        size_t at = 0;

        switch (judgement->verdict) {
        case VERDICT_PASS:
                id = MESSAGE_RUN_PASSED;
                level = LOG_NOTICE;
                break;
        case VERDICT_FAIL:
                id = MESSAGE_RUN_FAILED;
                level = LOG_ERR;
                break;
        case VERDICT_NEVER_RUN:
        case VERDICT_INCONCLUSIVE:
        case _VERDICT_MAX:
                break;
        }
        for (CriterionName name = 0; name < N_CRITERIA && at < sizeof figures; name++) {
                const CriterionRule *rule = &criterion_rules[name];
                double value = criterion_value(name, &judgement->measured);

                if (isfinite(value))
                        at += (size_t) snprintf(figures + at, sizeof figures - at, "%s %s %.2f %s (%s %g)",
                                                at > 0 ? "," : ":", rule->title, value, rule->unit,
                                                criterion_relation(name), record->limits.value[name]);
        }
        at = (size_t) snprintf(message, sizeof message, "run %s of %s on %s: %s%s", record->id,
                               record->target, device, verdict_to_string(judgement->verdict), figures);
        for (size_t i = 0; i < judgement->reasons.n && at < sizeof message; i++)
                at += (size_t) snprintf(message + at, sizeof message - at, "; %s: %s",
                                        reason_to_string(judgement->reasons.items[i].code),
                                        judgement->reasons.items[i].detail);
        journal_run(level, id, record, message);
}

void journal_run_interrupted(const PastRun *run)
{
        const LogField fields[] = {
                { "TIERPROBE_RUN_ID", run->id },
                { "TIERPROBE_TARGET", run->target },
                { "TIERPROBE_VERDICT", verdict_to_string(run->verdict) },
                { "TIERPROBE_REASON", reason_to_string(REASON_ABORTED) },
        };

        log_event(LOG_WARNING, MESSAGE_RUN_INCONCLUSIVE, fields, ELEMENTSOF(fields),
                  "run %s of %s: %s; the daemon ended in the middle of it", run->id, run->target,
                  verdict_to_string(run->verdict));
}

void journal_run_stalled(const RunRecord *record)
{
        char message[256];

        (void) snprintf(message, sizeof message, "run %s of %s: a write has been outstanding for %.1f s",
                        record->id, record->target, (double) record->stalled_ns / 1e9);
        journal_run(LOG_WARNING, MESSAGE_RUN_STALLED, record, message);
}

void journal_target_changed(const char *target, const char *path, const char *device, const char *text)
{
        const LogField fields[] = { { "TIERPROBE_TARGET", target }, { "TIERPROBE_DEVICE", device } };

        log_event(LOG_INFO, MESSAGE_TARGET_CHANGED, fields, ELEMENTSOF(fields), "target %s (%s): %s", target,
                  path, text);
}

void journal_verdict_changed(const char *target, const char *before, const char *now, const Reasons *warnings)
{
        char reasons[200] = "", details[1200] = "";
        size_t at = 0, used = 0;

        for (size_t i = 0; i < warnings->n && at < sizeof reasons && used < sizeof details; i++) {
                const Reason *reason = &warnings->items[i];

                at += (size_t) snprintf(reasons + at, sizeof reasons - at, "%s%s", i ? "," : "",
                                        reason_to_string(reason->code));
                used += (size_t) snprintf(details + used, sizeof details - used, "; %s: %s",
                                          reason_to_string(reason->code), reason->detail);
        }
        const LogField fields[] = { { "TIERPROBE_TARGET", target }, { "TIERPROBE_REASON", reasons } };
        log_event(LOG_NOTICE, MESSAGE_VERDICT_CHANGED, fields, reasons[0] ? 2 : 1,
                  "target %s: the verdict is now %s, it was %s%s", target, now, before, details);
}

void journal_run_refused(const char *target, const char *who, const char *detail)
{
        const LogField fields[] = { { "TIERPROBE_TARGET", target } };

        log_event(LOG_NOTICE, MESSAGE_RUN_REFUSED, fields, ELEMENTSOF(fields), "no run of %s for %s now: %s",
                  target, who, detail);
}

void journal_config_invalid(const char *error)
{
        /* One record a fault: a line break inside one would not get through. */
        for (const char *line = error; *line;) {
                size_t length = strcspn(line, "\n");

                log_event(LOG_ERR, MESSAGE_CONFIG_INVALID, NULL, 0, "%.*s", (int) length, line);
                line += length + (line[length] == '\n');
        }
}

void journal_started(size_t n_targets, const char *addresses)
{
        log_event(LOG_NOTICE, MESSAGE_STARTED, NULL, 0, "tierprobed %s serves %zu target%s on %s",
                  TIERPROBE_VERSION, n_targets, n_targets == 1 ? "" : "s", addresses);
}

void journal_reloaded(size_t n_targets)
{
        log_event(LOG_NOTICE, MESSAGE_RELOADED, NULL, 0, "configuration reloaded: %zu target%s", n_targets,
                  n_targets == 1 ? "" : "s");
}
