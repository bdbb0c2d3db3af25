#!/usr/bin/perl
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For tests in a guest: a workload with countable records, and the check that counts them.
#
#   sequence.pl make [N]               calls umask(2) with 0, 1, 2, …: N times at once, or once in PAUSE
#                                      seconds (from the environment; 0.001) until SIGTERM; then prints
#                                      how many it made
#   sequence.pl check N MISSED PID [CPU]
#                                      reads perfctl's output for syscalls:sys_enter_umask, and
#                                      perhaps others: that process's 0 to N-1 must be there,
#                                      each once, except for MISSED, and on that CPU

use strict;
use warnings;

sub make {
	my ($times) = @_;
	my ($n, $end) = (0, 0);
	$SIG{TERM} = sub { $end = 1 };
	until (defined $times ? $n == $times : $end) {
		umask $n++;
		select undef, undef, undef, $ENV{PAUSE} // 0.001 unless defined $times;
	}
	print "$n\n";
}

sub check {
	my ($n, $missed, $pid, $cpu) = @_;
	my %seen;
	while (<STDIN>) {
		/^ *\[0*(\d+)\] +\S+ +$pid\/\d+ +syscalls:sys_enter_umask: mask: (?:0x)?([0-9a-f]+)/ or next;
		die "on CPU $1: $_" if defined $cpu && $1 != $cpu;
		die "twice: $_" if $seen{hex $2}++;
	}
	my @lost = grep { !$seen{$_} } 0 .. $n - 1;
	die scalar(@lost), " of $n are lost: @lost[0 .. ($#lost > 9 ? 9 : $#lost)]\n" if @lost > $missed;
	die keys(%seen) + @lost - $n, " too many\n" if keys(%seen) + @lost > $n;
	print "$n records, ", @lost ? scalar(@lost) . " of them counted as missed" : "all there", "\n";
}

my $verb = shift // '';
my %verbs = (make => \&make, check => \&check);
die "usage: sequence.pl make|check …\n" unless $verbs{$verb};
$| = 1;
$verbs{$verb}->(@ARGV);
