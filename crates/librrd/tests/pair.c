/* Two libraries of one name in a process: each does its own work and keeps its own error.
 * Usage: pair OURS THEIRS */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct library {
    void *handle;
    int (*create_r)(const char *, unsigned long, time_t, int, const char **);
    int (*update_r)(const char *, const char *, int, const char **);
    time_t (*last_r)(const char *);
    char *(*get_error)(void);
    void (*clear_error)(void);
};

static struct library load(void *handle) {
    struct library library = {handle, 0, 0, 0, 0, 0};
    if (!handle) {
        printf("%s\n", dlerror());
        return library;
    }
    *(void **)&library.create_r = dlsym(handle, "rrd_create_r");
    *(void **)&library.update_r = dlsym(handle, "rrd_update_r");
    *(void **)&library.last_r = dlsym(handle, "rrd_last_r");
    *(void **)&library.get_error = dlsym(handle, "rrd_get_error");
    *(void **)&library.clear_error = dlsym(handle, "rrd_clear_error");
    return library;
}

static int use(struct library *library, struct library *other, const char *file) {
    const char *definitions[] = {"DS:a:GAUGE:20:U:U", "RRA:AVERAGE:0.5:1:10"}, *word[] = {"1000000010:1"};
    if (!library->handle) return 1;
    int bad = library->create_r(file, 10, 1000000000, 2, definitions) || library->update_r(file, NULL, 1, word);
    bad |= other->last_r(file) != 1000000010;
    bad |= library->last_r("none.rrd") != -1 || !strstr(library->get_error(), "none.rrd") || other->get_error()[0];
    library->clear_error();
    return bad;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    struct library ours = load(dlopen(argv[1], RTLD_NOW | RTLD_LOCAL));
    struct library theirs = load(dlopen(argv[2], RTLD_NOW | RTLD_LOCAL));
    struct library apart = load(dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW | RTLD_LOCAL));
    if (!ours.handle || !theirs.handle || !apart.handle) return 1;
    int bad = use(&ours, &theirs, "a.rrd") | use(&theirs, &ours, "b.rrd") << 1 | use(&apart, &theirs, "c.rrd") << 2
        | use(&ours, &apart, "d.rrd") << 3;
    printf("%d\n", bad);
    return bad;
}
