/* Calls of most functions of rrd.h, with what they give, one a line: the same lines for RRDtool's library and ours. */

#define RRD_EXPORT_DEPRECATED
#include <rrd.h>
#include <rrd_client.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of rrd_tool.h, which is not installed. */
#define READ_ONLY 1
extern unsigned int rrd_strtodbl(const char *, char **, double *, const char *);
extern double rrd_strtod(const char *, char **);
extern int rrd_fetch_cb_register(int (*)(const char *, enum cf_en, time_t *, time_t *, unsigned long *, unsigned long *,
                                         char ***, rrd_value_t **));

static void told(const char *call, long status) {
    printf("%s %ld '%s'\n", call, status, rrd_get_error());
    rrd_clear_error();
}

static void info(const char *call, rrd_info_t *list) {
    printf("%s %s '%s'\n", call, list ? "gives" : "fails", rrd_get_error());
    rrd_clear_error();
    for (rrd_info_t *item = list; item; item = item->next) {
        switch (item->type) {
        case RD_I_VAL: printf("  %s %.10e\n", item->key, item->value.u_val); break;
        case RD_I_CNT: printf("  %s %lu\n", item->key, item->value.u_cnt); break;
        case RD_I_STR: printf("  %s '%s'\n", item->key, item->value.u_str); break;
        case RD_I_INT: printf("  %s %d\n", item->key, item->value.u_int); break;
        case RD_I_BLO: printf("  %s blob\n", item->key); break;
        }
    }
    rrd_info_free(list);
}

static void rows(const char *call, int status, time_t start, time_t end, unsigned long step, unsigned long count,
                 char **names, rrd_value_t *data) {
    printf("%s %d '%s'\n", call, status, rrd_get_error());
    rrd_clear_error();
    if (status != 0) return;
    printf("  %ld %ld %lu %lu\n", (long)start, (long)end, step, count);
    for (unsigned long ds = 0; ds < count; ds++) { printf("  %s\n", names[ds]); free(names[ds]); }
    for (unsigned long cell = 0; cell < (end - start) / step * count; cell++)
        printf(isnan(data[cell]) ? " nan" : " %.10e", data[cell]);
    printf("\n");
    free(names);
    free(data);
}

static int given(const char *file, enum cf_en cf, time_t *start, time_t *end, unsigned long *step, unsigned long *count,
                 char ***names, rrd_value_t **data) {
    printf("asked %s %d %ld %ld\n", file, cf, (long)*start, (long)*end);
    *step = 10; *start -= *start % 10; *end += (10 - *end % 10) % 10; *count = 2;
    *names = malloc(2 * sizeof **names);
    (*names)[0] = strdup("min"); (*names)[1] = strdup("max");
    long cells = ((*end - *start) / 10 + 1) * 2;
    *data = malloc(cells * sizeof **data);
    for (long cell = 0; cell < cells; cell++) (*data)[cell] = cell;
    return 1;
}

#define WORDS(...) (int)(sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)), (char *[]){__VA_ARGS__}

/* A file answers in place of a daemon that cannot be reached; the reason stays. */
static void unreachable(void) {
    char *words[] = {"call", "x.rrd", "-d", "unix:/nonexistent", NULL};
    char *fetch[] = {"fetch", "x.rrd", "AVERAGE", "-s", "1000000000", "-e", "1000000020", "-d", "unix:/nonexistent", NULL};
    char *dump[] = {"dump", "x.rrd", "/dev/null", "-d", "unix:/nonexistent", NULL};
    time_t start, end;
    unsigned long step, count;
    char **names;
    rrd_value_t *data;
    told("last, unreachable", rrd_last(4, words));
    told("first, unreachable", rrd_first(4, words));
    told("dump, unreachable", rrd_dump(5, dump));
    info("info, unreachable", rrd_info(4, words));
    told("fetch, unreachable", rrd_fetch(9, fetch, &start, &end, &step, &count, &names, &data));
    /* RRDtool has put the options of `words` first. */
    char *file[] = {"last", "x.rrd", NULL};
    told("last, of a file", rrd_last(2, file));
}

