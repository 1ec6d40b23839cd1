/* Report R5's idea, made again for comparison: one file in which a disk block holds the same time of many RRDs.
 *
 *     stripes FILE RRDS PDPS:ROWS...
 *
 * Each RRD has 32 bytes, four rows, in a row of stripes; the stripes of all RRDs lie one after the other, and the next four rows of
 * all begin after them, at the next block. An archive is a ring of such rows of stripes. Standard input has "INDEX TIME/STEP VALUE"
 * lines; an empty line is answered with OK when all before it have been written (to the page cache, as by RRDtool). AVERAGE only;
 * nothing is checked: it shows what the order of bytes is worth, and is no store.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STRIPE_ROWS = 4, ROW_BYTES = 8, BLOCK = 4096, ARCHIVES_MAX = 16 };

static struct archive { long pdps, rows; off_t begin; double *sums; } archives[ARCHIVES_MAX];

static void fail(const char *what) { perror(what); exit(1); }

int main(int count, char **words) {
    if (count < 4 || count - 3 > ARCHIVES_MAX) { fprintf(stderr, "usage: stripes FILE RRDS PDPS:ROWS...\n"); return 1; }
    int file = open(words[1], O_RDWR | O_CREAT, 0644), used = count - 3;
    long rrds = atol(words[2]);
    if (file < 0 || rrds < 1) fail(words[1]);
    off_t band = (rrds * STRIPE_ROWS * ROW_BYTES + BLOCK - 1) / BLOCK * BLOCK, end = 0;
    for (int i = 0; i < used; i++) {
        struct archive *one = &archives[i];
        if (sscanf(words[i + 3], "%ld:%ld", &one->pdps, &one->rows) != 2 || one->pdps < 1) fail(words[i + 3]);
        one->begin = end;
        end += (one->rows + STRIPE_ROWS - 1) / STRIPE_ROWS * band;
        if (!(one->sums = calloc(rrds, sizeof *one->sums))) fail("calloc");
    }
    if (posix_fallocate(file, 0, end)) fail("posix_fallocate");
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        long index, time;
        double value;
        if (line[0] == '\n') { puts("OK"); fflush(stdout); continue; }
        if (sscanf(line, "%ld %ld %lf", &index, &time, &value) != 3 || index < 0 || index >= rrds) { fprintf(stderr, "bad line: %s", line); return 1; }
        for (int i = 0; i < used; i++) {
            struct archive *one = &archives[i];
            one->sums[index] += value;
            if (time % one->pdps) continue;
            double row = one->sums[index] / one->pdps;
            long at = time / one->pdps % one->rows;
            off_t offset = one->begin + at / STRIPE_ROWS * band + (index * STRIPE_ROWS + at % STRIPE_ROWS) * ROW_BYTES;
            if (pwrite(file, &row, sizeof row, offset) != sizeof row) fail("pwrite");
            one->sums[index] = 0;
        }
    }
    return 0;
}
