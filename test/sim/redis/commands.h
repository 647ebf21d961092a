/* The functions of all commands, and what several of them need. */
#pragma once
#include "internal.h"

typedef void command_function(struct call *call);

#define COMMAND(name, arity, flags, function, first, last, step) command_function function;
#include "commands.def"
#undef COMMAND

/* cmd_string.c: a time to live, or a time, as an argument. False: the error is in the reply. */
bool expiry_read(struct call *call, struct text text, int64_t unit_ms, bool is_absolute, int64_t *ret_ms);
/* cmd_hash.c: a mark for each of `all` places; `count` of them are chosen. The caller frees it. */
bool *choose_places(struct simredis *server, size_t all, size_t count);
/* The count of HRANDFIELD and its kin. False: the error is in the reply. */
bool random_count(struct call *call, size_t index, int64_t *ret_count);
/* The same, if each is to be told with its value. */
bool fits_twice(struct call *call, int64_t count);
/* cmd_keys.c: as TYPE says it */
const char *value_type_name(const struct value *value);
/* cmd_stream.c */
struct text print_id(char storage[NUMBER_BYTES], struct stream_id id);
void say_entry(struct call *call, const struct stream_entry *entry);
