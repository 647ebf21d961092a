/* What the files of simredis share. Functions that more than one file needs have the prefix of what they are about:
 * dict_, zset_, stream_, value_, space_ (the key space), say_, cmd_ (the commands), sim_. */
#pragma once
#include "base/attr.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text.h"
#include "dict.h"
#include "request.h"
#include "simredis.h"
#include "stream.h"
#include "zset.h"

#include <limits.h>

enum { SIM_BULK_MAX_BYTES = 512 * 1024 * 1024, SIM_RUN_ID_CHARS = 40, SIM_DATABASES = 16 };

enum value_type { VALUE_STRING, VALUE_LIST, VALUE_SET, VALUE_ZSET, VALUE_HASH, VALUE_STREAM };

struct value {
    enum value_type type;
    bool has_only_integers; /* of sets: then they are in their order, as Redis keeps small ones */
    int64_t expires_ms;     /* INT64_MAX: never */
    struct text string;     /* its own copy */
    struct dict dict;       /* of hashes and sets */
    struct zset zset;
    struct stream stream;
    struct text *items; /* of lists, each its own copy */
    size_t item_count, item_room;
};

struct database {
    struct dict values; /* object: struct value */
};

struct acl_user;

struct simredis_client {
    struct list node; /* of simredis.clients, by id */
    struct simredis *server;
    void *host_client;
    uint64_t id;
    struct buf in, out;
    char *name;            /* NULL: none */
    struct acl_user *user; /* NULL: nobody has logged in */
    unsigned db;
    struct dict channels[3]; /* by enum channel_kind; object: unused */
    bool is_closing, is_running;
    bool is_asking;      /* the command before was ASKING */
    bool is_held;        /* by CLIENT PAUSE: its input waits */
    uint64_t wait_until; /* us: WAIT answers then; 0: it does not wait, UINT64_MAX: without end */
    int64_t wait_replicas;
    uint64_t wait_offset, write_offset; /* of the stream: what WAIT waits for, what the last command made it */
    /* A replica: it has said PSYNC, and hears the stream. Online: it has the data, and has said so. */
    bool is_replica, is_online;
    uint64_t acked_offset, acked_us;
    char *replica_ip; /* NULL: it did not say */
    uint16_t replica_port;
};

enum channel_kind { CHANNEL, PATTERN, SHARD_CHANNEL };

struct lua_State;

/* What commands have written and nobody was told yet. */
struct log {
    struct buf bytes;
    unsigned count, db; /* db: UINT_MAX: none was named yet */
};

enum upstream_state {
    UPSTREAM_NONE,    /* it is a master */
    UPSTREAM_CONNECT, /* it looks for its master each second */
    UPSTREAM_CONNECTING,
    UPSTREAM_HANDSHAKE,
    UPSTREAM_SYNC, /* all data are on their way */
    UPSTREAM_CONNECTED,
};

/* A replica's connection to its master. */
struct upstream {
    enum upstream_state state;
    void *link; /* NULL: none */
    struct buf in;
    char replid[SIM_RUN_ID_CHARS + 1]; /* of the data that come */
    uint64_t offset, heard_us, lost_us;
    unsigned db;
};

