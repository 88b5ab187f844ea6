/*
 * The records of PyTorch's FileStore; pure.
 *
 * Each is a key and a value, each a 32-bit length and its bytes, only ever
 * appended: the last record of a key counts. A key with "-" in front deletes.
 * Source: what PyTorch 2.13 writes.
 */
#ifndef FLAUNCH_WORKER_FILE_RECORD_H
#define FLAUNCH_WORKER_FILE_RECORD_H

#include "common/buf.h"

/* The newest value of key: 0, -ENOENT, or -EPROTO where content is no whole
 * number of records. value_out is inside content. */
int file_record_find(struct bytes content, const char *key,
                     struct bytes *value_out);

/* Append a record: 0 or -ENOMEM. */
int file_record_append(struct buf *out, const char *key, const char *value);

#endif
