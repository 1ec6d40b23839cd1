/* rrd.h: what librrd.so.8 of Roundel gives to C and C++. The names, the order of the arguments and the layout of the
 * structures are those of RRDtool's library, so that a program builds and runs with either.
 *
 * Unless something else is said: a function returns 0 when it did what was asked and -1 when not, and then
 * rrd_get_error() tells why; argc and argv are words as on the command line, the first of which is not looked at;
 * what is handed out came from malloc and is the caller's to free. Functions that end in _r, and the errors, belong
 * to the calling thread; all of them may be called from many threads.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */

#ifndef ROUNDEL_RRD_H
#define ROUNDEL_RRD_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values. */

typedef double rrd_value_t;

double rrd_set_to_DNAN(void);
double rrd_set_to_DINF(void);
#ifndef DNAN
#define DNAN rrd_set_to_DNAN()
#endif
#ifndef DINF
#define DINF rrd_set_to_DINF()
#endif

/* Lists of named values: what rrd_info, rrd_update_v and rrd_graph_v give. */

typedef enum rrd_info_type { RD_I_VAL = 0, RD_I_CNT = 1, RD_I_STR = 2, RD_I_INT = 3, RD_I_BLO = 4 } rrd_info_type_t;

typedef struct rrd_blob_t {
    unsigned long size;
    unsigned char *ptr;
} rrd_blob_t;

typedef union rrd_infoval {
    unsigned long u_cnt; /* RD_I_CNT */
    rrd_value_t u_val;   /* RD_I_VAL */
    char *u_str;         /* RD_I_STR */
    int u_int;           /* RD_I_INT */
    rrd_blob_t u_blo;    /* RD_I_BLO */
} rrd_infoval_t;

typedef struct rrd_info_t {
    char *key;
    rrd_info_type_t type;
    rrd_infoval_t value;
    struct rrd_info_t *next;
} rrd_info_t;

/* Appends an item behind `last` (NULL begins a list) and returns it. The key becomes the list's, the value is copied. */
rrd_info_t *rrd_info_push(rrd_info_t *last, char *key, rrd_info_type_t type, rrd_infoval_t value);
void rrd_info_print(rrd_info_t *list);
void rrd_info_free(rrd_info_t *list);

/* Commands by their words. */

int rrd_create(int argc, char **argv);
int rrd_update(int argc, char **argv);
rrd_info_t *rrd_update_v(int argc, char **argv);
int rrd_tune(int argc, char **argv);
int rrd_resize(int argc, char **argv);
int rrd_restore(int argc, char **argv);
int rrd_dump(int argc, char **argv);
int rrd_flushcached(int argc, char **argv);
int rrd_lastupdate(int argc, char **argv); /* prints */
time_t rrd_last(int argc, char **argv);    /* -1 = failed */
time_t rrd_first(int argc, char **argv);   /* -1 = failed */
rrd_info_t *rrd_info(int argc, char **argv);
char *rrd_list(int argc, char **argv);
/* Rows from *start (exclusive) to *end, *step seconds each, *ds_cnt values in a row; data ends with a row of padding. */
int rrd_fetch(int argc, char **argv, time_t *start, time_t *end, unsigned long *step, unsigned long *ds_cnt,
              char ***ds_namv, rrd_value_t **data);
/* xsize == NULL: the export is printed, too. */
int rrd_xport(int argc, char **argv, int *xsize, time_t *start, time_t *end, unsigned long *step,
              unsigned long *col_cnt, char ***legend_v, rrd_value_t **data);
/* prdata: the texts of PRINT, NULL behind the last; NULL when there are none. stream: where the picture goes, or NULL. */
int rrd_graph(int argc, char **argv, char ***prdata, int *xsize, int *ysize, FILE *stream, double *ymin, double *ymax);
rrd_info_t *rrd_graph_v(int argc, char **argv);

/* The same by arguments. argv has only definitions (create) or readings (update). */

int rrd_create_r(const char *filename, unsigned long pdp_step, time_t last_up, int argc, const char **argv);
int rrd_create_r2(const char *filename, unsigned long pdp_step, time_t last_up, int no_overwrite,
                  const char **sources, const char *_template, int argc, const char **argv);
