// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fuzzes every parser of untrusted bytes in the broker, and the orders in the engine. The first
 * byte chooses the parser, so that one corpus serves all. A decoded packet must encode to the same
 * bytes: each packet has one spelling.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/order.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* Exactly as large as the input, so that ASan sees an overrun. */
static void check_packet(const uint8_t *data, size_t size, size_t fds, bool reply)
{
	static union pp_body body;
	static uint8_t again[PP_PACKET_MAX];
	struct pp_header header;

	memset(&body, 0xaa, sizeof(body));
	if (pp_decode(data, size, fds, reply, &header, &body) < 0)
		return;
	require(header.fds == fds && header.size == size);
	require(pp_encode(&header, &body, again, sizeof(again)) == (ssize_t)size);
	require(!memcmp(again, data, size));
}

/* Parses the input once as it is, and once with a valid header, to reach the body. */
static void fuzz_packet(const uint8_t *data, size_t size, bool reply)
{
	_cleanup_free_ uint8_t *p = malloc(MAX(size, (size_t)PP_HEADER_SIZE));

	check_packet(data, size, 0, reply);
	if (size < PP_HEADER_SIZE)
		return;
	memcpy(p, data, size);
	p[0] = PP_PROTOCOL_VERSION;
	p[1] = 0;
	p[2] &= 15; /* more than the number of operations */
	p[3] = reply ? PP_OP_REPLY >> 8 : 0;
	for (int i = 0; i < 4; i++) {
		p[8 + i] = size >> (8 * i);
		p[12 + i] = 0;
	}
	check_packet(p, size, 0, reply);
}

static void fuzz_cpus(const char *text)
{
	static char list[5 * PP_CPUS_MAX];
	struct pp_cpumask mask, again;
	uint64_t v;

	pp_parse_u64(text, &v);
	if (pp_parse_cpus(text, &mask) < 0)
		return;
	require(pp_format_cpus(&mask, list, sizeof(list)) == 0);
	require(pp_parse_cpus(list, &again) == 0);
	require(!memcmp(&mask, &again, sizeof(mask)));
}

static void fuzz_order(const uint8_t *data, size_t size)
{
	static struct pp_order order;

	memset(&order, 0, sizeof(order));
	memcpy(&order, data, MIN(size, sizeof(order)));
	if (pp_order_check(&order) < 0 || order.type != PP_ORDER_CREATE)
		return;
	require(pp_name_is_valid(order.spec.ns) && pp_name_is_valid(order.spec.name));
	require(strlen(order.spec.event) < PP_EVENT_TEXT_SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = NULL;

	if (size == 0)
		return 0;
	text = strndup((const char *)data + 1, size - 1);
	switch (data[0] % 4) {
	case 0:
	case 1:
		fuzz_packet(data + 1, size - 1, data[0] % 4 == 1);
		break;
	case 2:
		fuzz_cpus(text);
		break;
	case 3:
		fuzz_order(data + 1, size - 1);
		break;
	}
	return 0;
}
