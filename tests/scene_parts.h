/* scene_parts.h - what the files of scene.h share. */
#ifndef SCENE_PARTS_H
#define SCENE_PARTS_H

#include "scene.h"

/* Reads the settings and the log out of the lines. */
void scene_set_up(struct scene *sc);
void scene_option_idempotent(struct scene *sc, struct slice tool);

#endif
