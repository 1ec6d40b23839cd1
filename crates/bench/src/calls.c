/* Calls of librrd.so.8, timed: the one of LD_LIBRARY_PATH, Debian's or ours.
 * Usage: calls CALL DIRECTORY FILES THREADS ROUNDS FIRST_TIME STEP VALUES
 * CALL: update_r, update (by words, which heeds RRDCACHED_ADDRESS), fetch_r, rrdc_fetch (FIRST_TIME and STEP are start
 * and end).
 * Every thread has its own share of the files and calls once a file and round, with VALUES values a call.
 * Prints wall seconds, CPU seconds and calls; the time to load the library and to start is not in it. */
#include <pthread.h>
#include <rrd.h>
#include <rrd_client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define VALUES_MAX 100

static const char *call, *directory;
static int files, threads, rounds, values;
static long first, step;

static double wall(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static double cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + usage.ru_utime.tv_usec / 1e6 + usage.ru_stime.tv_sec + usage.ru_stime.tv_usec / 1e6;
}

static int fetch(const char *name) {
    time_t start = first, end = step;
    unsigned long resolution = 1, count;
    char **names;
    rrd_value_t *data;
    int failed = strcmp(call, "rrdc_fetch") == 0
        ? rrdc_fetch(name, "AVERAGE", &start, &end, &resolution, &count, &names, &data)
        : rrd_fetch_r(name, "AVERAGE", &start, &end, &resolution, &count, &names, &data);
    if (failed) return -1;
    for (unsigned long ds = 0; ds < count; ds++) free(names[ds]);
    free(names);
    free(data);
    return 0;
}

static int update(const char *name, int round, int file) {
    char texts[VALUES_MAX][48];
    const char *words[VALUES_MAX + 2] = {"update", name};
    for (int value = 0; value < values; value++) {
        long at = first + ((long)round * values + value) * step;
        snprintf(texts[value], sizeof texts[value], "%ld:%d.%02d", at, file % 1000, (round * 37 + value * 11 + file) % 100);
        words[2 + value] = texts[value];
    }
    if (strcmp(call, "update") == 0) return rrd_update(values + 2, (char **)words);
    return rrd_update_r(name, NULL, values, words + 2);
}

static void *work(void *thread) {
    long from = (long)thread * files / threads, to = ((long)thread + 1) * files / threads;
    for (int round = 0; round < rounds; round++) {
        for (long file = from; file < to; file++) {
            char name[512];
            snprintf(name, sizeof name, "%s/host-%05ld/metric-%02ld.rrd", directory, file / 70, file % 70);
            if (strstr(call, "fetch") ? fetch(name) : update(name, round, file)) {
                fprintf(stderr, "%s: %s\n", name, rrd_get_error());
                exit(1);
            }
        }
    }
    return NULL;
}

int main(int count, char **words) {
    if (count != 9) {
        fprintf(stderr, "usage: calls CALL DIRECTORY FILES THREADS ROUNDS FIRST_TIME STEP VALUES\n");
        return 2;
    }
    call = words[1];
    directory = words[2];
    files = atoi(words[3]);
    threads = atoi(words[4]);
    rounds = atoi(words[5]);
    first = atol(words[6]);
    step = atol(words[7]);
    values = atoi(words[8]);
    if (values < 0 || values > VALUES_MAX || threads < 1 || threads > 64) return 2;
    if (strcmp(call, "rrdc_fetch") == 0 && rrdc_connect(NULL)) return 1;
    double wall_before = wall(), cpu_before = cpu();
    pthread_t others[64];
    for (long thread = 1; thread < threads; thread++) pthread_create(&others[thread], NULL, work, (void *)thread);
    work((void *)0);
    for (long thread = 1; thread < threads; thread++) pthread_join(others[thread], NULL);
    printf("%.6f %.6f %d\n", wall() - wall_before, cpu() - cpu_before, files * rounds);
    return 0;
}
