#include "common/text.h"

#include <stdio.h>

size_t text_escape(char *out, size_t size, const char *text)
{
    size_t len = 0;

    for (; *text != '\0' && len + 5 < size; text++) {
        unsigned char c = (unsigned char)*text;

        if (c < 0x20 || c == 0x7f) {
            len += (size_t)snprintf(out + len, size - len, "\\x%02x", c);
        } else {
            out[len++] = (char)c;
        }
    }
    out[len] = '\0';
    return len;
}
