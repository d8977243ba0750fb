/* main.c - sseaudit. */
#include "program.h"

int main(int argc, char **argv)
{
    return (int)program_run(argc, argv);
}
