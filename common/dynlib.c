#include "common/dynlib.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

static int find_all(void *library, const struct dynlib_symbol *symbols,
                    char *why, size_t why_size)
{
    for (; symbols->name != NULL; symbols++) {
        *symbols->address = dlsym(library, symbols->name);
        if (*symbols->address == NULL && !symbols->optional) {
            (void)snprintf(why, why_size, "it lacks %s", symbols->name);
            return -ENOENT;
        }
    }
    return 0;
}

/* The first of names that can be opened, or NULL with the linker's words. */
static void *open_first(const char *const *names, int flags, char *why,
                        size_t why_size)
{
    void *library = NULL;

    for (; *names != NULL && library == NULL; names++) {
        library = dlopen(*names, RTLD_NOW | RTLD_LOCAL | flags);
        if (library == NULL && flags == 0) {
            (void)snprintf(why, why_size, "%s", dlerror());
        }
    }
    return library;
}

int dynlib_load(const char *const *names, const struct dynlib_symbol *symbols,
                void **library_out, char *why, size_t why_size)
{
    void *library = NULL;

    *library_out = NULL;
    if (dlsym(RTLD_DEFAULT, symbols[0].name) != NULL) {
        return find_all(RTLD_DEFAULT, symbols, why, why_size);
    }
    library = open_first(names, RTLD_NOLOAD, why, why_size);
    if (library == NULL) {
        library = open_first(names, 0, why, why_size);
    }
    if (library == NULL) {
        return -ENOENT;
    }
    *library_out = library;
    return find_all(library, symbols, why, why_size);
}

void dynlib_path(void *const *function, char *path_out, size_t size)
{
    Dl_info info;

    (void)snprintf(path_out, size, "%s",
                   dladdr(*function, &info) != 0 && info.dli_fname != NULL
                       ? info.dli_fname
                       : "");
}
