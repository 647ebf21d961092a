#include "config/tls_files.h"

#include "base/mem.h"
#include "config/key_file.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAME_MAX_BYTES = 512, PEM_MAX_BYTES = 256 * 1024 };

/* A file that has been read, and what errors call it. */
struct file {
    char name[NAME_MAX_BYTES];
    struct buf content;
};

struct files {
    struct file file[TLS_PAIRS_MAX];
    size_t count;
};

/* What a context is made of, on the heap because of its size. */
struct material {
    struct files certificates, keys, ca;
    struct tls_pair pairs[TLS_PAIRS_MAX];
};

static void files_finish(struct files *files)
{
    for (size_t i = 0; i < files->count; i++)
        buf_wipe(&files->file[i].content);
}

static void material_free(struct material **material)
{
    files_finish(&(*material)->certificates);
    files_finish(&(*material)->keys);
    files_finish(&(*material)->ca);
    free(*material);
}

static struct tls_pem pem_of(const struct file *file)
{
    return (struct tls_pem){file->name, buf_text(&file->content)};
}

/* A certificate is no secret. */
static bool read_file(struct file *file, const char *option, const char *path, bool is_key, struct buf *ret_why)
{
    snprintf(file->name, sizeof file->name, "%s %s", option, path);
    buf_init(&file->content, PEM_MAX_BYTES);
    if (is_key)
        return private_file_read(option, path, &file->content, ret_why);
    buf_printf(ret_why, "%s: ", option);
    if (!whole_file_read(path, &file->content, ret_why))
        return false;
    buf_clear(ret_why);
    return true;
}

static bool read_files(struct files *files, struct tls_file_option from, bool are_keys, struct buf *ret_why)
{
    struct text rest = text_of(from.paths ? from.paths : ""), part;

    while (from.paths && text_next(&rest, ',', &part)) {
        char *path = mem_copy_text(part.ptr, part.len);
        bool is_read = false;

        if (part.len == 0)
            buf_printf(ret_why, "%s has an empty path; separate paths with one comma", from.option);
        else if (files->count == TLS_PAIRS_MAX)
            buf_printf(ret_why, "%s names more than %d files", from.option, TLS_PAIRS_MAX);
        else
            is_read = read_file(&files->file[files->count++], from.option, path, are_keys, ret_why);
        free(path);
        if (!is_read)
            return false;
    }
    return true;
}

static bool read_pairs(struct material *material, struct tls_file_option certificates, struct tls_file_option keys,
                       struct buf *ret_why)
{
    if (!read_files(&material->certificates, certificates, false, ret_why) ||
        !read_files(&material->keys, keys, true, ret_why))
        return false;
    if (material->certificates.count != material->keys.count) {
        buf_printf(ret_why, "%s names %zu files, but %s names %zu: each certificate needs its key, in the same order",
                   certificates.option, material->certificates.count, keys.option, material->keys.count);
        return false;
    }
    for (size_t i = 0; i < material->keys.count; i++)
        material->pairs[i] =
            (struct tls_pair){pem_of(&material->certificates.file[i]), pem_of(&material->keys.file[i])};
    return true;
}

/* The content of the first file, if any. */
static struct tls_pem first_of(const struct files *files)
{
    return files->count > 0 ? pem_of(&files->file[0]) : (struct tls_pem){0};
}

static bool read_one(struct files *files, struct tls_file_option from, struct buf *ret_why)
{
    if (!from.paths)
        return true;
    files->count = 1;
    return read_file(&files->file[0], from.option, from.paths, false, ret_why);
}

struct tls_context *tls_files_open_server(struct tls_file_option certificates, struct tls_file_option keys,
                                          struct tls_file_option client_ca, const struct tls_server_settings *settings,
                                          struct buf *ret_why)
{
    struct material *material CLEANUP(material_free) = mem_alloc(sizeof *material);
    struct tls_server_settings complete = *settings;

    if (!read_pairs(material, certificates, keys, ret_why) || !read_one(&material->ca, client_ca, ret_why))
        return NULL;
    complete.pairs = material->pairs;
    complete.pair_count = material->keys.count;
    complete.client_ca = first_of(&material->ca);
    return tls_context_create_server(&complete, ret_why);
}

struct tls_context *tls_files_open_client(struct tls_file_option ca, struct tls_file_option certificate,
                                          struct tls_file_option key, struct buf *ret_why)
{
    struct material *material CLEANUP(material_free) = mem_alloc(sizeof *material);
    struct tls_client_settings settings = {0};

    if (!read_pairs(material, certificate, key, ret_why) || !read_one(&material->ca, ca, ret_why))
        return NULL;
    if (material->keys.count > 1) {
        buf_printf(ret_why, "%s must name one file", certificate.option);
        return NULL;
    }
    settings.ca = first_of(&material->ca);
    settings.pair = material->keys.count == 1 ? &material->pairs[0] : NULL;
    return tls_context_create_client(&settings, ret_why);
}

struct tls_context *tls_files_open_pinned(struct tls_file_option certificates, struct buf *ret_why)
{
    struct material *material CLEANUP(material_free) = mem_alloc(sizeof *material);
    struct tls_pem pems[TLS_PAIRS_MAX];

    if (!read_files(&material->certificates, certificates, false, ret_why))
        return NULL;
    for (size_t i = 0; i < material->certificates.count; i++)
        pems[i] = pem_of(&material->certificates.file[i]);
    return tls_context_create_pinned(pems, material->certificates.count, ret_why);
}
