#include "common/parse.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define YEAR_SECONDS (366ULL * 24 * 3600)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

int parse_int(const char *text, int64_t min, int64_t max, int64_t *value_out)
{
    bool negative = text[0] == '-';
    const char *p = text + (negative ? 1 : 0);
    uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    uint64_t magnitude = 0;
    bool overflow = false;
    int64_t value;

    if (!is_digit(*p)) {
        return -EINVAL;
    }
    for (; is_digit(*p); p++) {
        uint64_t digit = (uint64_t)(*p - '0');

        /* After an overflow read on, to tell a number from something else. */
        overflow = overflow || magnitude > (limit - digit) / 10;
        magnitude = overflow ? 0 : magnitude * 10 + digit;
    }
    if (*p != '\0') {
        return -EINVAL;
    }
    value = (int64_t)(negative ? 0 - magnitude : magnitude);
    if (overflow || value < min || value > max) {
        return -ERANGE;
    }
    *value_out = value;
    return 0;
}

/* text without what Python overlooks: 0 or -EINVAL. */
static int plain_number(const char *text, char *out, size_t size)
{
    size_t len = strlen(text);
    size_t n = 0;
    size_t i;

    while (len > 0 && isspace((unsigned char)text[0])) {
        text++;
        len--;
    }
    while (len > 0 && isspace((unsigned char)text[len - 1])) {
        len--;
    }
    if (len > 1 && text[0] == '+' && is_digit(text[1])) {
        text++;
        len--;
    }
    for (i = 0; i < len; i++) {
        if (text[i] == '_' && i > 0 && is_digit(text[i - 1]) && i + 1 < len &&
            is_digit(text[i + 1])) {
            continue;
        }
        if (n + 1 >= size) {
            return -EINVAL;
        }
        out[n++] = text[i];
    }
    out[n] = '\0';
    return 0;
}

int parse_python_int(const char *text, int64_t min, int64_t max,
                     int64_t *value_out)
{
    char plain[64];
    int rc = plain_number(text, plain, sizeof(plain));

    return rc == 0 ? parse_int(plain, min, max, value_out) : rc;
}

int parse_seconds(const char *text, uint64_t *ms_out)
{
    const char *p = text;
    uint64_t seconds = 0;
    uint64_t ms = 0;
    bool digits = false;

    for (; is_digit(*p); p++) {
        digits = true;
        if (seconds <= YEAR_SECONDS) {
            seconds = seconds * 10 + (uint64_t)(*p - '0');
        }
    }
    if (*p == '.') {
        uint64_t unit = 100;

        for (p++; is_digit(*p); p++) {
            digits = true;
            ms += unit * (uint64_t)(*p - '0');
            unit /= 10;
        }
    }
    if (!digits || *p != '\0') {
        return -EINVAL;
    }
    if (seconds > YEAR_SECONDS) {
        return -ERANGE;
    }
    *ms_out = seconds * 1000 + ms;
    return 0;
}

int parse_size(const char *text, uint64_t min, uint64_t max,
               uint64_t *bytes_out)
{
    static const char units[] = "KMG";
    const char *unit;
    char digits[24];
    size_t len = strlen(text);
    int64_t n;
    int shift = 0;

    if (len == 0 || len >= sizeof(digits)) {
        return -EINVAL;
    }
    unit = strchr(units, text[len - 1]);
    if (unit != NULL) {
        shift = 10 * (int)(unit - units + 1);
        len--;
    }
    memcpy(digits, text, len);
    digits[len] = '\0';
    if (parse_int(digits, 0, INT64_MAX, &n) < 0) {
        return -EINVAL;
    }
    if ((uint64_t)n > UINT64_MAX >> shift || (uint64_t)n << shift < min ||
        (uint64_t)n << shift > max) {
        return -ERANGE;
    }
    *bytes_out = (uint64_t)n << shift;
    return 0;
}

bool parse_list_next(const char **cursor, const char **item_out,
                     size_t *len_out)
{
    const char *item = *cursor;
    size_t len;

    if (item == NULL) {
        return false;
    }
    len = strcspn(item, ",");
    *cursor = item[len] == ',' ? item + len + 1 : NULL;
    while (len > 0 && is_blank(*item)) {
        item++;
        len--;
    }
    while (len > 0 && is_blank(item[len - 1])) {
        len--;
    }
    *item_out = item;
    *len_out = len;
    return true;
}

int parse_host_port(const char *text, char *host_out, size_t host_size,
                    uint16_t *port_out)
{
    const char *colon = strrchr(text, ':');
    const char *host = text;
    int64_t port;
    size_t len;

    if (colon == NULL || parse_int(colon + 1, 1, 65535, &port) < 0) {
        return -EINVAL;
    }
    len = (size_t)(colon - text);
    if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
        host++;
        len -= 2;
    } else if (memchr(host, ':', len) != NULL) {
        return -EINVAL; /* an IPv6 address without brackets: where is the port?
                         */
    }
    if (len == 0) {
        return -EINVAL;
    }
    if (len >= host_size) {
        return -ERANGE;
    }
    memcpy(host_out, host, len);
    host_out[len] = '\0';
    *port_out = (uint16_t)port;
    return 0;
}
