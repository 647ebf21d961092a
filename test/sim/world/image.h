/* The product as a shared object (image.cmake), loaded once for each process that runs at the same time: a process
 * begins with variables as they were when its image was loaded. */
#pragma once
#include <cjson/cJSON.h>

struct sim_image;

/* Of the object at this path; only its function `main` is called. */
struct sim_image *sim_image_take(const char *path);
int sim_image_run(const struct sim_image *image, int argc, char **argv);
/* What cJSON is to allocate by for the image: functions of its own, so it stays from one process to the next. */
cJSON_Hooks *sim_image_json(struct sim_image *image);
/* Another process may have it. */
void sim_image_give_back(struct sim_image *image);
