/*
 * A file that all ranks see, in the format of PyTorch's FileStore, written
 * under a lock. Keys have a "/" in front. "refcount/" counts who has it open
 * and "cleanup/" who is done; the last of all removes it. A crash leaves it
 * behind, with everything in it. Source: what PyTorch 2.13 writes.
 */
#include "worker/meet.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/io.h"
#include "common/parse.h"
#include "worker/file_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define POLL_MS 10
#define FILE_MAX ((off_t)16 * 1024 * 1024)

struct file {
    int fd;
    int world_size;
    char path[256];
};

static int failed(const struct file *file, int rc, struct err *err)
{
    if (rc == -EPROTO) {
        return err_set(err, rc, "the file %s is no FileStore of PyTorch's",
                       file->path);
    }
    return err_sys(err, rc, "file %s", file->path);
}

static int lock(const struct file *file, uint64_t deadline_ms)
{
    while (flock(file->fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return -errno;
        }
        if (clock_poll_ms(deadline_ms) == 0) {
            return -ETIMEDOUT;
        }
        clock_sleep_ms(1);
    }
    return 0;
}

static void unlock(const struct file *file)
{
    (void)flock(file->fd, LOCK_UN);
}

/* All of the file; the caller frees it. */
static int read_all(const struct file *file, struct buf *out)
{
    struct stat status;
    int rc;

    if (fstat(file->fd, &status) < 0) {
        return -errno;
    }
    if (status.st_size > FILE_MAX) {
        return -EPROTO;
    }
    rc = buf_reserve(out, (size_t)status.st_size);
    while (rc == 0 && out->len < (size_t)status.st_size) {
        ssize_t n = pread(file->fd, out->data + out->len,
                          (size_t)status.st_size - out->len, (off_t)out->len);

        if (n < 0 && errno != EINTR) {
            rc = -errno;
        } else if (n == 0) {
            break;
        } else if (n > 0) {
            out->len += (size_t)n;
        }
    }
    return rc;
}

static int append(const struct file *file, const char *key, const char *value)
{
    struct buf out = { 0 };
    int rc = file_record_append(&out, key, value);

    if (rc == 0 && lseek(file->fd, 0, SEEK_END) < 0) {
        rc = -errno;
    }
    if (rc == 0) {
        rc = io_write_all(file->fd, out.data, out.len);
    }
    buf_destroy(&out);
    return rc;
}

static int find(const struct buf *content, const char *key,
                struct bytes *value_out)
{
    return file_record_find((struct bytes){ content->data, content->len }, key,
                            value_out);
}

/* Add to a counter; the lock is ours. */
static int count(const struct file *file, const char *key, int delta,
                 int64_t *value_out)
{
    struct buf content = { 0 };
    struct bytes value = { 0 };
    int64_t number = 0;
    char text[24];
    int rc = read_all(file, &content);

    if (rc == 0) {
        rc = find(&content, key, &value);
    }
    if (rc == 0) {
        (void)snprintf(text, sizeof(text), "%.*s",
                       (int)(value.len < 20 ? value.len : 20),
                       (const char *)value.data);
        rc = parse_int(text, INT32_MIN, INT32_MAX, &number) < 0 ? -EPROTO : 0;
    }
    buf_destroy(&content);
    if (rc < 0 && rc != -ENOENT) {
        return rc;
    }
    number += delta;
    (void)snprintf(text, sizeof(text), "%" PRId64, number);
    *value_out = number;
    return append(file, key, text);
}

static int file_put(struct meet *meet, const char *key, const char *value,
                    uint64_t deadline_ms, struct err *err)
{
    const struct file *file = meet->state;
    char name[128];
    int rc = lock(file, deadline_ms);

    if (rc == 0) {
        (void)snprintf(name, sizeof(name), "/%s", key);
        rc = append(file, name, value);
        unlock(file);
    }
    return rc < 0 ? failed(file, rc, err) : 0;
}

