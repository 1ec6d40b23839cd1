/* Calls that no program should make, on one line each: what is given back, and the error. Nothing here may crash, hang,
 * print by itself or leave a success with an error text, a failure without one. Usage: abuse [EVERY_CALL_LIBRARY] */
#include <rrd.h>
#include <rrd_client.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8
#define WORDS(...) (int)(sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)), (char *[]){__VA_ARGS__}

static int faults;

/* status: 1 = has to fail, 0 = has to be done. */
static void told(const char *call, int failed, int has_to_fail) {
    int text = rrd_test_error();
    if (failed != has_to_fail || text != failed) {
        printf("FAULT: %s: failed %d, error '%s'\n", call, failed, rrd_get_error());
        faults++;
    }
    rrd_clear_error();
}

static void fails(const char *call, int failed) { told(call, failed, 1); }
static void works(const char *call, int failed) { told(call, failed, 0); }

static time_t start, end;
static unsigned long step, count;
static char **names;
static rrd_value_t *data;
static int x, y;
static double low, high;

static void by_words(int argc, char **argv) {
    char what[64];
    snprintf(what, sizeof what, "%d words, '%s'", argc, argc > 1 && argv && argv[1] ? argv[1] : "");
#define FAILS(call) do { char all[256]; snprintf(all, sizeof all, #call " %s", what); fails(all, call); } while (0)
    FAILS(rrd_create(argc, argv) != 0);
    FAILS(rrd_update(argc, argv) != 0);
    FAILS(rrd_update_v(argc, argv) == NULL);
    FAILS(rrd_fetch(argc, argv, &start, &end, &step, &count, &names, &data) != 0);
    FAILS(rrd_info(argc, argv) == NULL);
    FAILS(rrd_last(argc, argv) == -1);
    FAILS(rrd_first(argc, argv) == -1);
    FAILS(rrd_tune(argc, argv) != 0);
    FAILS(rrd_resize(argc, argv) != 0);
    FAILS(rrd_restore(argc, argv) != 0);
    FAILS(rrd_dump(argc, argv) != 0);
    FAILS(rrd_flushcached(argc, argv) != 0);
    FAILS(rrd_lastupdate(argc, argv) != 0);
    FAILS(rrd_xport(argc, argv, &x, &start, &end, &step, &count, &names, &data) != 0);
    /* A graph of nothing fails without a text, as RRDtool's does. */
    if (rrd_graph(argc, argv, &names, &x, &y, NULL, &low, &high) == 0 || rrd_graph_v(argc, argv) != NULL)
        printf("FAULT: graph %s\n", what), faults++;
    rrd_clear_error();
}

static void by_file(const char *what, const char *file) {
    const char *word[] = {"1000000100:1"}, *definitions[] = {"DS:a:GAUGE:20:U:U", "RRA:AVERAGE:0.5:1:10"};
    char call[96];
#define FILE_FAILS(name, failed) snprintf(call, sizeof call, "%s of %s", name, what), fails(call, failed)
    FILE_FAILS("create_r", rrd_create_r(file, 10, 1000000000, 2, definitions) != 0);
    FILE_FAILS("update_r", rrd_update_r(file, NULL, 1, word) != 0);
    FILE_FAILS("update_v_r", rrd_update_v_r(file, NULL, 1, word, NULL) != 0);
    start = 1000000000, end = 1000000100, step = 1;
    FILE_FAILS("fetch_r", rrd_fetch_r(file, "AVERAGE", &start, &end, &step, &count, &names, &data) != 0);
    FILE_FAILS("info_r", rrd_info_r(file) == NULL);
    FILE_FAILS("last_r", rrd_last_r(file) == -1);
    FILE_FAILS("first_r", rrd_first_r(file, 0) == -1);
    FILE_FAILS("lastupdate_r", rrd_lastupdate_r(file, &start, &count, &names, &names) != 0);
    FILE_FAILS("dump_r", rrd_dump_r(file, "out.xml") != 0);
    FILE_FAILS("rrdc_update", rrdc_update(file, 1, word) != 0);
    FILE_FAILS("rrdc_flush", rrdc_flush(file) != 0);
    FILE_FAILS("rrdc_info", rrdc_info(file) == NULL);
    FILE_FAILS("rrdc_last", rrdc_last(file) == -1);
    FILE_FAILS("rrdc_fetch", rrdc_fetch(file, "AVERAGE", &start, &end, &step, &count, &names, &data) != 0);
}

static int make(const char *file) {
    const char *definitions[] = {"DS:a:GAUGE:20:U:U", "RRA:AVERAGE:0.5:1:100"};
    return rrd_create_r(file, 10, 1000000000, 2, definitions);
}

static int update(const char *file, int at) {
    char text[64];
    const char *word[] = {text};
    snprintf(text, sizeof text, "%d:%d", 1000000000 + at * 10, at);
    return rrd_update_r(file, NULL, 1, word);
}

