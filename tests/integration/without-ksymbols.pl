#!/usr/bin/perl
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# without-ksymbols.pl FILE [TYPE…]: voids a perf.data file's records of BPF programs, and those of
# these types.
#
# Linux writes KSYMBOL and BPF_EVENT to all listeners of a CPU with one header, which each of them
# makes longer (perf_event_ksymbol_output(); seen on 6.18). So a `perf record -a` that began before
# another listener, such as another test's daemon, writes records whose last bytes are leftovers,
# and perf cannot read its own file. The tests of such files are about something else.

use strict;
use warnings;

# PERF_RECORD_KSYMBOL, PERF_RECORD_BPF_EVENT; and PERF_RECORD_FINISHED_INIT, which says nothing.
my %damaged = (17 => 1, 18 => 1);
my $void = 82;

my $path = shift;
$damaged{$_} = 1 for @ARGV;
open my $file, '+<:raw', $path or die "$path: $!\n";
read $file, my $header, 56 or die "$path: $!\n";
my ($magic, $at, $size) = unpack 'a8 x32 Q< Q<', $header;
die "$path is not of perf\n" unless $magic eq 'PERFILE2';

my $end = $at + $size;
while ($at < $end) {
	seek $file, $at, 0;
	read($file, $header, 8) == 8 or die "$path ends at $at\n";
	my ($type, undef, $record) = unpack 'L< S< S<', $header;
	die "$path: a record of $record bytes at $at\n" if $record < 8;
	if ($damaged{$type}) {
		seek $file, $at, 0;
		print $file pack 'L<', $void;
	}
	$at += $record;
}
close $file or die "$path: $!\n";
