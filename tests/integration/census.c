// SPDX-License-Identifier: LGPL-2.1-or-later
/* census NAMESPACE: prints how many rings of that namespace this kernel holds. */
#include "tests/integration/census.h"

#include <stdio.h>

int main(int argc, char **argv)
{
	if (argc != 2 || geteuid() != 0) {
		fprintf(stderr, "usage, as root: census NAMESPACE\n");
		return 2;
	}
	printf("%u\n", census(argv[1]));
	return 0;
}
