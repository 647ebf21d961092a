#include "image.h"
#include "base/check.h"
#include "base/list.h"
#include "base/mem.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECES_MAX = 8 };

/* Memory with variables, and what it held in the beginning. */
struct piece {
    char *at, *first;
    size_t len;
};

struct sim_image {
    struct list of_images;
    char *path;
    bool is_taken;
    cJSON_Hooks json;
    int (*main)(int argc, char **argv);
    size_t tls_module;
    struct piece tls, pieces[PIECES_MAX];
    size_t count;
};

static struct list images = {&images, &images};

/* A file of its own, which the linker does not know yet. */
static void *load_copy(const char *path)
{
    struct stat file;
    char name[64];
    int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("image", MFD_CLOEXEC);
    void *handle;

    if (from < 0) {
        perror(path);
        abort();
    }
    CHECK(to >= 0 && fstat(from, &file) == 0);
    for (off_t done = 0; done < file.st_size;)
        CHECK(sendfile(to, from, &done, (size_t)(file.st_size - done)) > 0);
    snprintf(name, sizeof name, "/proc/self/fd/%d", to);
    handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        fprintf(stderr, "%s: %s\n", path, dlerror());
    CHECK(handle);
    close(from); /* the copy stays open: the linker knows an object by its name, and so by that number */
    return handle;
}

/* Past the sanitizer, which has marked what lies between variables. */
static void copy(char *to, const char *from, size_t bytes)
{
#if defined(__SANITIZE_ADDRESS__) && defined(__x86_64__)
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes)::"memory");
#else
    memcpy(to, from, bytes);
#endif
}

static void keep(struct sim_image *image, char *at, char *end)
{
    struct piece *piece = &image->pieces[image->count];

    if (at >= end)
        return;
    CHECK(image->count < PIECES_MAX);
    *piece = (struct piece){.at = at, .first = mem_alloc((size_t)(end - at)), .len = (size_t)(end - at)};
    copy(piece->first, at, piece->len);
    image->count++;
}

/* What is read-only once it is relocated does not change. */
static const ElfW(Phdr) * relro_of(const struct dl_phdr_info *info)
{
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO)
            return &info->dlpi_phdr[i];
    return NULL;
}

static char *end_of_page(char *at)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    return (char *)((uintptr_t)at / page * page);
}

static void keep_variables(struct sim_image *image, const struct dl_phdr_info *info)
{
    const ElfW(Phdr) *relro = relro_of(info);

    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        char *at = (char *)(info->dlpi_addr + part->p_vaddr), *end = at + part->p_memsz;

        if (part->p_type == PT_TLS) {
            image->tls = (struct piece){.first = at, .len = part->p_memsz};
            image->tls_module = info->dlpi_tls_modid;
        }
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_W))
            continue;
        if (relro && relro->p_vaddr >= part->p_vaddr && relro->p_vaddr < part->p_vaddr + part->p_memsz) {
            keep(image, at, (char *)(info->dlpi_addr + relro->p_vaddr));
            at = end_of_page((char *)(info->dlpi_addr + relro->p_vaddr + relro->p_memsz));
        }
        keep(image, at, end);
    }
}

static int look_at_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct sim_image *image = arg;
    const uintptr_t code = (uintptr_t)image->main;

    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

        if (info->dlpi_phdr[i].p_type == PT_LOAD && code >= at && code < at + info->dlpi_phdr[i].p_memsz) {
            keep_variables(image, info);
            return 1;
        }
    }
    return 0;
}

static struct sim_image *load(const char *path)
{
    struct sim_image *image = mem_alloc(sizeof *image);
    void *handle = load_copy(path);

    image->path = mem_copy_text(path, strlen(path));
    image->main = (int (*)(int, char **))dlsym(handle, "main");
    CHECK(image->main);
    CHECK(dl_iterate_phdr(look_at_object, image) == 1);
    list_append(&images, &image->of_images);
    return image;
}

/* Where this thread has that object's variables of threads; NULL until they are used. */
static int find_tls(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct sim_image *image = arg;

    (void)size;
    if (info->dlpi_tls_modid != image->tls_module)
        return 0;
    image->tls.at = info->dlpi_tls_data;
    return 1;
}

static size_t tls_file_bytes(struct dl_phdr_info *info)
{
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS)
            return info->dlpi_phdr[i].p_filesz;
    return 0;
}

static int restore_tls(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct sim_image *image = arg;
    const size_t bytes = tls_file_bytes(info);

    if (!find_tls(info, size, arg))
        return 0;
    if (image->tls.at) {
        copy(image->tls.at, image->tls.first, bytes);
        memset(image->tls.at + bytes, 0, image->tls.len - bytes);
    }
    return 1;
}

static void restore(struct sim_image *image)
{
    for (size_t i = 0; i < image->count; i++)
        copy(image->pieces[i].at, image->pieces[i].first, image->pieces[i].len);
    if (image->tls_module > 0)
        dl_iterate_phdr(restore_tls, image);
}

struct sim_image *sim_image_take(const char *path)
{
    struct sim_image *image = NULL;

    for (struct list *node = images.next; node != &images && !image; node = node->next) {
        image = LIST_ENTRY(node, struct sim_image, of_images);
        if (image->is_taken || strcmp(image->path, path) != 0)
            image = NULL;
    }
    if (image)
        restore(image);
    else
        image = load(path);
    image->is_taken = true;
    return image;
}

int sim_image_run(const struct sim_image *image, int argc, char **argv)
{
    return image->main(argc, argv);
}

cJSON_Hooks *sim_image_json(struct sim_image *image)
{
    return &image->json;
}

void sim_image_give_back(struct sim_image *image)
{
    image->is_taken = false;
}
