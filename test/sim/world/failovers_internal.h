/* What failovers.c and plots.c share. */
#pragma once
#include "failovers.h"

/* old, other: the Redises that a fault is about: the master when it began, and one of its replicas. */
extern struct sim_scene {
    struct sim_deployment *of;
    struct sim_redises *redises;
    unsigned old, other;
} sim_scene;

void sim_scene_draw(void);
/* In both directions. */
void sim_cut(struct sim_host *a, struct sim_host *b, bool is_cut);
/* From all hosts but those in `with`, which ends with NULL, and the clients'. */
void sim_isolate(struct sim_host *host, struct sim_host *const *with);
/* Those of `set` see each other, and nobody else. Clients reach its nodes. */
void sim_part(struct sim_host *const *set);
void sim_heal(struct sim_host *host);
void sim_heal_all(void);

/* plots.c */
void sim_beside_begins(struct sim_node *node);
void sim_lagging_begins(struct sim_node *node);
/* Whatever it has come to. */
void sim_plot_ends(struct sim_node *node);
