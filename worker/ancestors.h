/*
 * The processes that this one descends from, for people: they tell which of
 * several records is the innermost launcher's.
 */
#ifndef FLAUNCH_WORKER_ANCESTORS_H
#define FLAUNCH_WORKER_ANCESTORS_H

#include <stddef.h>

/*
 * "sh <- flguard <- flaunch <- bash", from the parent up, as far as there is
 * room and this PID namespace reaches; "" where /proc is not there.
 */
void ancestors_list(char *text_out, size_t size);

#endif
