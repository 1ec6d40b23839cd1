/* rrd_client.h: the daemon from C, as RRDtool's library has it. A process is connected to one daemon at a time; the
 * connection is shared by its threads and made anew when the daemon was started again. Include rrd.h first.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */

#ifndef ROUNDEL_RRD_CLIENT_H
#define ROUNDEL_RRD_CLIENT_H

#include <stdint.h>
#include <time.h>

#include "rrd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The variable that says where the daemon is, where it listens when nobody says, and its port. */
#define ENV_RRDCACHED_ADDRESS "RRDCACHED_ADDRESS"
#ifndef RRDCACHED_DEFAULT_ADDRESS
#define RRDCACHED_DEFAULT_ADDRESS "unix:/tmp/rrdcached.sock"
#endif
#define RRDCACHED_DEFAULT_PORT "42217"

/* addr == NULL: what RRDCACHED_ADDRESS says; without it nothing happens, with success. Failures of the system are
 * returned as their errno, others as -1. */
int rrdc_connect(const char *addr);
int rrdc_disconnect(void);
int rrdc_is_connected(const char *daemon_addr);
int rrdc_is_any_connected(void);
int rrdc_ping(void); /* 1 = it answers */

int rrdc_update(const char *filename, int values_num, const char *const *values);
int rrdc_create(const char *filename, unsigned long pdp_step, time_t last_up, int no_overwrite, int argc,
                const char **argv);
int rrdc_create_r2(const char *filename, unsigned long pdp_step, time_t last_up, int no_overwrite,
                   const char **sources, const char *_template, int argc, const char **argv);
int rrdc_flush(const char *filename);
int rrdc_flush_if_daemon(const char *opt_daemon, const char *filename);
int rrdc_flushall(void);
int rrdc_flushall_if_daemon(const char *opt_daemon);
int rrdc_forget(const char *filename);
rrd_info_t *rrdc_info(const char *filename);
char *rrdc_list(int recursive, const char *dirname);
time_t rrdc_last(const char *filename);
time_t rrdc_first(const char *filename, int rraindex);
int rrdc_fetch(const char *filename, const char *cf, time_t *ret_start, time_t *ret_end, unsigned long *ret_step,
               unsigned long *ret_ds_num, char ***ret_ds_names, rrd_value_t **ret_data);

/* The counters of the daemon. */
#define RRDC_STATS_TYPE_GAUGE 0x0001
#define RRDC_STATS_TYPE_COUNTER 0x0002

typedef struct rrdc_stats_s {
    const char *name;
    uint16_t type;
    uint16_t flags;
    union {
        uint64_t counter;
        double gauge;
    } value;
    struct rrdc_stats_s *next;
} rrdc_stats_t;

int rrdc_stats_get(rrdc_stats_t **ret_stats);
void rrdc_stats_free(rrdc_stats_t *ret_stats);

#ifdef __cplusplus
}
#endif

#endif
