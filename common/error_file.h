/*
 * The record a failing worker leaves, in the form of PyTorch's @record:
 * {"message": {"message": "...", "extraInfo": {"timestamp": "..."}}}.
 */
#ifndef FLAUNCH_COMMON_ERROR_FILE_H
#define FLAUNCH_COMMON_ERROR_FILE_H

#include "common/buf.h"
#include "common/err.h"

/*
 * Append text as a JSON string with its quotes, all ASCII; what is no UTF-8
 * becomes U+FFFD. 0 or -ENOMEM.
 */
int error_file_put_text(struct buf *out, const char *text);

/*
 * Write the record of message to path, which is replaced in one step. Returns
 * 0 or a negative errno with a sentence.
 */
int error_file_write(const char *path, const char *message, struct err *err);

/* Write bytes to path in one step: whole, or not at all. */
int error_file_replace(const char *path, const void *data, size_t len,
                       struct err *err);

#endif
