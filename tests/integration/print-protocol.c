// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints the tables of PROTOCOL.md from the codec; for check-protocol-doc.sh. */
#include "proto/protocol.h"

int main(void)
{
	pp_protocol_document(stdout);
	return fflush(stdout) == 0 ? 0 : 1;
}
