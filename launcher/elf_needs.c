#include "launcher/elf_needs.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DYNAMIC_MAX 4096 /* entries looked at */
#define SEGMENTS_MAX 256

struct elf_file {
    const uint8_t *data;
    size_t len;
};

/* Copy size bytes at offset; false where the file is shorter. */
static bool take(const struct elf_file *file, uint64_t offset, void *out,
                 size_t size)
{
    if (offset > file->len || size > file->len - offset) {
        return false;
    }
    memcpy(out, file->data + offset, size);
    return true;
}

static bool segment_at(const struct elf_file *file, const Elf64_Ehdr *header,
                       unsigned i, Elf64_Phdr *segment_out)
{
    return i < header->e_phnum && i < SEGMENTS_MAX &&
           take(file, header->e_phoff + (uint64_t)i * sizeof(*segment_out),
                segment_out, sizeof(*segment_out));
}

/* Where in the file a virtual address is stored; false: nowhere. */
static bool file_offset(const struct elf_file *file, const Elf64_Ehdr *header,
                        uint64_t address, uint64_t *offset_out)
{
    Elf64_Phdr segment;
    unsigned i;

    for (i = 0; segment_at(file, header, i, &segment); i++) {
        if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
            address - segment.p_vaddr < segment.p_filesz) {
            *offset_out = segment.p_offset + (address - segment.p_vaddr);
            return true;
        }
    }
    return false;
}

/* The value of the first dynamic entry of this kind. */
static bool dynamic_find(const struct elf_file *file, uint64_t dynamic,
                         int64_t tag, uint64_t *value_out)
{
    Elf64_Dyn entry;
    unsigned i;

    for (i = 0; i < DYNAMIC_MAX &&
                take(file, dynamic + i * sizeof(entry), &entry, sizeof(entry));
         i++) {
        if (entry.d_tag == tag) {
            *value_out = entry.d_un.d_val;
            return true;
        }
        if (entry.d_tag == DT_NULL) {
            break;
        }
    }
    return false;
}

static bool dynamic_needs(const struct elf_file *file, const Elf64_Ehdr *header,
                          uint64_t dynamic, const char *prefix)
{
    size_t prefix_len = strlen(prefix);
    uint64_t strings;
    Elf64_Dyn entry;
    unsigned i;

    if (!dynamic_find(file, dynamic, DT_STRTAB, &strings) ||
        !file_offset(file, header, strings, &strings)) {
        return false;
    }
    for (i = 0; i < DYNAMIC_MAX &&
                take(file, dynamic + i * sizeof(entry), &entry, sizeof(entry));
         i++) {
        uint64_t name = strings + entry.d_un.d_val;

        if (entry.d_tag == DT_NULL) {
            break;
        }
        if (entry.d_tag == DT_NEEDED && name >= strings && name < file->len &&
            prefix_len <= file->len - name &&
            memcmp(file->data + name, prefix, prefix_len) == 0) {
            return true;
        }
    }
    return false;
}

bool elf_needs(const uint8_t *data, size_t len, const char *prefix)
{
    struct elf_file file = { .data = data, .len = len };
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    unsigned i;

    if (!take(&file, 0, &header, sizeof(header)) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_phentsize != sizeof(segment)) {
        return false;
    }
    for (i = 0; segment_at(&file, &header, i, &segment); i++) {
        if (segment.p_type == PT_DYNAMIC) {
            return dynamic_needs(&file, &header, segment.p_offset, prefix);
        }
    }
    return false;
}

bool elf_file_needs(const char *path, const char *prefix)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool needs = false;
    struct stat info;
    void *data;

    if (fd < 0) {
        return false;
    }
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data != MAP_FAILED) {
            needs = elf_needs(data, (size_t)info.st_size, prefix);
            (void)munmap(data, (size_t)info.st_size);
        }
    }
    (void)close(fd);
    return needs;
}