struct simredis {
    struct simredis_host host;
    struct list clients;
    uint64_t next_client_id;
    char run_id[SIM_RUN_ID_CHARS + 1];
    struct database databases[SIM_DATABASES];
    struct dict settings; /* text: the value */
    struct dict users;    /* object: struct acl_user */
    struct dict scripts;  /* by SHA-1; text: the script, score: its flags */
    struct lua_State *lua;
    uint64_t now_us, started_us; /* now: of the command that runs */
    uint64_t pause_until_us;     /* CLIENT PAUSE; 0: none */
    bool pauses_writes_only, is_loading, in_script, has_script_written;
    unsigned script_flags;
    struct call *script_call; /* EVAL or EVALSHA, while it runs */
    struct log disk, stream;  /* stream: to replicas */
    uint64_t logged;          /* commands, ever */
    size_t expire_place;      /* in the key space: see space_expire_some() */
    bool expires_only_seen;   /* DEBUG SET-ACTIVE-EXPIRE 0 */
    char *master_host;        /* REPLICAOF; NULL: it is a master */
    uint16_t master_port;
    struct cluster *cluster; /* NULL: it is no member of one */
    struct upstream upstream;
    /* The history that its data belong to, and the one before; offset: bytes of the stream. Without has_stream nothing
     * is counted: no replica has ever come. */
    char replid[SIM_RUN_ID_CHARS + 1], replid2[SIM_RUN_ID_CHARS + 1];
    uint64_t offset;
    int64_t second_offset; /* up to which replid2 counts; -1: never */
    bool has_stream, asks_acks;
    uint64_t cron_us, pinged_us; /* cron: once a second */
    int64_t good_replicas;       /* as they were then */
    struct dict calls;           /* by name of a command; number of calls in score */
};

/* One command. */
struct call {
    struct simredis *server;
    struct simredis_client *client; /* NULL: it is loaded */
    const struct command *command;
    struct text *argv;
    size_t argc;
    struct buf *out;
    struct database *db;
};

enum {
    CMD_WRITE = 1,
    CMD_DENY_OOM = 2,       /* may need memory */
    CMD_NO_SCRIPT = 4,      /* not from scripts */
    CMD_SUBSCRIBED = 8,     /* also while subscribed */
    CMD_NO_AUTH = 16,       /* also before AUTH */
    CMD_MAY_REPLICATE = 32, /* held by CLIENT PAUSE WRITE, although it is not a write */
    CMD_CONTAINER = 64,     /* argv[1] belongs to the name */
    CMD_STALE = 128,        /* also while loading */
    CMD_READS_TOO = 256,    /* a write that tells what was there: users need the right to read the key */
    CMD_TELLS = 512,        /* argv[1] is a channel */
    CMD_HEARS = 1024,       /* all arguments are channels */
    CMD_LOGS_ITSELF = 2048, /* of writes: what it logs is all that it did */
};

struct command {
    const char *name; /* in lower case; "config|get" */
    int arity;        /* with the name; below 0: at least */
    unsigned flags;
    void (*run)(struct call *call);
    int first_key, last_key, key_step; /* 0: none; last: from the end if below 0 */
};

/* command.c */
const struct command *cmd_find(struct text name, struct text subcommand);
const struct command *cmd_at(size_t index); /* NULL behind the last */
/* Whether it may run now. If not, the error is in out. */
bool cmd_may_run(struct call *call);
bool cmd_arity_fits(const struct call *call);
bool memory_is_full(const struct simredis *server);
void cmd_unknown(struct call *call); /* "ERR unknown subcommand" */

/* simredis.c */
void sim_run_command(struct call *call);
int64_t sim_now_ms(const struct simredis *server);
void sim_new_run_id(struct simredis *server, char ret_id[SIM_RUN_ID_CHARS + 1]);
/* What all clients are due is sent, in the order of their ids. */
void sim_flush(struct simredis *server);
void sim_read_clock(struct simredis *server);
/* The client goes after the command that runs. */
void sim_close_client(struct simredis_client *client);
uint64_t sim_random(struct simredis *server);
/* Sends what all clients are due, and closes those that are to be closed. */
void sim_flush(struct simredis *server);

/* log.c: what a write did. Without any of these, a write that returned sets logs itself as it was called. */
void log_call(struct call *call);
void log_argv(struct simredis *server, unsigned db, size_t argc, const struct text *argv);
#define LOG_ARGV(call, ...)                                                      \
    log_argv((call)->server, (unsigned)((call)->db - (call)->server->databases), \
             sizeof((struct text[]){__VA_ARGS__}) / sizeof(struct text), (struct text[]){__VA_ARGS__})
