/* Compiler attributes under names that say what they are for. */
#pragma once

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(format_at, args_at) __attribute__((format(printf, format_at, args_at)))
#define NORETURN __attribute__((noreturn))
#define UNUSED __attribute__((unused))
/* No gaps between members, and any address will do. */
#define PACKED __attribute__((packed))
/* For functions that are small if their arguments are constants; gcc judges the general form and does not inline it. */
#define ALWAYS_INLINE inline __attribute__((always_inline))
/* Calls fn(&variable) when the variable leaves its scope. */
#define CLEANUP(fn) __attribute__((cleanup(fn)))
/* For what hardly ever happens beside what often does: stays out of the latter's registers. */
#define COLD __attribute__((cold, noinline))
