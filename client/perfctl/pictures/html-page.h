/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The page around the data: what is in page/, built into the program.
 */
#pragma once

#include <stdio.h>

void page_begin(FILE *f); /* what stands before the data */
void page_end(FILE *f);	  /* and behind */
