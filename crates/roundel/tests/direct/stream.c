/* Threads that update without pause until standard input ends; then all that was acknowledged, `FILE TIME` a line, and
 * each kind of error that was seen behind `error `. Usage: stream DIRECTORY THREADS FILES_OF_A_THREAD FIRST_TIME */
#include <pthread.h>
#include <rrd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ACKNOWLEDGED_MAX 2000000
#define KINDS_MAX 16

static const char *directory;
static long first;
static int files;
static atomic_int stop;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char kinds[KINDS_MAX][256];
static struct { int file; long time; } *acknowledged;
static int count;

static void keep(int file, long time) {
    pthread_mutex_lock(&lock);
    if (count < ACKNOWLEDGED_MAX) {
        acknowledged[count].file = file;
        acknowledged[count++].time = time;
    }
    pthread_mutex_unlock(&lock);
}

static void keep_error(const char *text) {
    pthread_mutex_lock(&lock);
    for (int kind = 0; kind < KINDS_MAX; kind++) {
        if (strncmp(kinds[kind], text, sizeof kinds[kind] - 1) == 0) break;
        if (!kinds[kind][0]) {
            snprintf(kinds[kind], sizeof kinds[kind], "%s", text);
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

static void *work(void *thread) {
    for (long time = first; !stop; time++) {
        for (int index = 0; index < files && !stop; index++) {
            int file = (int)(long)thread * files + index;
            char name[512], word[64];
            const char *words[] = {word};
            snprintf(name, sizeof name, "%s/%d.rrd", directory, file);
            snprintf(word, sizeof word, "%ld:%ld", time, (time * 7 + file) % 1000);
            rrd_clear_error();
            if (rrd_update_r(name, NULL, 1, words) == 0) {
                if (rrd_test_error()) keep_error("success with an error");
                keep(file, time);
            } else {
                keep_error(rrd_test_error() ? rrd_get_error() : "failure without an error");
                usleep(2000);
            }
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    directory = argv[1];
    int threads = atoi(argv[2]);
    files = atoi(argv[3]);
    first = atol(argv[4]);
    acknowledged = malloc(ACKNOWLEDGED_MAX * sizeof *acknowledged);
    pthread_t ids[64];
    for (long thread = 0; thread < threads && thread < 64; thread++) pthread_create(&ids[thread], NULL, work, (void *)thread);
    while (getchar() != EOF) {
    }
    stop = 1;
    for (int thread = 0; thread < threads && thread < 64; thread++) pthread_join(ids[thread], NULL);
    for (int index = 0; index < count; index++) printf("%d %ld\n", acknowledged[index].file, acknowledged[index].time);
    for (int kind = 0; kind < KINDS_MAX && kinds[kind][0]; kind++) printf("error %s\n", kinds[kind]);
    return 0;
}
