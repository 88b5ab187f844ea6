#include "launcher/error_report.h"

#include "common/error_file.h"
#include "common/version.h"
#include "launcher/exit_status.h"
#include "launcher/json_text.h"
#include "launcher/signal_names.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The whole of a regular file of ERROR_FILE_MAX bytes at most. */
static int read_whole(const char *path, struct buf *out, struct err *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    int rc = 0;

    if (fd < 0) {
        return errno == ENOENT ? -ENOENT
                               : err_sys(err, -errno,
                                         "cannot read its error file %s", path);
    }
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
        status.st_size > (off_t)ERROR_FILE_MAX ||
        buf_reserve(out, (size_t)status.st_size) < 0) {
        rc = err_set(err, -EINVAL, "its error file %s is no file, or too large",
                     path);
    }
    while (rc == 0 && out->len < (size_t)status.st_size) {
        ssize_t n =
            read(fd, out->data + out->len, (size_t)status.st_size - out->len);

        if (n <= 0) {
            break;
        }
        out->len += (size_t)n;
    }
    (void)close(fd);
    return rc;
}

static char *copy_text(const json_t *value)
{
    const char *text = json_string_value(value);

    return text != NULL ? strdup(text) : NULL;
}

/* Take over json. Both forms: message is an object with a message in it, or a
 * text. */
static bool record_take(struct error_record *record, json_t *json)
{
    json_t *message = json_object_get(json, "message");

    if (json_is_object(message)) {
        record->callstack = copy_text(json_object_get(
            json_object_get(message, "extraInfo"), "py_callstack"));
        message = json_object_get(message, "message");
    }
    record->message = copy_text(message);
    record->json = json;
    return record->message != NULL;
}

int error_record_read(const char *path, struct error_record *record_out,
                      struct err *err)
{
    struct error_record record = { 0 };
    struct buf text = { 0 };
    json_t *json;
    int rc = read_whole(path, &text, err);

    *record_out = record;
    if (rc < 0) {
        buf_destroy(&text);
        return rc == -ENOENT ? 0 : rc;
    }
    json = json_loadb((const char *)text.data, text.len, 0, NULL);
    buf_destroy(&text);
    if (json == NULL || !record_take(&record, json)) {
        rc =
            err_set(err, -EINVAL, "its error file %s is no error record", path);
        error_record_destroy(&record); /* and what is read of it */
        return rc;
    }
    *record_out = record;
    return 0;
}

void error_record_destroy(struct error_record *record)
{
    free(record->message);
    free(record->callstack);
    json_decref(record->json);
    *record = (struct error_record){ 0 };
}

static const char *fate(const struct outcome *outcome, uint32_t rank)
{
    const struct worker *worker = &outcome->group->workers[rank];

    if (rank == outcome->group->first_failure) {
        return "failed first";
    }
    if (report_also_failed(outcome, rank)) {
        return "also failed";
    }
    if (report_is_stopped(worker)) {
        return "stopped by flaunch";
    }
    return report_is_done(worker) ? "done" : "never ran";
}

static json_t *json_worker(const struct outcome *outcome, uint32_t rank)
{
    const struct worker *worker = &outcome->group->workers[rank];
    json_t *json = json_object();
    char buffer[32];

    (void)json_object_set_new(json, "rank",
                              json_integer(outcome->group->base_rank + rank));
    (void)json_object_set_new(json, "fate", json_string(fate(outcome, rank)));
    if (worker->pid != 0) {
        (void)json_object_set_new(json, "pid", json_integer(worker->pid));
    }
    if (worker->state == WORKER_FAILED) {
        (void)json_object_set_new(json, "start_error",
                                  json_string(strerror((int)worker->error)));
        return json;
    }
    if (worker->state != WORKER_EXITED) {
        return json;
    }
    if (WIFSIGNALED(worker->wait_status)) {
        (void)json_object_set_new(
            json, "signal",
            json_string(signal_name(WTERMSIG(worker->wait_status), buffer,
                                    sizeof(buffer))));
    }
    (void)json_object_set_new(
        json, "exit_code", json_integer(exit_status_code(worker->wait_status)));
    (void)json_object_set_new(
        json, "seconds",
        json_real((double)(worker->ended_ns - worker->started_ns) / 1e9));
    (void)json_object_set_new(
        json, "peak_memory_bytes",
        json_integer((json_int_t)worker->peak_kib * 1024));
    return json;
}

