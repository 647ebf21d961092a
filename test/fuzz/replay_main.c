/* Runs a fuzz target over files and folders: its corpus, as an ordinary test, with any compiler. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { INPUT_MAX_BYTES = 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static unsigned replayed;

static void fail(const char *path)
{
    perror(path);
    exit(1);
}

static void replay_file(const char *path)
{
    uint8_t *input = malloc(INPUT_MAX_BYTES);
    FILE *file = fopen(path, "rb");
    size_t count;

    if (!input || !file)
        fail(path);
    count = fread(input, 1, INPUT_MAX_BYTES, file);
    fclose(file);
    LLVMFuzzerTestOneInput(input, count);
    free(input);
    replayed++;
}

static void replay_folder(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;

    if (!folder)
        fail(path);
    while ((entry = readdir(folder))) {
        char file[4096];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        replay_file(file);
    }
    closedir(folder);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct stat status;

        if (stat(argv[i], &status) != 0)
            fail(argv[i]);
        if (S_ISDIR(status.st_mode))
            replay_folder(argv[i]);
        else
            replay_file(argv[i]);
    }
    printf("%u inputs\n", replayed);
    return replayed == 0;
}
