#!/usr/bin/perl
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For tests in a guest: takes a CPU offline again and again, and measures when it records again.
#
#   cycles.pl run CPU TIMES EVENT...   takes it offline and online so many times; after each waits
#                                      until each of these events has recorded more on that CPU.
#                                      Prints when it came online each time: CLOCK_MONOTONIC, ns
#   cycles.pl late CPU FILE            reads perfctl's output for a sampling event, and FILE,
#                                      run's output: how long after each was the first
#                                      sample on that CPU? Milliseconds, sorted

use strict;
use warnings;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC sleep);

my $registry = '/run/perfpersist/registry';
my $bound = 60; # seconds, on the slowest of machines

sub put {
	my ($cpu, $online) = @_;
	my $file = "/sys/devices/system/cpu/cpu$cpu/online";
	open my $f, '>', $file or die "$file: $!\n";
	syswrite $f, $online or die "$file: $online: $!\n";
}

sub records {
	my ($event, $cpu) = @_;
	open my $f, '<', "$registry/$event/stat" or die "$registry/$event/stat: $!\n";
	my ($line) = grep { /^cpu$cpu / } <$f>;
	return $line && $line =~ / records=(\d+)/ ? $1 : die "$event does not show the records of CPU $cpu\n";
}

sub cycle {
	my ($cpu, @events) = @_;
	put $cpu, 0;
	my %before = map { $_ => records($_, $cpu) } @events;
	put $cpu, 1;
	my $online = clock_gettime CLOCK_MONOTONIC;
	printf "%.0f\n", $online * 1e9;
	for my $event (@events) {
		until (records($event, $cpu) > $before{$event}) {
			die "$event does not record on CPU $cpu again\n" if clock_gettime(CLOCK_MONOTONIC) > $online + $bound;
			sleep 0.005;
		}
	}
}

sub run {
	my ($cpu, $times, @events) = @_;
	for my $i (1 .. $times) {
		eval { cycle($cpu, @events); 1 } or die "cycle $i of $times: $@";
	}
}

sub late {
	my ($cpu, $file) = @_;
	open my $times, '<', $file or die "$file: $!\n";
	chomp(my @online = <$times>);
	my @samples = sort { $a <=> $b } map { /^ *\[0*$cpu\] +(\d+)\.(\d{9})/ ? $1 * 1e9 + $2 : () } <STDIN>;
	my @late;
	for my $online (@online) {
		shift @samples while @samples && $samples[0] < $online;
		die "no sample on CPU $cpu after $online\n" unless @samples;
		push @late, ($samples[0] - $online) / 1e6;
	}
	printf "%.1f\n", $_ for sort { $a <=> $b } @late;
}

my $verb = shift // '';
my %verbs = (run => \&run, late => \&late);
die "usage: cycles.pl run|late …\n" unless $verbs{$verb};
$| = 1;
$verbs{$verb}->(@ARGV);
