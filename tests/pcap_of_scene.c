/*
 * pcap_of_scene.c - writes a scene as a real capture, and its dispatch log beside it:
 *
 *     pcap_of_scene SCENE OUT.pcap          OUT.pcap, and OUT.pcap.log where the scene has a log
 */
#include "scene_file.h"
#include "scene_parts.h"

#include <stdlib.h>

static bool write_file(const char *path, struct slice s)
{
    FILE *out = fopen(path, "we");

    if (!out)
        return false;
    bool ok = s.len == 0 || fwrite(s.ptr, s.len, 1, out) == 1;
    return fclose(out) == 0 && ok;
}

int main(int argc, char **argv)
{
    const struct scene_style style = { 0 };
    const struct scene_form form = { 0 };
    struct scene_wire w = { 0 };

    if (argc != 3) {
        fprintf(stderr, "usage: %s SCENE OUT.pcap\n", argv[0]);
        return 2;
    }
    struct scene *sc = scene_read(argv[1], stderr);
    if (!sc)
        return 1;
    scene_set_up(sc);
    if (!scene_is_wire(sc))
        fprintf(stderr, "%s: packets cannot show all of it\n", argv[1]);
    scene_wire(sc, &style, &w);
    bool ok = write_file(argv[2], scene_file(sc, &w, &form, 0, 1));
    if (ok && sc->log_text.len > 0) {
        const char *log = arena_printf(sc->arena, "%s.log", argv[2]);
        ok = write_file(log, buf_slice(&sc->log_text));
    }
    ok &= sc->faults == 0;
    scene_wire_release(&w);
    scene_free(sc);
    return ok ? 0 : 1;
}
