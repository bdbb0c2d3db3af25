#!/usr/bin/perl
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# histories.pl EVENTS CPUS: a perf.data stream of events with a sample each, and a history of each on so
# many CPUs.

use strict;
use warnings;

my ($events, $cpus) = @ARGV;
# cpu-clock, with IDENTIFIER, TID, TIME and CPU
my $attr = pack 'L< L< Q< Q< Q< Q< Q< L< L< Q<', 1, 64, 0, 1000, 1 << 16 | 2 | 4 | 128, 0, 1 << 18, 0, 0, 0;
binmode STDOUT;
print 'PERFILE2', pack 'Q<', 16;
print pack('L< S< S<', 64, 0, 80), $attr, pack 'Q<', $_ for 1 .. $events;
for my $event (1 .. $events) {
	print pack 'L< S< S< a8 Q< L< L< Q< Q< Q< Q< L< L<', 78, 0, 72, 'PHistory', $event, 1, $_, 1_000_000_000 + 1000 * $event, 9_000_000_000, 1, 0, 0, 0
		for 1 .. $cpus;
}
print pack 'L< S< S< Q< L< L< Q< Q<', 9, 0, 40, $_, 42, 42, 1_000_000_000 + 2000 * $_, 1 for 1 .. $events;