int rrd_update_r(const char *filename, const char *_template, int argc, const char **argv);
int rrd_update_v_r(const char *filename, const char *_template, int argc, const char **argv, rrd_info_t *written);
/* For extra_flags: readings that are too old are passed over. */
#define RRD_SKIP_PAST_UPDATES 0x01
int rrd_updatex_r(const char *filename, const char *_template, int extra_flags, int argc, const char **argv);
int rrd_updatex_v_r(const char *filename, const char *_template, int extra_flags, int argc, const char **argv,
                    rrd_info_t *written);
int rrd_fetch_r(const char *filename, const char *cf, time_t *start, time_t *end, unsigned long *step,
                unsigned long *ds_cnt, char ***ds_namv, rrd_value_t **data);
rrd_info_t *rrd_info_r(const char *filename);
char *rrd_list_r(int recursive, char *dirname);
time_t rrd_last_r(const char *filename);
time_t rrd_first_r(const char *filename, int rraindex);
int rrd_lastupdate_r(const char *filename, time_t *last_update, unsigned long *ds_count, char ***ds_names,
                     char ***last_ds);
typedef size_t (*rrd_output_callback_t)(const void *bytes, size_t count, void *user);
int rrd_dump_r(const char *filename, char *outname);
int rrd_dump_opt_r(const char *filename, char *outname, int opt_noheader);
int rrd_dump_cb_r(const char *filename, int opt_header, rrd_output_callback_t cb, void *user);

/* Errors. */

typedef struct rrd_context {
    char lib_errstr[256];
    char rrd_error[4096];
} rrd_context_t;

rrd_context_t *rrd_get_context(void);
rrd_context_t *rrd_new_context(void);
void rrd_free_context(rrd_context_t *buf);
void rrd_set_error(char *fmt, ...);
void rrd_clear_error(void);
int rrd_test_error(void);
char *rrd_get_error(void);
const char *rrd_strerror(int err);

/* Time specifications, as in rrdfetch(1). */

typedef enum {
    ABSOLUTE_TIME = 0,
    RELATIVE_TO_START_TIME = 1,
    RELATIVE_TO_END_TIME = 2,
    RELATIVE_TO_EPOCH = 3
} rrd_timetype_t;

typedef struct rrd_time_value {
    rrd_timetype_t type;
    long offset;
    struct tm tm;
} rrd_time_value_t;

/* What rrd_parsetime returns when all is well; else a text that nobody frees. */
#define TIME_OK NULL
char *rrd_parsetime(const char *spec, rrd_time_value_t *ptv);
int rrd_proc_start_end(rrd_time_value_t *start, rrd_time_value_t *end, time_t *start_time, time_t *end_time);
const char *rrd_scaled_duration(const char *token, unsigned long divisor, unsigned long *valuep);

/* This and that. */

char *rrd_strversion(void);
double rrd_version(void);
void rrd_freemem(void *mem);
long rrd_random(void);
int rrd_mkdir_p(const char *pathname, mode_t mode);
int rrd_add_ptr_chunk(void ***dest, size_t *dest_size, void *src, size_t *alloc, size_t chunk);
int rrd_add_ptr(void ***dest, size_t *dest_size, void *src);
int rrd_add_strdup(char ***dest, size_t *dest_size, char *src);
int rrd_add_strdup_chunk(char ***dest, size_t *dest_size, char *src, size_t *alloc, size_t chunk);
void rrd_free_ptrs(void ***src, size_t *cnt);

/* Files by their bytes: for programs that look into them themselves (RRD_EXPORT_DEPRECATED). */

struct rrd_t;

typedef struct rrd_file_t {
    size_t header_len;
    size_t file_len;
    size_t pos;
    void *pvt;
    struct rrd_t *rrd;
} rrd_file_t;

#ifdef RRD_EXPORT_DEPRECATED
#include "rrd_format.h"

void rrd_init(rrd_t *rrd);
void rrd_free(rrd_t *rrd);
rrd_file_t *rrd_open(const char *const file_name, rrd_t *rrd, unsigned rdwr);
int rrd_close(rrd_file_t *rrd_file);
ssize_t rrd_read(rrd_file_t *rrd_file, void *buf, size_t count);
ssize_t rrd_write(rrd_file_t *rrd_file, const void *buf, size_t count);
off_t rrd_seek(rrd_file_t *rrd_file, off_t off, int whence);
off_t rrd_tell(rrd_file_t *rrd_file);
void rrd_flush(rrd_file_t *rrd_file);
void rrd_dontneed(rrd_file_t *rrd_file, rrd_t *rrd);
int rrd_lock(rrd_file_t *file);
#endif

#ifdef __cplusplus
}
#endif

#endif