static void nothing(void) {
    const char *word[] = {"1000000010:1", NULL, "1000000020:1"};
    by_file("NULL", NULL);
    fails("update_r without readings", rrd_update_r("a.rrd", NULL, 1, NULL) != 0);
    /* a.rrd has that reading already; what stands behind NULL is not looked at. */
    fails("update_r up to NULL", rrd_update_r("a.rrd", NULL, 3, word) != 0);
    fails("update_r of too many", rrd_update_r("a.rrd", NULL, -1, word) != 0);
    fails("fetch_r without places", rrd_fetch_r("a.rrd", "AVERAGE", NULL, NULL, NULL, NULL, NULL, NULL) != 0);
    fails("fetch_r without CF", rrd_fetch_r("a.rrd", NULL, &start, &end, &step, &count, &names, &data) != 0);
    fails("create_r without words", rrd_create_r("b.rrd", 10, 1000000000, 3, NULL) != 0);
    fails("update without words", rrd_update(3, NULL) != 0);
    fails("stats_get", rrdc_stats_get(NULL) != 0);
    works("connect to nothing", rrdc_connect(NULL) != 0);
    works("disconnect", rrdc_disconnect() != 0);
    rrd_info_free(NULL);
    rrd_info_print(NULL);
    rrd_freemem(NULL);
    rrdc_stats_free(NULL);
    rrd_free_context(NULL);
    rrd_free_ptrs(NULL, NULL);
    rrd_time_value_t at;
    rrd_parsetime(NULL, &at);
    rrd_parsetime("now", NULL);
    rrd_proc_start_end(NULL, NULL, NULL, NULL);
    rrd_clear_error();
    char long_text[8192];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    rrd_set_error("%s", long_text);
    if (strlen(rrd_get_error()) != 4095) printf("FAULT: %zu bytes of error\n", strlen(rrd_get_error())), faults++;
    rrd_clear_error();
}

/* Both sides of a fork go on, also with a daemon's address. */
static void forked(void) {
    works("before the fork", update("a.rrd", 3) != 0);
    pid_t child = fork();
    if (child == 0) {
        int bad = update("a.rrd", 4) != 0 || rrd_last_r("a.rrd") != 1000000040;
        _exit(bad);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) printf("FAULT: the child ended with %d\n", status), faults++;
    works("behind the fork", update("a.rrd", 5) != 0);
}

static void *many(void *thread) {
    char file[32], own[64];
    snprintf(file, sizeof file, "t%ld.rrd", (long)thread);
    works("create in a thread", make(file) != 0);
    for (int at = 1; at <= 60; at++) {
        works("update in a thread", update(file, at) != 0);
        works("all on one file", rrd_last_r("shared.rrd") == -1);
        snprintf(own, sizeof own, "no%ld.rrd", (long)thread);
        rrd_info_r(own);
        /* The error is this thread's own. */
        if (!strstr(rrd_get_error(), own)) printf("FAULT: '%s' of %s\n", rrd_get_error(), own), faults++;
        rrd_clear_error();
        rrd_info_t *info = rrd_info_r(file);
        works("info in a thread", info == NULL);
        rrd_info_free(info);
        time_t from = 1000000000, to = 1000000600;
        unsigned long width = 1, sources;
        char **texts;
        rrd_value_t *rows;
        int bad = rrd_fetch_r(file, "AVERAGE", &from, &to, &width, &sources, &texts, &rows);
        works("fetch in a thread", bad);
        if (bad) continue;
        if (rows[at - 1] != at) printf("FAULT: %g is row %d of %s\n", rows[at - 1], at, file), faults++;
        free(texts[0]);
        free(texts);
        free(rows);
    }
    return NULL;
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    works("create", make("a.rrd") != 0);
    works("update", update("a.rrd", 1) != 0);
    nothing();
    by_words(0, NULL);
    by_words(0, (char *[]){NULL});
    by_words(WORDS("x"));
    by_words(WORDS("x", "--"));
    by_words(WORDS("x", "-"));
    by_words(WORDS("x", "--daemon"));
    by_words(WORDS("x", "--no-such-option"));
    by_words(WORDS("x", "-s", "-s", "-s"));
    by_words(WORDS("x", ""));
    by_words(WORDS("x", "none.rrd", NULL, "y"));
    by_words(2, (char *[]){NULL, "a.rrd"});
    char path[4097];
    memset(path, 'p', 4096);
    path[4096] = 0;
    by_file("a long name", path);
    for (int at = 0; at < 4096; at += 2) path[at] = '/';
    by_file("a deep name", path);
    by_words(WORDS("x", path));
    by_file("no name", "");
    by_file("a device", "/dev/null");
    by_file("a name of any bytes", "\xff\xfe\x01.rrd/x");
    forked();
    works("create", make("shared.rrd") != 0);
    pthread_t threads[THREADS];
    for (long thread = 0; thread < THREADS; thread++) pthread_create(&threads[thread], NULL, many, (void *)thread);
    for (int thread = 0; thread < THREADS; thread++) pthread_join(threads[thread], NULL);
    works("update behind all", update("a.rrd", 9) != 0);
    printf("%d faults\n", faults);
    return faults != 0;
}
