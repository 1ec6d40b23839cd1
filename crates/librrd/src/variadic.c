/* Functions with "..." in their prototypes, which Rust cannot define: the text is made here, the rest is Rust's. */

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#define TEXT_BYTES_MAX 4096

void roundel_keep_error(const char *text);

void roundel_set_error(const char *format, ...) {
    char text[TEXT_BYTES_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    roundel_keep_error(text);
}

int roundel_snprintf(char *out, size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(out, size, format, arguments);
    va_end(arguments);
    return length;
}
