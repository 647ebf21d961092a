/* port [COUNT]: prints that many ports from free_port(), or one. */
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
