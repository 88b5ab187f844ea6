/*
 * cmocka with what it needs in front of it.
 */
#ifndef FLAUNCH_TESTS_UNIT_UNIT_H
#define FLAUNCH_TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