/* The last lines as one text. */
static json_t *json_last(const struct last_lines *last)
{
    struct buf text = { 0 };
    json_t *json = NULL;

    if (last_lines_print(last, REPORT_LAST_LINES, "", &text) > 0 &&
        buf_append_u8(&text, '\0') == 0) {
        json = json_text((const char *)text.data);
    }
    buf_destroy(&text);
    return json;
}

/* All that the report on the screen says. */
static json_t *json_report(const struct report *report)
{
    const struct outcome *outcome = report->outcome;
    json_t *json = json_object();
    json_t *workers = json_array();
    uint32_t i;

    (void)json_object_set_new(json, "version",
                              json_string(FLAUNCH_VERSION_TEXT));
    (void)json_object_set_new(json, "run_id", json_text(report->run_id));
    (void)json_object_set_new(json, "host", json_text(report->host));
    (void)json_object_set_new(json, "attempt", json_integer(report->attempt));
    (void)json_object_set_new(json, "max_restarts",
                              json_integer(report->max_restarts));
    (void)json_object_set_new(json, "exit_code",
                              json_integer(report->exit_code));
    for (i = 0; i < outcome->group->n; i++) {
        (void)json_array_append_new(workers, json_worker(outcome, i));
    }
    (void)json_object_set_new(json, "workers", workers);
    if (report->last != NULL) {
        (void)json_object_set_new(json, "last_lines", json_last(report->last));
    }
    if (report->log != NULL) {
        (void)json_object_set_new(json, "log", json_text(report->log));
    }
    if (report->oom_kills >= 0) {
        (void)json_object_set_new(json, "oom_kills",
                                  json_integer(report->oom_kills));
    }
    return json;
}

/* A record of our own, in the form with an object. */
static json_t *json_record(const char *sentence)
{
    char seconds[32];

    (void)snprintf(seconds, sizeof(seconds), "%lld", (long long)time(NULL));
    return json_pack("{s:{s:o,s:{s:s}}}", "message", "message",
                     json_text(sentence), "extraInfo", "timestamp", seconds);
}

/* The object that errorCode and extraInfo belong in: the message, or, where
 * that is a text, the record itself. */
static json_t *json_holder(json_t *record)
{
    json_t *message = json_object_get(record, "message");

    return json_is_object(message) ? message : record;
}

/* Put our fields into a record, which is taken over, and write it. */
static int write_record(const char *path, json_t *record, json_t *ours,
                        int exit_code, struct err *err)
{
    json_t *holder = json_holder(record);
    json_t *extra = json_object_get(holder, "extraInfo");
    char *text;
    int rc;

    if (!json_is_object(extra)) {
        (void)json_object_set_new(holder, "extraInfo", json_object());
        extra = json_object_get(holder, "extraInfo");
    }
    (void)json_object_set_new(extra, "flaunch", ours);
    if (holder != record) {
        (void)json_object_set_new(holder, "errorCode", json_integer(exit_code));
    }
    text = json_dumps(record, JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6));
    rc = text != NULL
             ? error_file_replace(path, text, strlen(text), err)
             : err_set(err, -ENOMEM, "cannot write error file '%s'", path);
    free(text);
    json_decref(record);
    return rc;
}

int error_report_write(const char *path, const struct error_record *record,
                       const char *sentence, const struct report *report,
                       struct err *err)
{
    return write_record(path,
                        record->json != NULL ? json_deep_copy(record->json)
                                             : json_record(sentence),
                        json_report(report), report->exit_code, err);
}

int error_report_write_failure(const char *path, const char *sentence,
                               int exit_code, struct err *err)
{
    return write_record(path, json_record(sentence),
                        json_pack("{s:s, s:i}", "version", FLAUNCH_VERSION_TEXT,
                                  "exit_code", exit_code),
                        exit_code, err);
}
