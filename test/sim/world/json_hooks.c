/* cJSON is one for all processes, and so is what it allocates by: each image has set its own (src/base/json.c). */
#include "kernel_internal.h"
#include "process_internal.h"
#include <cjson/cJSON.h>
#include <stdlib.h>

static cJSON_Hooks of_the_program;

/* A thread of a test runs the program's code. */
static cJSON_Hooks *hooks(void)
{
    return sim_running && sim_running->image ? sim_image_json(sim_running->image) : &of_the_program;
}

static void *allocate(size_t bytes)
{
    return hooks()->malloc_fn ? hooks()->malloc_fn(bytes) : malloc(bytes);
}

static void release(void *memory)
{
    if (hooks()->free_fn)
        hooks()->free_fn(memory);
    else
        free(memory);
}

void cJSON_InitHooks(cJSON_Hooks *given)
{
    *hooks() = *given;
    SYSTEM(cJSON_InitHooks)(&(cJSON_Hooks){allocate, release});
}