/* Into one of the two. */
void log_put(struct log *log, unsigned db, size_t argc, const struct text *argv);
/* Replicas alone hear of it. */
void log_message(struct call *call);
void log_send(struct simredis *server);

/* snapshot.c: a stream of such commands. The bytes up to the end of the last group that is whole. */
size_t commands_whole(struct text bytes);
/* Runs one, without a log. *db: which SELECT changes. False: it is none of those. */
bool commands_run(struct simredis *server, unsigned *db, const struct request *request);
/* All data, and which database commands that follow are about. */
struct buf snapshot_take(struct simredis *server, unsigned db);

/* reply.c: RESP2 */
void say_error(struct call *call, const char *text); /* with its kind, without "-" */
PRINTF_LIKE(2, 3) void say_errorf(struct call *call, const char *format, ...);
void say_status(struct call *call, const char *text);
void say_ok(struct call *call);
void say_nil(struct call *call);
void say_nil_array(struct call *call);
void say_integer(struct call *call, int64_t value);
void say_text(struct call *call, struct text text);
void say_double(struct call *call, double value);
void say_array(struct call *call, size_t count);
void out_text(struct buf *out, struct text text);
void out_array(struct buf *out, size_t count);
void out_integer(struct buf *out, int64_t value);
void say_wrong_type(struct call *call);
void say_syntax(struct call *call);
void say_not_integer(struct call *call);

/* number.c: numbers as Redis reads and prints them */
bool number_parse_i64(struct text text, int64_t *ret_value);
/* As SETs of scores: "inf", exponents; not "nan". */
bool number_parse_double(struct text text, double *ret_value);
enum { NUMBER_BYTES = 400 };
/* As replies and ZADD print scores: 17 digits, no exponent for integers. */
struct text number_print_double(char storage[NUMBER_BYTES], double value);
struct text number_print_i64(char storage[NUMBER_BYTES], int64_t value);
/* Answers "ERR value is not an integer or out of range". */
bool arg_i64(struct call *call, size_t index, int64_t *ret_value);
bool arg_is(const struct call *call, size_t index, const char *word);

/* space.c: the key space */
struct value *space_find(struct call *call, struct text key); /* NULL: none, or expired */
/* Lets two keys expire, if it is time: those behind the last ones. */
void space_expire_some(struct call *call);
/* Finds it; of another type: answers WRONGTYPE and returns false. *ret_value may be NULL. */
bool space_read(struct call *call, struct text key, enum value_type type, struct value **ret_value);
/* The same; makes an empty one if there is none. */
bool space_write(struct call *call, struct text key, enum value_type type, struct value **ret_value);
/* Puts value there (owned from now on) in place of what was. */
void space_put(struct call *call, struct text key, struct value *value);
bool space_delete(struct call *call, struct text key);
/* Deletes the key if its set, hash, list or sorted set is empty. */
void space_prune(struct call *call, struct text key, struct value *value);
struct value *value_new(enum value_type type);
struct value *value_new_string(struct text text);
struct value *value_copy(const struct value *value);
void value_free(struct value *value);
void value_set_string(struct value *value, struct text text);
void database_clear(struct database *db);
uint64_t sim_used_bytes(const struct simredis *server);

/* snapshot.c: commands that make the value, under that name */
void snapshot_value(struct buf *out, struct text key, const struct value *value);

/* cmd_sets.c: the members in the order of SMEMBERS; the caller frees the array, not the texts. */
struct text *set_members(const struct value *set, size_t *ret_count);

/* cmd_script.c */
enum {
    SCRIPT_NO_WRITES = 1,
    SCRIPT_ALLOW_OOM = 2,
    SCRIPT_ALLOW_STALE = 4,
    SCRIPT_NO_CLUSTER = 8,
    SCRIPT_CROSS_SLOT = 16,
    SCRIPT_HAS_FLAGS = 32
};
/* Forgets all scripts, and the interpreter. */
void scripts_finish(struct simredis *server);
/* The command's flags; of EVAL and EVALSHA those that the script says. */
unsigned script_call_flags(const struct call *call);

