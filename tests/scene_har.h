/*
 * scene_har.h - a scene as a browser would have exported it, in the two shapes of HAR.md 3.1 and
 * 3.2: what that browser cannot know is not in it.
 */
#ifndef SCENE_HAR_H
#define SCENE_HAR_H

#include "scene.h"

enum scene_har_shape {
    HAR_SHAPE_FIREFOX,  /* the text of every stream, no time of an event, no mark for a cut */
    HAR_SHAPE_DEVTOOLS, /* messages with their times; text of what ended well */
};

/* Lives as the scene does. */
struct slice scene_har(struct scene *sc, enum scene_har_shape shape);
/* Can a browser's export show it: no response without its request, nothing missing? */
bool scene_is_har(const struct scene *sc);

#endif
