/* Calls that go to a daemon, with what they give, one a line: the same by Debian's library and ours, whoever listens.
 * Usage: answers DIRECTORY, with RRDCACHED_ADDRESS set and DIRECTORY/a.rrd made at 1000000000 with a step of 10. */
#include <rrd.h>
#include <rrd_client.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char name[512], none[512], nowhere[512];

static void told(const char *call, long status) {
    printf("%s %ld '%s'\n", call, status, rrd_get_error());
    rrd_clear_error();
}

static int words(const char *file, const char *first, const char *second) {
    char *argv[] = {"update", (char *)file, (char *)first, (char *)second};
    return rrd_update(second ? 4 : first ? 3 : 2, argv);
}

static int client(const char *file, const char *first, const char *second) {
    const char *values[] = {first, second};
    return rrdc_update(file, second ? 2 : first ? 1 : 0, values);
}

static void several(const char *way, int (*update)(const char *, const char *, const char *), long time) {
    char at[64], after[64];
    snprintf(at, sizeof at, "%ld:1", time);
    snprintf(after, sizeof after, "%ld:2.5", time + 10);
    printf("%s\n", way);
    told("two", update(name, at, after));
    told("again", update(name, at, NULL));
    snprintf(at, sizeof at, "%ld:3", time + 20);
    told("one good", update(name, at, "5:1"));
    snprintf(at, sizeof at, "%ld:3", time + 30);
    told("no time", update(name, at, "foo"));
    told("first has no time", update(name, "foo", at));
    told("nothing there", update(none, at, NULL));
    told("no directory", update(nowhere, at, NULL));
    told("outside", update("/etc/hosts", at, NULL));
    told("a blank", update(name, "5 5:1", NULL));
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    setvbuf(stdout, NULL, _IONBF, 0);
    snprintf(name, sizeof name, "%s/a.rrd", argv[1]);
    snprintf(none, sizeof none, "%s/none.rrd", argv[1]);
    snprintf(nowhere, sizeof nowhere, "%s/nowhere/none.rrd", argv[1]);
    told("connect nowhere", rrdc_connect("unix:/nonexistent"));
    told("connect refused", rrdc_connect("127.0.0.1:1"));
    told("connect to nobody", rrdc_connect("nobody.invalid"));
    printf("connected %d\n", rrdc_is_any_connected());
    told("connect", rrdc_connect(NULL));
    told("connect again", rrdc_connect(NULL));
    printf("connected %d %d\n", rrdc_is_any_connected(), rrdc_is_connected("unix:/elsewhere"));
    several("by words", words, 1000000010);
    several("by rrdc_update", client, 1000000110);
    /* Both sides of a fork go on. */
    pid_t child = fork();
    if (child == 0) {
        told("child", words(name, "1000000210:1", NULL));
        told("child again", client(name, "1000000220:1", NULL));
        _exit(0);
    }
    waitpid(child, NULL, 0);
    told("parent", client(name, "1000000230:1", NULL));
    told("parent again", words(name, "1000000220:1", NULL));
    /* Before it rrdcached answers some of the following from the file as it was. */
    told("flush", rrdc_flush(name));
    told("flush of none", rrdc_flush(none));
    told("last", rrdc_last(name));
    told("last of none", rrdc_last(none));
    told("first", rrdc_first(name, 0));
    told("first of none", rrdc_first(name, 7));
    time_t start = 1000000000, end = 1000000060;
    unsigned long step = 1, count = 0;
    char **names;
    rrd_value_t *data;
    int status = rrdc_fetch(name, "AVERAGE", &start, &end, &step, &count, &names, &data);
    told("fetch", status);
    if (status == 0) {
        printf("%ld %ld %lu %lu %s:", (long)start, (long)end, step, count, names[0]);
        for (unsigned long row = 0; row < (end - start) / step; row++) printf(isnan(data[row]) ? " nan" : " %.17g", data[row]);
        printf("\n");
        free(names[0]);
        free(names);
        free(data);
    }
    told("fetch of none", rrdc_fetch(none, "AVERAGE", &start, &end, &step, &count, &names, &data));
    told("fetch of no function", rrdc_fetch(name, "LAST", &start, &end, &step, &count, &names, &data));
    told("disconnect", rrdc_disconnect());
    printf("connected %d\n", rrdc_is_any_connected());
    return 0;
}
