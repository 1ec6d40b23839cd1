"""What of the lab needs no root: parsing, tables, pictures, the results' file. `python3 -m unittest`, in this directory."""

import argparse
import json
import struct
import tempfile
import unittest
import xml.dom.minidom
from pathlib import Path

import pictures
import r1
import r3
import r4
import r5
import report
import reports
import run
import scale
import staircase


class Lab(unittest.TestCase):
    def test_numbers_have_three_digits(self):
        for value, shown in ((0, "0"), (5117.3, "5,117"), (345.2, "345"), (30.61, "30.6"), (2.763, "2.76"), (0.00054, "0.00054")):
            self.assertEqual(pictures.number(value), shown)

    def test_stretches_of_work_are_passes(self):
        # Work from 2 to 4 and from 8 to 9; the first stretch was under way when the watch began, the last one has not ended.
        seen = [(second, used) for second, used in enumerate([0, 0, 0, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 4])]
        self.assertEqual(r1.stretches(seen, 1.5), [2, 1])

    def test_packets_have_a_value_for_each_rrd(self):
        made = r4.packets(7, 71, 1_700_000_000, 3)
        self.assertTrue(all(len(packet) <= r4.PACKET_BYTES for packet in made))
        self.assertEqual(sum(packet.count(struct.pack(">HHHB", 6, 15, 1, 1)) for packet in made), 71)

    def test_scripts_name_all_sources(self):
        for which in r3.FUNCTIONS:
            words = " ".join(r3.script(which, "if.rrd", "."))
            self.assertEqual(words.count("DEF:v"), r3.SOURCES)

    def test_gmond_answers_in_xml(self):
        gmond = r5.Gmond.__new__(r5.Gmond)
        gmond.hosts = 2
        text = gmond.xml()
        self.assertEqual(len(xml.dom.minidom.parseString(text).getElementsByTagName("METRIC")), 2 * r5.METRICS)

    def test_what_bench_prints_is_read(self):
        text = ("created   20 RRDs in 1.00s: 172552/s\naccepted  40 values in 1.23s: 762 k/s, 1 refused; client CPU 0.04 us a value\n"
                "drained   after 1.3s: 761 k/s\ndaemon    CPU 10.00ms = 0.28 us a value; wrote 4 bytes a value; resident 40 MB\n")
        self.assertEqual(scale.parsed(text), {"created": 172552, "accepted": 762000, "refused": 1, "client_us": 0.04, "drained": 761000, "daemon_us": 0.28, "bytes": 4})

    def test_pictures_are_xml_in_both_shades(self):
        with tempfile.TemporaryDirectory() as folder:
            pictures.bars(Path(folder) / "bars", "a < b", "s", [("x", 5, 0), ("y & z", 0.001, 1), ("none", None, 0)])
            pictures.lines(Path(folder) / "lines", "t", "x", "y", [("one", [(1, 0.5), (10, 200)]), ("Roundel", [(1, 3)])], log_x=True, log_y=True)
            drawn = sorted(Path(folder).glob("*.svg"))
            self.assertEqual([each.name for each in drawn], ["bars-dark.svg", "bars.svg", "lines-dark.svg", "lines.svg"])
            for each in drawn:
                xml.dom.minidom.parse(str(each))

    def test_geometries_are_those_of_files(self):
        self.assertEqual(staircase.MRTG.words().count("RRA:"), 8)
        self.assertEqual(len(staircase.GEOMETRIES["collectd"].updates(3, 5)), 3)
        # What Debian's rrdtool 1.7.2 makes.
        lengths = {"mrtg": 105312, "collectd": 148648, "ganglia": 630760, "cacti": 189024}
        self.assertEqual({name: geometry.file_bytes for name, geometry in staircase.GEOMETRIES.items()}, lengths)

    def test_a_report_is_written_of_parts_that_failed_and_none_that_worked(self):
        written, reports_lab = report.PATH, reports.LAB
        with tempfile.TemporaryDirectory() as folder:
            report.PATH = Path(folder) / "RESULTS.md"
            reports.LAB = Path(folder)
            try:
                parts = {name: {"a part": {"failed": "it ended", "load": [1, 2]}} for name in run.EXPERIMENTS}
                report.write({"facts": {"kernel": "k"}, "began": "then", "parts": parts}, argparse.Namespace(full=False))
                text = report.PATH.read_text()
            finally:
                report.PATH, reports.LAB = written, reports_lab
        self.assertEqual(text.count("* a part: failed: it ended"), len(run.EXPERIMENTS))

    def test_a_run_goes_on_unless_something_else_is_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "lab.json"
            results = run.Results(path, {"kernel": "1"}, False)
            results.put("r4", "a", {"seconds": 1})
            self.assertTrue(run.Results(path, {"kernel": "1"}, False).has("r4", "a"))
            self.assertFalse(run.Results(path, {"kernel": "2"}, False).has("r4", "a"))
            complete = {"facts": {"kernel": "1"}, "parts": {"r4": {"a": {}}}, "complete": True}
            path.write_text(json.dumps(complete))
            self.assertTrue(run.Results(path, {"kernel": "1"}, True).has("r4", "a"))
            self.assertFalse(run.Results(path, {"kernel": "1"}, False).has("r4", "a"))


if __name__ == "__main__":
    unittest.main()
