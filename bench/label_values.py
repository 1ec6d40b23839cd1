#!/usr/bin/env python3
"""Label values of a million series: milliseconds until the answer is there, of each server in turn, and the median of each.

    bench/label_values.py [RUNS] roundel=URL PEER=URL

Fill each of them first, with the same series: `bench/remote_write.py NAME URL PID 1000000 1`.
"""
import sys, time, json, statistics, urllib.request

words = sys.argv[1:]
runs = int(words.pop(0)) if words[0].isdigit() else 9
servers = dict(word.split('=', 1) for word in words)
QUERIES = [
    '/api/v1/label/instance/values',
    '/api/v1/label/__name__/values',
    '/api/v1/label/mode/values',
    '/api/v1/labels',
    '/api/v1/label/instance/values?match[]=node_level_2',
    '/api/v1/label/device/values?match[]={instance="host-77:9100"}',
]

def ask(url):
    begun = time.perf_counter()
    with urllib.request.urlopen(url) as answer:
        text = answer.read()
    return time.perf_counter() - begun, sorted(json.loads(text)['data'])

now = int(time.time())
for query in QUERIES:
    between = '&' if '?' in query else '?'
    times = {name: [] for name in servers}
    for run in range(runs + 1):
        answers = []
        for name, url in servers.items():
            # The first brings what is read into memory.
            took, values = ask(f'{url}{query.replace("{", "%7B").replace("}", "%7D").replace(chr(34), "%22")}{between}start={now - 3600}&end={now + 60}')
            answers.append(values)
            if run:
                times[name].append(took * 1000)
        # Roundel may have more: it shows a counter as its rate, too, and what its own RRDs are called.
        assert set(answers[0]) >= set(answers[-1]), [answer[:3] + [len(answer)] for answer in answers]
    told = ', '.join(f'{name} {statistics.median(took):.2f} ms [{min(took):.2f}..{max(took):.2f}]' for name, took in times.items())
    print(f'{query}: {len(answers[-1])} values; {told}', flush=True)
