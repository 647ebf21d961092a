#include "doctor_command.h"

#include "admin/doctor.h"
#include "node_settings.h"

enum { MISTAKES_MAX_BYTES = 256 * 1024 };

int doctor_command(const struct command_line *line)
{
    const unsigned judged_there = NODE_SETTINGS_ORIGIN | NODE_SETTINGS_KEYS | NODE_SETTINGS_CERTIFICATES;
    struct buf mistakes CLEANUP(buf_finish) = BUF_UP_TO(MISTAKES_MAX_BYTES);
    struct node_settings node;
    bool are_fit;

    if (line->gateway)
        return doctor_run(line, &(struct doctor_found){0});
    are_fit = node_settings_read(&line->settings, judged_there, &node, &mistakes);
    node_settings_finish(&node);
    return doctor_run(line, &(struct doctor_found){are_fit ? TEXT("") : buf_text(&mistakes), node.has_store});
}
