#include "launcher/torchrun_options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number of Python's above 0; strtod knows hexadecimal ones as well. */
static int check_interval(const struct options *options, struct err *err)
{
    const char *text = options->values[OPT_MONITOR_INTERVAL].text;
    char *end;
    double seconds = strtod(text, &end);

    end += strspn(end, " \t\n");
    if (end == text || *end != '\0' || strpbrk(text, "xX") != NULL ||
        !isfinite(seconds) || seconds <= 0) {
        return options_bad(options, OPT_MONITOR_INTERVAL,
                           "give seconds above 0, such as 0.1", err);
    }
    return 0;
}

static int check_start_method(const struct options *options, struct err *err)
{
    const char *text = options->values[OPT_START_METHOD].text;

    if (strcmp(text, "spawn") == 0 || strcmp(text, "fork") == 0 ||
        strcmp(text, "forkserver") == 0) {
        return 0;
    }
    return options_bad(options, OPT_START_METHOD,
                       "give spawn, fork or forkserver", err);
}

int torchrun_options_events(const struct options *options,
                            enum event_log *log_out, struct err *err)
{
    const char *text = options->values[OPT_EVENT_LOG_HANDLER].text;

    if (strcmp(text, "console") == 0) {
        *log_out = EVENT_LOG_CONSOLE;
        return 0;
    }
    /* The last is torchrun's own, which writes nothing either. */
    if (strcmp(text, "null") == 0 || strcmp(text, "dynamic_rendezvous") == 0) {
        *log_out = EVENT_LOG_NONE;
        return 0;
    }
    return options_bad(options, OPT_EVENT_LOG_HANDLER, "give null or console",
                       err);
}

int torchrun_options_check(const struct options *options, struct err *err)
{
    int rc = check_interval(options, err);

    if (rc == 0) {
        rc = check_start_method(options, err);
    }
    if (rc == 0 && options->values[OPT_LOGS_SPECS].text != NULL) {
        rc = options_bad(options, OPT_LOGS_SPECS,
                         "it names a Python plugin, which flaunch cannot load; "
                         "use --log-dir, --redirects and --tee",
                         err);
    }
    return rc;
}