/* Whoever gets waits by itself. */
static int file_fence(struct meet *meet, uint64_t deadline_ms, struct err *err)
{
    (void)meet;
    (void)deadline_ms;
    (void)err;
    return 0;
}

/* One look: 0, -ENOENT while it is not there, or another negative errno. */
static int look(const struct file *file, const char *name, char *value_out,
                size_t size, uint64_t deadline_ms)
{
    struct buf content = { 0 };
    struct bytes value = { 0 };
    int rc = lock(file, deadline_ms);

    if (rc < 0) {
        return rc;
    }
    rc = read_all(file, &content);
    unlock(file);
    if (rc == 0) {
        rc = find(&content, name, &value);
    }
    if (rc == 0 && value.len >= size) {
        rc = -EPROTO;
    }
    if (rc == 0) {
        memcpy(value_out, value.data, value.len);
        value_out[value.len] = '\0';
    }
    buf_destroy(&content);
    return rc;
}

static int file_get(struct meet *meet, const char *key, char *value_out,
                    size_t size, uint64_t deadline_ms, struct err *err)
{
    const struct file *file = meet->state;
    char name[128];

    (void)snprintf(name, sizeof(name), "/%s", key);
    for (;;) {
        int rc = look(file, name, value_out, size, deadline_ms);

        if (rc != -ENOENT) {
            return rc < 0 ? failed(file, rc, err) : 0;
        }
        if (clock_poll_ms(deadline_ms) == 0) {
            return err_set(err, -ETIMEDOUT,
                           "file %s: rank 0 left nothing there", file->path);
        }
        clock_sleep_ms(POLL_MS);
    }
}

static void file_close(struct meet *meet, uint64_t deadline_ms)
{
    struct file *file = meet->state;
    int64_t n_open = 1;
    int64_t n_done = 0;

    if (lock(file, deadline_ms) == 0) {
        if (count(file, "cleanup/", 1, &n_done) == 0 &&
            count(file, "refcount/", -1, &n_open) == 0 && n_open <= 0 &&
            n_done >= file->world_size) {
            (void)unlink(file->path);
        }
        unlock(file);
    }
    (void)close(file->fd);
    free(file);
}

static const struct meet_ops file_ops = { file_put, file_fence, file_get,
                                          file_close };

/* What another user left there, or put there to be read. */
static int check_owner(const struct file *file, struct err *err)
{
    struct stat status;

    if (fstat(file->fd, &status) < 0) {
        return failed(file, -errno, err);
    }
    if (!S_ISREG(status.st_mode)) {
        return err_set(err, -EINVAL, "%s is no file", file->path);
    }
    if (status.st_uid != geteuid()) {
        return err_set(err, -EPERM,
                       "the file %s belongs to another user (uid %u): remove "
                       "it, or name another",
                       file->path, (unsigned)status.st_uid);
    }
    return 0;
}

static int file_begin(struct file *file, uint64_t deadline_ms, struct err *err)
{
    int64_t n_open;
    int rc = check_owner(file, err);

    if (rc < 0) {
        return rc;
    }
    rc = lock(file, deadline_ms);
    if (rc == 0) {
        rc = count(file, "refcount/", 1, &n_open);
        unlock(file);
    }
    return rc < 0 ? failed(file, rc, err) : 0;
}

int meet_file_open(struct meet *meet, struct detected *detected,
                   uint64_t deadline_ms, struct err *err)
{
    struct file *file = calloc(1, sizeof(*file));
    int rc;

    if (file == NULL) {
        return err_sys(err, -ENOMEM, "file %s", detected->path);
    }
    (void)snprintf(file->path, sizeof(file->path), "%s", detected->path);
    file->world_size = detected->world_size;
    file->fd =
        open(file->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file->fd < 0) {
        rc = failed(file, -errno, err);
        free(file);
        return rc;
    }
    rc = file_begin(file, deadline_ms, err);
    if (rc < 0) {
        (void)close(file->fd);
        free(file);
        return rc;
    }
    *meet =
        (struct meet){ .ops = &file_ops, .state = file, .may_be_old = true };
    return 0;
}
