/* librrd in its own process, one call at a time: the peer of `crates/rrd-file/examples/direct.rs`, which
 * takes the same words.
 * Usage: direct create DIRECTORY FILES START STEP WORD...
 *        direct update DIRECTORY FILES ROUNDS FIRST_TIME STEP
 *        direct fetch DIRECTORY FILES ROUNDS START END
 * Prints wall and CPU seconds. */
#include <rrd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double wall(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static int fail(const char *name) {
    fprintf(stderr, "%s: %s\n", name, rrd_get_error());
    return 1;
}

static int create(const char *directory, int files, long start, long step, int count, char **words) {
    for (int file = 0; file < files; file++) {
        char name[512];
        snprintf(name, sizeof name, "%s/%d.rrd", directory, file);
        if (rrd_create_r(name, step, start, count, (const char **)words)) return fail(name);
    }
    return 0;
}

static int update(const char *directory, int files, int rounds, long first, long step) {
    for (int round = 0; round < rounds; round++) {
        for (int file = 0; file < files; file++) {
            char name[512], word[64];
            const char *words[1] = {word};
            snprintf(name, sizeof name, "%s/%d.rrd", directory, file);
            snprintf(word, sizeof word, "%ld:%d.%02d", first + round * step, file % 1000, (round * 37 + file) % 100);
            if (rrd_update_r(name, NULL, 1, words)) return fail(name);
        }
    }
    return 0;
}

static int fetch(const char *directory, int files, int rounds, long start, long end) {
    for (int round = 0; round < rounds; round++) {
        for (int file = 0; file < files; file++) {
            char name[512], **names;
            time_t from = start, to = end;
            unsigned long step = 1, sources;
            rrd_value_t *values;
            snprintf(name, sizeof name, "%s/%d.rrd", directory, file);
            if (rrd_fetch_r(name, "AVERAGE", &from, &to, &step, &sources, &names, &values)) return fail(name);
            for (unsigned long source = 0; source < sources; source++) free(names[source]);
            free(names);
            free(values);
        }
    }
    return 0;
}

int main(int count, char **words) {
    long numbers[4] = {0};
    for (int index = 3; index < count && index < 7; index++) numbers[index - 3] = atol(words[index]);
    double wall_before = wall(), cpu_before = cpu();
    int failed = 2;
    if (count > 6 && !strcmp(words[1], "create"))
        failed = create(words[2], numbers[0], numbers[1], numbers[2], count - 6, words + 6);
    else if (count == 7 && !strcmp(words[1], "update"))
        failed = update(words[2], numbers[0], numbers[1], numbers[2], numbers[3]);
    else if (count == 7 && !strcmp(words[1], "fetch"))
        failed = fetch(words[2], numbers[0], numbers[1], numbers[2], numbers[3]);
    else
        fprintf(stderr, "usage: direct create|update|fetch DIRECTORY FILES NUMBER NUMBER ...\n");
    if (!failed) printf("%.6f %.6f\n", wall() - wall_before, cpu() - cpu_before);
    return failed;
}
