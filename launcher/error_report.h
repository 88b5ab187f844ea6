/*
 * Error files as JSON: what a worker left is read, and ours is written for
 * whoever started us. Both are PyTorch's form; see torchrun's documentation of
 * TORCHELASTIC_ERROR_FILE.
 */
#ifndef FLAUNCH_LAUNCHER_ERROR_REPORT_H
#define FLAUNCH_LAUNCHER_ERROR_REPORT_H

#include "common/err.h"
#include "launcher/report.h"

/* A worker's file longer than this is not read. */
#define ERROR_FILE_MAX ((size_t)4 * 1024 * 1024)

/* What a worker's file says; zero-initialise. */
struct error_record {
    char *message;   /* NULL: there is none */
    char *callstack; /* NULL: there is none */
    void *json;      /* the whole, for error_report_write */
};

/*
 * Read a worker's file. 0, also where there is no file (message is NULL then);
 * or a negative errno with a sentence for what is no such file.
 */
int error_record_read(const char *path, struct error_record *record_out,
                      struct err *err);

void error_record_destroy(struct error_record *record);

/*
 * Write path: the record with message.errorCode added, or without one a new
 * one with sentence as its message; report is in extraInfo.flaunch. 0 or a
 * negative errno with a sentence.
 */
int error_report_write(const char *path, const struct error_record *record,
                       const char *sentence, const struct report *report,
                       struct err *err);

/* The same where the job came to no report: it never began. */
int error_report_write_failure(const char *path, const char *sentence,
                               int exit_code, struct err *err);

#endif