int main(void) {
    time_t start, end, last;
    unsigned long step, count;
    char **names, **readings;
    rrd_value_t *data;
    int x, y;
    double low, high;
    setvbuf(stdout, NULL, _IONBF, 0);
    const char *definitions[] = {"DS:a:GAUGE:20:U:U", "DS:b:COUNTER:20:0:U", "RRA:AVERAGE:0.5:1:10", "RRA:MAX:0.5:3:5"};
    told("create_r", rrd_create_r("x.rrd", 10, 1000000000, 4, definitions));
    told("create_r bad", rrd_create_r("y.rrd", 10, 1000000000, 1, (const char *[]){"DS:a:NONE:20:U:U"}));
    told("create_r nowhere", rrd_create_r("no/y.rrd", 10, 1000000000, 4, definitions));
    told("update_r", rrd_update_r("x.rrd", NULL, 2, (const char *[]){"1000000010:1:10", "1000000020:2.5:30"}));
    told("update_r template", rrd_update_r("x.rrd", "b:a", 1, (const char *[]){"1000000030:60:U"}));
    told("update_r old", rrd_update_r("x.rrd", NULL, 1, (const char *[]){"1000000010:1:10"}));
    told("updatex_r old", rrd_updatex_r("x.rrd", NULL, 1, 2, (const char *[]){"1000000010:1:10", "1000000040:7:70"}));
    told("update_r none", rrd_update_r("none.rrd", NULL, 1, (const char *[]){"1000000010:1:10"}));
    told("update", rrd_update(WORDS("update", "x.rrd", "1000000050:4:90", "1000000060:5:120")));
    told("update few", rrd_update(WORDS("update", "x.rrd")));
    info("update_v", rrd_update_v(WORDS("updatev", "x.rrd", "1000000070:-3:150")));
    start = 1000000000; end = 1000000070; step = 1;
    x = rrd_fetch_r("x.rrd", "AVERAGE", &start, &end, &step, &count, &names, &data);
    rows("fetch_r", x, start, end, step, count, names, data);
    start = 1000000000; end = 1000000070; step = 30;
    x = rrd_fetch_r("x.rrd", "MAX", &start, &end, &step, &count, &names, &data);
    rows("fetch_r max", x, start, end, step, count, names, data);
    x = rrd_fetch_r("x.rrd", "NONE", &start, &end, &step, &count, &names, &data);
    rows("fetch_r bad", x, start, end, step, count, names, data);
    x = rrd_fetch(WORDS("fetch", "x.rrd", "AVERAGE", "-s", "1000000020", "-e", "start+40"), &start, &end, &step, &count,
                  &names, &data);
    rows("fetch", x, start, end, step, count, names, data);
    told("last_r", rrd_last_r("x.rrd"));
    told("last", rrd_last(WORDS("last", "x.rrd")));
    told("last_r none", rrd_last_r("none.rrd"));
    told("first_r", rrd_first_r("x.rrd", 1));
    told("first_r bad", rrd_first_r("x.rrd", 9));
    told("lastupdate_r", rrd_lastupdate_r("x.rrd", &last, &count, &names, &readings));
    for (unsigned long ds = 0; ds < count; ds++) {
        printf("  %ld %s %s\n", (long)last, names[ds], readings[ds]);
        rrd_freemem(names[ds]); rrd_freemem(readings[ds]);
    }
    rrd_freemem(names); rrd_freemem(readings);
    info("info_r", rrd_info_r("x.rrd"));
    info("info none", rrd_info(WORDS("info", "none.rrd")));
    told("tune", rrd_tune(WORDS("tune", "x.rrd", "-h", "a:40")));
    told("dump", rrd_dump(WORDS("dump", "x.rrd", "x.xml")));
    told("restore", rrd_restore(WORDS("restore", "x.xml", "z.rrd")));
    told("resize", rrd_resize(WORDS("resize", "z.rrd", "0", "GROW", "2")));
    x = rrd_xport(WORDS("xport", "-s", "1000000000", "-e", "1000000060", "DEF:a=x.rrd:a:AVERAGE", "CDEF:c=a,2,*",
                        "XPORT:c:twice"), &x, &start, &end, &step, &count, &names, &data);
    rows("xport", x, start, end, step, count, names, data);
    readings = NULL;
    told("graph", rrd_graph(WORDS("graph", "g.png", "-s", "1000000000", "-e", "1000000060", "DEF:a=x.rrd:a:AVERAGE",
                                  "LINE:a#f00:line", "PRINT:a:MAX:%.2lf", "PRINT:a:MIN:%.3lf"),
                            &readings, &x, &y, NULL, &low, &high));
    printf("  %d %d %.6e %.6e\n", x, y, low, high);
    for (char **text = readings; text && *text; text++) { printf("  %s\n", *text); free(*text); }
    free(readings);
    info("graph_v", rrd_graph_v(WORDS("graphv", "-", "-s", "1000000000", "-e", "1000000060", "DEF:a=x.rrd:a:AVERAGE",
                                      "LINE:a#f00:line", "PRINT:a:MAX:%.2lf")));
    info("graph_v bad", rrd_graph_v(WORDS("graphv", "g.png", "LINE:none#f00")));
    rrd_fetch_cb_register(given);
    x = rrd_xport(WORDS("xport", "-s", "1000000000", "-e", "1000000040", "DEF:a=cb//mine:max:AVERAGE", "XPORT:a"), &x,
                  &start, &end, &step, &count, &names, &data);
    rows("xport of a callback", x, start, end, step, count, names, data);
    struct rrd_time_value from, to;
    const char *bad = rrd_parsetime("now and then", &from);
    printf("parsetime '%s'\n", bad ? bad : "");
    bad = rrd_parsetime("end-2h", &from);
    bad = bad ? bad : rrd_parsetime("1000000000", &to);
    told("proc_start_end", bad ? -2 : rrd_proc_start_end(&from, &to, &start, &end));
    printf("  %ld %ld\n", (long)start, (long)end);
    double value;
    printf("strtodbl %u", rrd_strtodbl("12.5e1x", NULL, &value, NULL));
    printf(" %g %u\n", value, rrd_strtodbl("7", NULL, &value, NULL));
    const char *numbers[] = {"nan", "-nan", "-inf", "+inf", "NaNny", " inf", "1e5", "1e+", "0x10", "  12z", "-", "", ".5", NULL};
    for (const char **text = numbers; *text; text++) {
        char *after = (char *)*text + 99;
        unsigned int status = rrd_strtodbl(*text, &after, &value, NULL);
        printf("strtodbl '%s' %u %g %ld", *text, status, value, (long)(after - *text));
        after = (char *)*text + 99;
        value = rrd_strtod(*text, &after);
        printf(", strtod %g %ld\n", value, (long)(after - *text));
        // With and without a place for what follows the number.
        told("strtodbl", rrd_strtodbl(*text, NULL, &value, "x"));
        told("strtodbl", rrd_strtodbl(*text, &after, &value, "x"));
    }
    rrd_t rrd;
    rrd_init(&rrd);
    rrd_file_t *file = rrd_open("x.rrd", &rrd, READ_ONLY);
    if (file) {
        printf("open %lu %s %lu %ld\n", rrd.stat_head->pdp_step, rrd.ds_def[1].ds_nam, rrd.stat_head->rra_cnt,
               (long)rrd.live_head->last_up);
        rrd_close(file);
    }
    rrd_free(&rrd);
    printf("open none %d '%s'\n", rrd_open("none.rrd", &rrd, READ_ONLY) != NULL, rrd_get_error());
    rrd_clear_error();
    rrd_set_error("%s is %d", "seven", 7);
    told("set_error", rrd_test_error());
    told("connect", rrdc_connect("unix:/nonexistent") != 0);
    told("update nothing", rrd_update(0, NULL));
    unreachable();
    return 0;
}
