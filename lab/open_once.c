/* Report R3's idea: files are opened once, their headers stay in memory, and an update is a pwrite of the header's live part and of each
 * row that is complete.
 *
 *     open_once FILE...
 *
 * The files are what `rrdtool create` has made, of data sources that are all GAUGE and archives that are AVERAGE or MAX. Standard input
 * has "INDEX TIME VALUE..." lines, in steps of the RRD; an empty line is answered with OK when all before it have been written (to the
 * page cache). RRDtool reads the files afterwards, and finds the rows that it would have made itself of values on the step. Offsets are
 * those of docs/format/rrd.md, for 64 bits.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATIC = 128, DS = 120, RRA = 120, LIVE = 16, PDP = 112, CDP = 80, LAST_BYTES = 30, SOURCES_MAX = 64 };

struct file { int number; char *head; long sources, archives, step, live, size; double *sums; };

static void fail(const char *what) { perror(what); exit(1); }
static long word(const char *at) { long value; memcpy(&value, at, 8); return value; }
static void set(char *at, long value) { memcpy(at, &value, 8); }

static struct file open_file(const char *name) {
    struct file one = { .number = open(name, O_RDWR) };
    char start[STATIC];
    if (one.number < 0 || pread(one.number, start, STATIC, 0) != STATIC) fail(name);
    one.sources = word(start + 24), one.archives = word(start + 32), one.step = word(start + 40);
    if (one.sources < 1 || one.sources > SOURCES_MAX || one.archives < 1 || one.archives > 100) { fprintf(stderr, "%s: not such an RRD\n", name); exit(1); }
    one.live = STATIC + DS * one.sources + RRA * one.archives;
    one.size = one.live + LIVE + PDP * one.sources + CDP * one.sources * one.archives + 8 * one.archives;
    if (!(one.head = malloc(one.size)) || pread(one.number, one.head, one.size, 0) != one.size) fail(name);
    if (!(one.sums = calloc(one.archives * one.sources, sizeof *one.sums))) fail("calloc");
    return one;
}

/* The rows of an archive lie after those of the archives before it. */
static void write_rows(struct file *one, long time, const double *values) {
    char *pointers = one->head + one->size - 8 * one->archives;
    off_t begin = one->size;
    for (long a = 0; a < one->archives; a++) {
        char *archive = one->head + STATIC + DS * one->sources + RRA * a;
        long count = word(archive + 24), pdps = word(archive + 32), is_max = !strcmp(archive, "MAX");
        double *sums = one->sums + a * one->sources, row[SOURCES_MAX];
        int first = (time / one->step) % pdps == 1 % pdps, complete = (time / one->step) % pdps == 0;
        for (long s = 0; s < one->sources; s++) {
            sums[s] = first ? values[s] : is_max ? (values[s] > sums[s] ? values[s] : sums[s]) : sums[s] + values[s];
            row[s] = is_max ? sums[s] : sums[s] / pdps;
        }
        if (complete) {
            long at = (word(pointers + 8 * a) + 1) % count;
            set(pointers + 8 * a, at);
            ssize_t bytes = 8 * one->sources;
            if (pwrite(one->number, row, bytes, begin + at * bytes) != bytes) fail("pwrite");
        }
        begin += count * one->sources * 8;
    }
}

static void update(struct file *one, char *words) {
    double values[SOURCES_MAX];
    long time = strtol(words, &words, 10);
    for (long s = 0; s < one->sources; s++) values[s] = strtod(words, &words);
    char *live = one->head + one->live, *pdp = live + LIVE;
    set(live, time);
    for (long s = 0; s < one->sources; s++) snprintf(pdp + PDP * s, LAST_BYTES, "%.17g", values[s]);
    write_rows(one, time, values);
    if (pwrite(one->number, live, one->size - one->live, one->live) != one->size - one->live) fail("pwrite");
}

int main(int count, char **words) {
    struct file *files = calloc(count, sizeof *files);
    char line[4096];
    if (count < 2 || !files) { fprintf(stderr, "usage: open_once FILE...\n"); return 1; }
    for (int i = 1; i < count; i++) files[i - 1] = open_file(words[i]);
    while (fgets(line, sizeof line, stdin)) {
        if (line[0] == '\n') { puts("OK"); fflush(stdout); continue; }
        char *rest;
        long index = strtol(line, &rest, 10);
        if (index < 0 || index >= count - 1) { fprintf(stderr, "bad line: %s", line); return 1; }
        update(&files[index], rest);
    }
    return 0;
}
