/* Calls by lines of standard input, answered one by one: `u FILE TEMPLATE READING` (TEMPLATE may be -) updates by
 * rrd_update_r, `f FILE CF START END STEP` fetches by rrd_fetch_r, `d ...` the same by rrdc_fetch. */
#include <rrd.h>
#include <rrd_client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void rows(char how, const char *file, const char *cf, long from, long to, long resolution) {
    time_t start = from, end = to;
    unsigned long step = resolution, count;
    char **names;
    rrd_value_t *data;
    if (how == 'd') rrdc_connect(getenv("RRDCACHED_ADDRESS"));
    if (how == 'd' ? rrdc_fetch(file, cf, &start, &end, &step, &count, &names, &data)
                   : rrd_fetch_r(file, cf, &start, &end, &step, &count, &names, &data)) {
        printf("-1 '%s'\n", rrd_get_error());
        return;
    }
    printf("%ld %ld %lu", (long)start, (long)end, step);
    for (unsigned long cell = 0; cell < (end - start) / step * count; cell++) printf(" %g", data[cell]);
    printf("\n");
    for (unsigned long ds = 0; ds < count; ds++) free(names[ds]);
    free(names);
    free(data);
}

int main(void) {
    char line[4096], file[1024], word[1024], reading[1024];
    long start, end, step;
    setvbuf(stdout, NULL, _IONBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        rrd_clear_error();
        if (sscanf(line, "u %1023s %1023s %1023s", file, word, reading) == 3) {
            const char *words[] = {reading};
            int status = rrd_update_r(file, strcmp(word, "-") ? word : NULL, 1, words);
            printf("%d '%s'\n", status, rrd_get_error());
        } else if (sscanf(line + 1, " %1023s %1023s %ld %ld %ld", file, word, &start, &end, &step) == 5) {
            rows(line[0], file, word, start, end, step);
        } else {
            printf("?\n");
        }
    }
    return 0;
}
