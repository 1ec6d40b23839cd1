/* rrd_format.h: the parts of a file's header, for programs that look into them themselves (rrd_open in rrd.h). Each
 * is a copy of the file's bytes; docs of RRDtool call the numbers in par and scratch by their places.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */

#ifndef ROUNDEL_RRD_FORMAT_H
#define ROUNDEL_RRD_FORMAT_H

#include <stddef.h>
#include <time.h>

#define DS_NAM_SIZE 20
#define DST_SIZE 20
#define CF_NAM_SIZE 20
#define LAST_DS_LEN 30

typedef union unival {
    unsigned long u_cnt;
    double u_val;
} unival;

typedef struct stat_head_t {
    char cookie[4];
    char version[5];
    double float_cookie;
    unsigned long ds_cnt;
    unsigned long rra_cnt;
    unsigned long pdp_step;
    unival par[10];
} stat_head_t;

typedef struct ds_def_t {
    char ds_nam[DS_NAM_SIZE];
    char dst[DST_SIZE];
    unival par[10]; /* 0 heartbeat (u_cnt), 1 minimum, 2 maximum */
} ds_def_t;

typedef struct rra_def_t {
    char cf_nam[CF_NAM_SIZE];
    unsigned long row_cnt;
    unsigned long pdp_cnt;
    unival par[10]; /* 0 xff */
} rra_def_t;

typedef struct live_head_t {
    time_t last_up;
    long last_up_usec;
} live_head_t;

typedef struct pdp_prep_t {
    char last_ds[LAST_DS_LEN];
    unival scratch[10]; /* 0 unknown seconds (u_cnt), 1 value */
} pdp_prep_t;

typedef struct cdp_prep_t {
    unival scratch[10]; /* 0 value, 1 unknown points (u_cnt), 8 and 9 the primary and secondary value */
} cdp_prep_t;

typedef struct rra_ptr_t {
    unsigned long cur_row;
} rra_ptr_t;

typedef struct rrd_t {
    stat_head_t *stat_head;
    ds_def_t *ds_def;
    rra_def_t *rra_def;
    live_head_t *live_head;
    time_t *legacy_last_up;
    pdp_prep_t *pdp_prep;
    cdp_prep_t *cdp_prep;
    rra_ptr_t *rra_ptr;
    double *rrd_value;
    void *__mmap_start;
    size_t __mmap_size;
} rrd_t;

enum cf_en {
    CF_AVERAGE = 0,
    CF_MINIMUM,
    CF_MAXIMUM,
    CF_LAST,
    CF_HWPREDICT,
    CF_SEASONAL,
    CF_DEVPREDICT,
    CF_DEVSEASONAL,
    CF_FAILURES,
    CF_MHWPREDICT
};

#endif
