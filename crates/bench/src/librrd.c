/* One process, one value per call: librrd without a daemon, on the W1 files under a directory.
 * Usage: librrd DIRECTORY RRDS ROUNDS FIRST_TIME STEP; prints wall and CPU seconds. */
#include <rrd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static double seconds(struct timeval time) { return time.tv_sec + time.tv_usec / 1e6; }

int main(int count, char **words) {
    if (count != 6) {
        fprintf(stderr, "usage: librrd DIRECTORY RRDS ROUNDS FIRST_TIME STEP\n");
        return 2;
    }
    int rrds = atoi(words[2]), rounds = atoi(words[3]);
    long first = atol(words[4]), step = atol(words[5]);
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int round = 0; round < rounds; round++) {
        for (int rrd = 0; rrd < rrds; rrd++) {
            char name[512], word[64];
            const char *words_of_update[1] = {word};
            snprintf(name, sizeof name, "%s/host-%05d/metric-%02d.rrd", words[1], rrd / 70, rrd % 70);
            snprintf(word, sizeof word, "%ld:%d.%02d", first + round * step, rrd % 1000, (round * 37 + rrd) % 100);
            if (rrd_update_r(name, NULL, 1, words_of_update)) {
                fprintf(stderr, "%s: %s\n", name, rrd_get_error());
                return 1;
            }
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%.6f %.6f\n", (end.tv_sec - start.tv_sec) + (end.tv_nsec - start.tv_nsec) / 1e9,
           seconds(usage.ru_utime) + seconds(usage.ru_stime));
    return 0;
}
