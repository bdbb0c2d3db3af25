// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl checkpoint: writes what is new to disk, for the time after a crash of the machine. */
#include "client/perfctl/events/checkpoint.h"

static const struct verb_option options[] = {
	{ 'D', "directory", "DIR", "where they are; default: /var/lib/perfpersist/checkpoints",
	  TAKE_TEXT(struct checkpoint_options, directory), .completes = COMPLETE_DIRECTORY },
	{ 0, "max-size", "SIZE", "take so many bytes on the disk at most; default: 256M",
	  TAKE_VALUE(struct checkpoint_options, max_size, parse_size, "not a size such as 1G"),
	  .completes = COMPLETE_WORDS, .words = "100M 256M 1G" },
	{ 0, "max-rate", "SIZE", "write so many bytes a second at most; default: 10M",
	  TAKE_VALUE(struct checkpoint_options, max_rate, parse_size, "not a size such as 10M"),
	  .max = 1ULL << 40, .completes = COMPLETE_WORDS, .words = "1M 10M 100M" },
	{ 0, "keep", "N", "keep what was found of the last N boots; default: 3",
	  TAKE_NUMBER(struct checkpoint_options, keep, "not a number above 0"), .min = 1,
	  .max = 1000000 },
	{ 0, "once", NULL, "write one checkpoint of each event, and end",
	  TAKE_FLAG(struct checkpoint_options, once) },
	{},
};

static int run(struct call *call)
{
	struct checkpoint_options o = {
		.max_size = 256ULL << 20,
		.max_rate = 10ULL << 20,
		.keep = 3,
	};

	if (!options_read(call, &o))
		return call->code;
	if (call->connect.direct || call->connect.saved)
		return bad_usage(call, "checkpoint asks the daemon: it takes neither --direct nor "
				       "--saved");
	return checkpoint(call, &o);
}

const struct verb verb_checkpoint = {
	.name = "checkpoint",
	.synopsis = "[OPTIONS]",
	.summary = "write what is new to disk, for crashes of the machine; a service does this",
	.run = run,
	.options = { { .rows = options } },
	.help = "Writes checkpoints of all events that ask for them (`perfctl create --checkpoint 5s`),\n"
		"each in its own time, and when it ends. When it starts, it makes saves of those of\n"
		"earlier boots: `perfctl --saved=previous-boot` reads the newest one.\n"
		"\n"
		"Examples:\n"
		"  systemctl enable --now perfpersist-checkpoint\n"
		"  perfctl change web/calls --checkpoint 5s\n"
		"  perfctl --saved=previous-boot script web/calls\n",
};
