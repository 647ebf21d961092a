#include "node.h"
#include "base/json.h"
#include "deadline.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARGS_MAX = 48 };

const char *node_binary(void)
{
    const char *path = getenv("CHATELAINE_BINARY");

    if (!path || access(path, X_OK) != 0)
        test_give_up("CHATELAINE_BINARY does not name the program: %s", path ? path : "unset");
    return path;
}

static uint16_t port_of(const struct json *ready, const char *name)
{
    const struct json *value = json_member(ready, name);
    char address[64];
    const char *colon;

    if (!value || json_type(value) != JSON_STRING)
        test_give_up("the ready file has no %s", name);
    snprintf(address, sizeof address, "%.*s", TEXT_ARG(json_text(value)));
    colon = strrchr(address, ':');
    return (uint16_t)strtoul(colon ? colon + 1 : "0", NULL, 10);
}

static void read_ready_file(struct node *node)
{
    char *content = file_read(node->ready_path);
    struct json *ready = json_parse_object(text_of(content), NULL);

    if (!ready)
        test_give_up("the ready file is no JSON object: %s", content);
    node->port = port_of(ready, "listen");
    node->internal_port = port_of(ready, "internal_listen");
    json_free(ready);
    free(content);
}

static void give_up_with_log(const struct node *node, const char *what)
{
    char *log = node_log(node);
    size_t len = strlen(log);

    fprintf(stderr, "%s\n", len > 6000 ? log + len - 6000 : log);
    test_give_up("%s (exit code %d)", what, process_exit_code(&node->process));
}

void node_start(struct node *node, const char *folder, const char *name, const char *redis_url,
                const char *master_key_path, const char *const *more)
{
    node_start_program(node, node_binary(), folder, name, redis_url, master_key_path, more);
}

void node_start_program(struct node *node, const char *program, const char *folder, const char *name,
                        const char *redis_url, const char *master_key_path, const char *const *more)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    const char *argv[ARGS_MAX] = {
        program,
        "serve",
        redis_url[0] == '/' ? "--redis-file" : "--redis",
        redis_url,
        "--master-key-file",
        master_key_path,
        "--public-origin",
        NODE_ORIGIN,
        "--listen",
        "127.0.0.1:0",
        "--internal-listen",
        "127.0.0.1:0",
        "--ready-file",
        node->ready_path,
    };
    size_t argc = 14;

    snprintf(node->ready_path, sizeof node->ready_path, "%.150s/%.30s.ready", folder, name);
    unlink(node->ready_path);
    for (; more && *more && argc < ARGS_MAX - 1; more++)
        argv[argc++] = *more;
    process_start(&node->process, folder, name, argv);
    while (access(node->ready_path, R_OK) != 0) {
        if (process_wait(&node->process, 10))
            give_up_with_log(node, "the node ended before it was ready");
        if (deadline_left_ms(deadline) == 0)
            give_up_with_log(node, "the node did not become ready");
    }
    read_ready_file(node);
}

static const char *find_report(const char *log)
{
    static const char *const MARKS[] = {"Sanitizer", "runtime error:", "check failed"};

    for (size_t i = 0; i < sizeof MARKS / sizeof *MARKS; i++) {
        const char *at = strstr(log, MARKS[i]);

        if (at)
            return at;
    }
    return NULL;
}

void node_expect_clean_end(struct node *node)
{
    char *log;

    if (!process_wait(&node->process, PATIENCE_MS)) {
        process_kill(&node->process);
        give_up_with_log(node, "the node did not drain in time");
    }
    log = node_log(node);
    if (process_exit_code(&node->process) != 0 || find_report(log))
        give_up_with_log(node, "the node did not end cleanly");
    free(log);
}

void node_stop(struct node *node)
{
    process_signal(&node->process, SIGTERM);
    node_expect_clean_end(node);
}

void node_kill(struct node *node)
{
    process_kill(&node->process);
}

char *node_log(const struct node *node)
{
    return file_read(node->process.err_path);
}
