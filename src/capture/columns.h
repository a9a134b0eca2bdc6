/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of iostat by name, and the figures of one row under them. Inside the capture room. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Figures as printed, in whole numbers so that sums are exact: a mean of rows that all say 20.00 is 20. */
#define SCALE_WKB 10000     /* rates, kB and percent in 1/10000 */
#define SCALE_AWAIT 1000000 /* w_await in ns */
#define SCALE_WKB_DIGITS 4
#define SCALE_AWAIT_DIGITS 6

/* What a column is to the judge. */
typedef enum ColumnRole {
        COLUMN_WKB,     /* throughput of writes, in kB/s whatever its unit */
        COLUMN_W_AWAIT, /* ms */
        COLUMN_W_S,
        COLUMN_WAREQ, /* mean size of a write, kB (with -m too) */
        COLUMN_R_S,
        COLUMN_RKB,
        COLUMN_AVGRQ, /* mean size of a read or write, in sectors (until 11.5.6); pcp prints kB */
        COLUMN_QUEUE,
        COLUMN_UTIL, /* percent */
        N_COLUMN_ROLES,
        COLUMN_OTHER = N_COLUMN_ROLES,
} ColumnRole;

typedef struct Column {
        const char *name;
        ColumnRole role;
        double kb; /* in one unit of a throughput or size column, 1 for the rest */
} Column;

/* The column of that name, NULL when iostat has none such. */
const Column *column_find(const char *name, size_t size);

/* The column by its index, NULL past the last: for readers that look for names instead of meeting them. */
const Column *column_at(size_t index);

/* What one row says; value[role] means something when its bit is in KNOWN. */
typedef struct Figures {
        unsigned known;
        int64_t value[N_COLUMN_ROLES];   /* scaled; INT64_MAX: too large to tell; negative: nonsense */
        double rounding[N_COLUMN_ROLES]; /* half the last printed digit, in kB/s, ms, ... */
        int64_t if_sectors; /* what divides the throughput if it is a count of sectors; 1: it cannot be one */
        bool surely_kb;     /* it can, but this one is not */
} Figures;

static inline bool figures_have(const Figures *figures, ColumnRole role)
{
        return figures->known & 1U << role;
}

static inline void figures_set(Figures *figures, ColumnRole role, int64_t value, double rounding)
{
        figures->known |= 1U << role;
        figures->value[role] = value;
        figures->rounding[role] = rounding;
}

/* Why rows of a device cannot be read. */
typedef enum Damage {
        DAMAGE_CUT,           /* too few numbers, or what is no number */
        DAMAGE_WRAPPED,       /* its numbers are on two lines */
        DAMAGE_MARKS,         /* 716,800 beside 0.00: thousands or decimals? */
        DAMAGE_CONTRADICTION, /* wkB/s is not w/s x wareq-sz */
        DAMAGE_LOST_FIELD,    /* a key is missing that other rows have */
        N_DAMAGES,
} Damage;

/* Whether a figure is one that no device has: the counters were reset (sysstat <= 12.7.2 prints 2^64). */
bool figures_are_absurd(const Figures *figures);

/* Whether the throughput is what the rate and the mean size of the requests make. */
typedef enum Agreement {
        AGREEMENT_UNKNOWN, /* the columns for it are not there, or nothing was written */
        AGREEMENT_GOOD,
        AGREEMENT_TWICE,      /* a count of sectors stands under wkB/s */
        AGREEMENT_2048_TIMES, /* a count of sectors stands under wMB/s */
        AGREEMENT_NONE,       /* damage: a digit lost, a column shifted */
} Agreement;

Agreement figures_agreement(const Figures *figures);