/* lua_memory.c: an interpreter with memory of its own */
struct lua_State *lua_begin(void);
void lua_end(struct lua_State *lua);

/* lua_call.c: redis.call() and its kin; lua_struct.c: the table `struct` */
void lua_open_redis(struct lua_State *lua, struct simredis *server);
void lua_open_struct(struct lua_State *lua);
/* Pushes the reply as Lua has it, and returns what is behind it. */
const char *lua_push_reply(struct lua_State *lua, const char *at);
/* Answers with the value on top of the stack, and pops it. */
void lua_answer(struct call *call, struct lua_State *lua);
/* 40 digits in lower case and a NUL */
void script_name(char ret_name[41], struct text script);

/* acl.c: a user's address stays as long as the server. At first there is "default", who may do anything. */
void acl_init(struct simredis *server);
void acl_finish(struct simredis *server);
/* Of "default"; "": none is needed. */
void acl_set_password(struct simredis *server, struct text password);
/* Whom a new client is logged in as; NULL: nobody. */
struct acl_user *acl_usual(const struct simredis *server);
/* NULL: there is none. */
struct acl_user *acl_find(const struct simredis *server, struct text name);
struct text acl_name(const struct acl_user *user);
/* NULL: there is no such user, or that is not the password. */
struct acl_user *acl_log_in(const struct simredis *server, struct text name, struct text password);
enum acl_verdict { ACL_FINE, ACL_NO_COMMAND, ACL_NO_KEY, ACL_NO_CHANNEL };
/* *ret_at: the argument that it is about. */
enum acl_verdict acl_judge(const struct acl_user *user, const struct call *call, size_t *ret_at);
/* The arguments that are keys: *ret_first, and the one behind the last. */
void cmd_keys_of(const struct call *call, size_t *ret_first, size_t *ret_end);

/* cluster.c: whether its keys are here. If not, that is in out. */
bool cluster_may(struct call *call);
/* cluster_bus.c: what is due, and when the next is; UINT64_MAX: never */
void cluster_run(struct simredis *server);
uint64_t cluster_next_us(const struct simredis *server);

/* cmd_replica.c: a replica, which follows another server */
void replica_info(const struct simredis *server, struct buf *out);
void replica_finish(struct simredis *server);
void replica_cron(struct simredis *server);
/* As REPLICAOF; host NULL: it is a master from now on. */
void replica_follow(struct simredis *server, struct text host, uint16_t port);

/* cmd_master.c: a server with replicas */
void replicas_print(const struct simredis *server, struct buf *out);
void replicas_say_role(struct call *call);
void replicas_feed(struct simredis *server, struct text bytes);
/* How many have that much of the stream. */
int64_t replicas_acked(const struct simredis *server, uint64_t offset);
bool replicas_suffice(const struct simredis *server); /* for min-replicas-to-write */
void replicas_count(struct simredis *server);
void replicas_close(struct simredis *server);
void replicas_cron(struct simredis *server);
/* Those that wait for replicas no longer do: it is none of a master any more. */
void replicas_unblock(struct simredis *server);
bool replicas_are_there(const struct simredis *server);

/* config.c */
struct text setting(const struct simredis *server, const char *name);
uint64_t setting_number(const struct simredis *server, const char *name);
void settings_init(struct simredis *server);

/* cmd_pubsub.c */
size_t publish(struct simredis *server, enum channel_kind kind, struct text channel, struct text message);
size_t client_subscriptions(const struct simredis_client *client);
/* Whoever hears shard channels of the slot is told that this has ended. */
void pubsub_end_slot(struct simredis *server, unsigned slot);
bool glob_matches(struct text pattern, struct text text, bool ignore_case);
