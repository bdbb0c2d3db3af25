/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The page around the data: the files of page/, built into the program. */
#pragma once

#include <stdio.h>

void page_begin(FILE *f); /* before the data */
void page_end(FILE *f);	  /* after the data */
