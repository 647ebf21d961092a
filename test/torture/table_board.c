#include "table_board.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct board *map_file(const char *path, int flags)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
    void *memory;

    if (fd < 0 || ftruncate(fd, sizeof(struct board)) != 0)
        abort();
    memory = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        abort();
    close(fd);
    return memory;
}

struct board *board_create(const char *path, unsigned unit_ms)
{
    struct board *board = map_file(path, O_CREAT | O_EXCL);

    board->unit_ms = unit_ms;
    return board;
}

struct board *board_open(const char *path)
{
    return map_file(path, 0);
}

void board_close(struct board *board)
{
    if (board)
        munmap(board, sizeof *board);
}

uint32_t board_add(struct board *board, const char *id, const char *secret, uint32_t scopes, uint32_t key)
{
    if (board->key_count == BOARD_KEYS_MAX)
        abort(); /* the history would be full before */

    struct board_key *added = &board->keys[board->key_count];
    snprintf(added->id, sizeof added->id, "%s", id);
    snprintf(added->secret, sizeof added->secret, "%s", secret);
    added->scopes = scopes;
    added->key = key;
    return board->key_count++;
}

static void put(_Atomic uint32_t *places, atomic_uint *used, size_t place, uint32_t number)
{
    atomic_store_explicit(&places[place], number + 1, memory_order_release);
    if (place >= atomic_load(used))
        atomic_store(used, (unsigned)place + 1);
}

void board_show(struct board *board, size_t place, uint32_t number)
{
    put(board->places, &board->places_used, place, number);
}

void board_hide(struct board *board, size_t place)
{
    atomic_store(&board->places[place], 0);
}

void board_show_end(struct board *board, size_t place, uint32_t number)
{
    put(board->places_of_ends, &board->places_of_ends_used, place % BOARD_PLACES_OF_ENDS, number);
}

void board_refuse(struct board *board, uint32_t number)
{
    atomic_fetch_or_explicit(&board->keys[number].promise, 1, memory_order_release);
    atomic_store_explicit(&board->recent[board->refused_count++ % BOARD_RECENT], number + 1, memory_order_release);
}

void board_allow(struct board *board, uint32_t number)
{
    _Atomic uint32_t *promise = &board->keys[number].promise;

    if (atomic_load(promise) & 1)
        atomic_fetch_add(promise, 1);
}
