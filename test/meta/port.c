/* Prints as many ports as it is told to, as free-port prints one. */
#include "free_port.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;

    for (unsigned long i = 0; i < count; i++)
        printf("%u\n", free_port());
    return 0;
}
