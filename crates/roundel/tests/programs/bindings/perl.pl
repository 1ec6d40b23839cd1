# Runs the calls of a file by RRDs.pm; what comes out goes to standard error, two lines for each.
use strict; use RRDs;
my %left = map { $_ => 1 } grep { defined &{"RRDs::$_"} } keys %RRDs::;
delete @left{qw(bootstrap error)};
my %calls = map { $_ => \&{"RRDs::$_"} } keys %left;
sub shown {
    my ($value) = @_;
    return 'undef' unless defined $value;
    return '[' . join(', ', map { shown($_) } @$value) . ']' if ref $value eq 'ARRAY';
    return '{' . join(', ', map { "$_=" . ($_ eq 'image' ? 'PNG' x ($value->{$_} =~ /^.PNG/) : shown($value->{$_})) }
        sort keys %$value) . '}' if ref $value eq 'HASH';
    return $value;
}
sub told {
    my ($call, @values) = @_;
    my $error = RRDs::error();
    my $result = defined $error ? "error $error" : join(' ', map { shown($_) } @values);
    print STDERR "$call\n  ", $result =~ s/\n/\\n/gr, "\n";
}
sub called {
    my ($name, @words) = @_;
    delete $left{$name};
    return $calls{$name}->(@words);
}
open my $file, '<', $ARGV[0] or die;
while (my $line = <$file>) {
    my ($call) = $line =~ /^(?:[!~*?-] )?(\w.*)$/ or next;
    my ($name, @words) = split ' ', $call;
    told($call, called($name, @words)) if $calls{$name};
}
told('times', called('times', 'end-1h', '1000000000'));
told('times', called('times', '1000000000', 'start+1day'));
told('times of no time', called('times', 'never', 'now'));
called('fetch_cb_register', sub {
    my ($request) = @_;
    told('asked', map { "$_=$request->{$_}" } sort keys %$request);
    return { step => 10, start => $request->{start}, data => { one => [1 .. 20], two => [map { $_ / 3 } 1 .. 20] } };
});
told('xport of a callback', RRDs::xport('-s', 1000000000, '-e', 1000000060, 'DEF:a=cb//mine:two:AVERAGE', 'XPORT:a:x'));
told('graph of a callback', RRDs::graph('cb.png', '-s', 1000000000, '-e', 1000000060, 'DEF:a=cb//mine:one:MAX',
    'LINE:a#ff0000', 'PRINT:a:MAX:%lf'));
print STDERR "never called\n  @{[sort keys %left]}\n";
