<?php
// Runs the calls of a file by php-rrd; what comes out goes to standard error, two lines for each.
$left = array_diff(get_extension_funcs('rrd'), ['rrd_error', 'rrd_version']);
$names = $left;

function shown($value) {
    if (!is_array($value)) return var_export($value, true);
    $parts = [];
    foreach ($value as $key => $one) {
        $parts[] = "$key=" . ($key === 'image' ? substr($one, 1, 3) : shown($one));
    }
    return '{' . implode(', ', $parts) . '}';
}

function told($call, callable $function) {
    try {
        $shown = shown(@$function());
    } catch (Throwable $error) {
        $shown = 'error ' . get_class($error) . ' ' . $error->getMessage();
    }
    $error = rrd_error();
    $text = $error === false ? $shown : "error $error ($shown)";
    fwrite(STDERR, "$call\n  " . str_replace("\n", '\n', $text) . "\n");
}

/** The words as php-rrd wants them: most functions want the file apart from an array of the rest. */
function called($function, array $words) {
    global $left;
    $left = array_diff($left, [$function]);
    switch ($function) {
        case 'rrd_restore':
            $files = array_values(array_filter($words, fn($word) => $word[0] !== '-'));
            return $function($files[0] ?? '', $files[1] ?? '', array_values(array_diff($words, $files)));
        case 'rrd_first':
            return $function($words[0], (int) ($words[2] ?? 0));
        case 'rrd_xport':
            return $function($words);
        case 'rrd_info':
        case 'rrd_last':
        case 'rrd_lastupdate':
        case 'rrdc_disconnect':
            return $function(...$words);
        default:
            return $function($words[0] ?? '', array_slice($words, 1));
    }
}

foreach (file($argv[1], FILE_IGNORE_NEW_LINES) as $line) {
    if (!preg_match('/^(?:[!~*?-] )?(\w.*)$/', $line, $match)) continue;
    $words = explode(' ', $match[1]);
    $function = 'rrd_' . array_shift($words);
    if (in_array($function, $names)) told($match[1], fn() => called($function, $words));
}

$creator = new RRDCreator('o.rrd', '1000000000', 10);
$creator->addDataSource('x:GAUGE:30:U:U');
$creator->addArchive('AVERAGE:0.5:1:10');
told('RRDCreator', fn() => $creator->save());
$updater = new RRDUpdater('o.rrd');
told('RRDUpdater', fn() => $updater->update(['x' => '1.25'], '1000000010'));
told('RRDUpdater again', fn() => $updater->update(['x' => '2.5'], '1000000020'));
told('RRDUpdater too old', fn() => $updater->update(['x' => '1'], '1000000010'));
told('RRDUpdater without the source', fn() => $updater->update(['y' => '1'], '1000000030'));
$graph = new RRDGraph('o.png');
$graph->setOptions(['--start' => 1000000000, '--end' => 1000000030, 'DEF:x=o.rrd:x:AVERAGE', 'LINE:x#ff0000', 'PRINT:x:MAX:%lf']);
told('RRDGraph', fn() => $graph->save());
told('RRDGraph verbose', fn() => $graph->saveVerbose());
$graph = new RRDGraph('-');
$graph->setOptions(['--start' => 1000000000, '--end' => 1000000030, 'DEF:x=o.rrd:x:AVERAGE', 'LINE:x#ff0000']);
told('RRDGraph as bytes', fn() => $graph->saveVerbose());
told('disconnect', fn() => called('rrdc_disconnect', []));
fwrite(STDERR, "never called\n  " . implode(' ', $left) . "\n");
