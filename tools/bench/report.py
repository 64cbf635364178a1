#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a result of tandem-bench as tables, as a plot, or as a comparison.

With --compare, prints the differences of machine, devices and options, and the
rows that changed since the result in FILE by more than the spreads of both
results and by more than 3%, with the change of their first reference. The
change of the reference separates a slower machine from a slower program.

Exit status: 0; 1 if a file cannot be read or written, or if FILE and RESULT
have no row in common; 2 if the command line is invalid; 4 if --compare found a
row that became slower."""

import argparse
import html
import itertools
import json
import math
import os
import statistics
import sys

SCHEMA = "tandem-bench 2"
MIN_REPORTED_CHANGE = 0.03  # Unchanged code differs by this fraction.


# ---- results ----


def document_check(document):
    """Raises an exception if the document is not a result."""
    if document["schema"] != SCHEMA:
        raise ValueError("the schema is not %r" % SCHEMA)
    for row in document["rows"]:
        if not row["name"] or not row["suite"]:
            raise ValueError("a row has no name")
        if row.get("status") == "measured" and \
                not row["implementations"][0]["ns"] > 0:
            raise ValueError("%s: the time is not positive" % row["name"])


def document_read(path):
    """Returns the result in the file, or in standard input if path is "-".
    Raises SystemExit with status 1 if there is none."""
    try:
        if path == "-":
            document = json.load(sys.stdin)
        else:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
        document_check(document)
        return document
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        sys.exit("%s: %s is not a result of tandem-bench: %s"
                 % (os.path.basename(sys.argv[0]), path, error))


def time_text(ns):
    """Returns the time with its unit: "12.3 us"."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return "%.4g %s" % (ns / size, unit)
    return "%.3g ns" % ns


def result_text(row, implementation):
    """Returns the implementation's result in the unit of the row."""
    work = row.get("work_amount", 0)
    if not work:
        return time_text(implementation["ns"])
    rate = work / implementation["ns"]
    return ("%.4g %s" if rate < 1000 else "%.0f %s") % (rate, row["unit"])


def row_key(row):
    """Returns what identifies the row in a result."""
    return row["device"], row["suite"], row["name"]


def row_implementation(row, name):
    """Returns the implementation of this name, or None."""
    return next((i for i in row.get("implementations", [])
                 if i["name"] == name), None)


def row_suites(rows):
    """Returns the rows of each suite on each device, in the order of rows."""
    return [(device, suite, list(group)) for (device, suite), group in
            itertools.groupby(rows, lambda row: row_key(row)[:2])]


# ---- tables ----


def table_print(table, markdown):
    """Prints a list of rows of cells. The first row is the heading."""
    count = max(map(len, table))
    table = [[*row] + [""] * (count - len(row)) for row in table]
    if markdown:
        table.insert(1, ["---"] + ["---:"] * (count - 1))
        for row in table:
            print("| %s |" % " | ".join(row))
        return
    widths = [max(map(len, column)) for column in zip(*table)]
    for row in table:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width)
                  for cell, width in zip(row[1:], widths[1:])]
        print(("  " + "  ".join(cells)).rstrip())


def spread_text(implementation):
    """Returns half the distance of the quartiles."""
    if implementation["samples"] < 2:
        return "once"
    return "%.0f%%" % (50 * implementation["iqr_ratio"])


def error_text(row, implementation):
    """Returns the componentwise errors of Tandem and of the implementation."""
    error = row.get("error", {})
    if "Tandem" not in error or implementation["name"] not in error:
        return ""
    return "%.1e : %.1e" % (error["Tandem"]["componentwise"],
                            error[implementation["name"]]["componentwise"])


def row_lines(row):
    """Returns the lines of a row, one for each reference."""
    if row["status"] == "scalar":
        return [[row["name"], "%.4g %s" % (row["value"], row["unit"])]]
    if row["status"] != "measured":
        return [[row["name"], row["status"]]]
    ours, *others = row["implementations"]
    lines = [[i["name"], result_text(row, i), spread_text(i),
              "%.3f" % (i["ns"] / ours["ns"]), error_text(row, i)]
             for i in others]
    first = [row["name"], result_text(row, ours), spread_text(ours)]
    return [first + lines[0] if lines else first] + \
        [["", "", ""] + line for line in lines[1:]]


def suite_print(device, suite, rows, markdown):
    """Prints the table of a suite, and each reason for a missing result."""
    print("\n%s%s, %s" % ("### " if markdown else "", device, suite))
    if markdown:
        print()
    heading = ["", "Tandem", "+-", "reference", "result", "+-", "speed",
               "error"]
    table_print([heading] + sum(map(row_lines, rows), []), markdown)
    reasons = {}
    for row in rows:
        if "reason" in row:
            reasons.setdefault(row["reason"], []).append(row["name"])
    for reason, names in reasons.items():
        print("\n%s: %s%s" % (names[0], reason,
                              " (and others)" if len(names) > 1 else ""))


def head_lines(document):
    """Returns the lines about the machine and the devices."""
    machine = document["machine"]
    yield "Tandem %s, %s; %s, %d processors, %s" % (
        document["version"], document["date"], machine["processor"],
        machine["cpus"], machine["system"])
    if "pytorch" in document:
        yield "PyTorch %(version)s, %(device)s" % document["pytorch"]
    for key, value in document.get("open_options", {}).items():
        yield "opened with %s=%s" % (key, value)
    for device in document["devices"]:
        driver = " ".join(filter(None, (device["platform"], device["driver"])))
        yield "%s: %s%s, scale %s, %d rows too large for it, %.1f s" % (
            device["device"], device["name"], driver and "; " + driver,
            device["scale"], device["skipped_rows"], device["seconds"])
    yield ("speed: above 1, Tandem is faster; +-: half the distance of the "
           "quartiles")


def tables_print(document, markdown):
    """Prints all rows, by device and suite."""
    lines = list(head_lines(document))
    print("## " + "\n\n".join(lines) if markdown else "\n".join(lines))
    for device, suite, rows in row_suites(document["rows"]):
        suite_print(device, suite, rows, markdown)


def points_print(document, markdown):
    """Prints the points of the suite placement."""
    points = document.get("placement_points", [])
    names = [d["device"] for d in points[0]["devices"]] if points else []
    table = [["operator", "shape", "data on"]]
    for name in names:
        table[0] += [name + ": predicted", "measured, less the wait"]
    for point in points:
        line = [point["op"], "x".join(map(str, point["shape"])), point["data"]]
        for d in point["devices"]:
            line += [("* " if d["device"] == point["chosen"] else "") +
                     time_text(d["predicted_ns"]), time_text(d["ns"])]
        table.append(line)
    table_print(table, markdown)


# ---- comparison ----


def differences_print(earlier, now):
    """Prints differences of machine, devices and options, which may explain
    changes."""
    def differ(of, keys, was, is_):
        for key in keys:
            if was.get(key) != is_.get(key):
                print("differs: %s %s: was %s, is %s" % (of, key, *(
                    json.dumps(d[key]) if key in d else "not recorded"
                    for d in (was, is_))))

    differ("machine", ("processor", "cpus", "system"), earlier["machine"],
           now["machine"])
    # Earlier versions omit the member if there are no options.
    if earlier.get("open_options") or now.get("open_options"):
        differ("devices'", ("open_options",), earlier, now)
    before = {d["device"]: d for d in earlier["devices"]}
    for device in now["devices"]:
        if device["device"] in before:
            differ(device["device"], ("name", "platform", "driver", "scale"),
                   before[device["device"]], device)


def row_change(was, is_):
    """Returns the relative change of Tandem's time, or 0 if it is within the
    spreads."""
    a, b = was["implementations"][0], is_["implementations"][0]
    change = b["ns"] / a["ns"] - 1
    spread = a["iqr_ratio"] + b["iqr_ratio"]
    return change if abs(change) > max(spread, MIN_REPORTED_CHANGE) else 0


def reference_text(was, is_):
    """Returns the change of the first reference that both rows have."""
    for reference in is_["implementations"][1:]:
        other = row_implementation(was, reference["name"])
        if other is not None:
            return "%s %+.1f%%" % (reference["name"],
                                   100 * (reference["ns"] / other["ns"] - 1))
    return ""


def comparison_print(earlier, now):
    """Prints what changed. Returns the exit status."""
    before = {row_key(row): row for row in earlier["rows"]}
    gone = dict(before)
    counts = dict.fromkeys(("slower", "faster", "within the spread",
                            "of another status", "new", "not in this run"), 0)
    table = [["compared with %s of %s" % (earlier["version"], earlier["date"]),
              "before", "now", "time", "reference"]]
    for row in now["rows"]:
        was = gone.pop(row_key(row), None)
        name = "%s %s: %s" % row_key(row)
        if was is None:
            counts["new"] += 1
        elif was["status"] != row["status"]:
            counts["of another status"] += 1
            table.append([name, was["status"], row["status"]])
        elif row["status"] == "measured":
            change = row_change(was, row)
            kind = "slower" if change > 0 else "faster" if change < 0 else \
                "within the spread"
            counts[kind] += 1
            if change:
                table.append([
                    name, *(result_text(r, r["implementations"][0])
                            for r in (was, row)),
                    "%s %.1f%%" % ("SLOWER" if change > 0 else "faster",
                                   100 * abs(change)),
                    reference_text(was, row)])
    for key in gone:
        counts["not in this run"] += 1
        table.append(["%s %s: %s" % key, "", "", "not in this run"])
    if len(gone) == len(before):
        print("report.py: the results have no row in common, so nothing was "
              "compared", file=sys.stderr)
        return 1
    differences_print(earlier, now)
    table_print(table, False)
    print("  " + ", ".join("%d %s" % (n, kind) for kind, n in counts.items()))
    return 4 if counts["slower"] else 0


# ---- plot ----

LEFT, WIDTH, BAND, TOP = 210, 640, 46, 64
MIN_FRACTION, MAX_FRACTION = 0.05, 20  # at the edges of the plot

PLOT_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" \
font-family="sans-serif" font-size="14">
<style>.small{font-size:11px;fill:#555}.tick{stroke:#ddd}.one{stroke:#333}\
.median{stroke:#c33;stroke-width:2}circle{fill:#27c;fill-opacity:0.6}</style>
<rect width="100%%" height="100%%" fill="white"/>
<text x="8" y="22">Tandem %s: fraction of the upper bound, by suite (right: \
the median)</text>
<text x="8" y="42" class="small">%s: %s</text>"""


def plot_x(fraction):
    """Returns the position of a fraction on the logarithmic scale."""
    clamped = min(max(fraction, MIN_FRACTION), MAX_FRACTION)
    return LEFT + WIDTH * math.log(clamped / MIN_FRACTION) / \
        math.log(MAX_FRACTION / MIN_FRACTION)


def plot_line(kind, x, top, bottom):
    """Prints a vertical line."""
    print('<line class="%s" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>'
          % (kind, x, x, top, bottom))


def band_dots(rows):
    """Returns (upper bound, name, fraction) of each row with a bound."""
    bounds = [(row, row_implementation(row, row.get("upper_bound")))
              for row in rows]
    return [(row["upper_bound"], row["name"],
             bound["ns"] / row["implementations"][0]["ns"])
            for row, bound in bounds if bound is not None]


def band_print(title, dots, top):
    """Prints a suite on a device."""
    bounds = [bound for bound, _, _ in dots]
    others = " and others" if len(set(bounds)) > 1 else ""
    print('<text x="8" y="%.1f">%s</text>' % (top + 18, html.escape(title)))
    print('<text x="8" y="%.1f" class="small">1 = %s%s</text>'
          % (top + 33, html.escape(bounds[0]), others))
    for i, (_, name, fraction) in enumerate(dots):
        down = i / (len(dots) - 1) if len(dots) > 1 else 0.5
        print('<circle cx="%.1f" cy="%.1f" r="3"><title>%s: %.3f</title>'
              '</circle>' % (plot_x(fraction), top + 7 + down * (BAND - 14),
                             html.escape(name), fraction))
    median = statistics.median(fraction for _, _, fraction in dots)
    plot_line("median", plot_x(median), top + 3, top + BAND - 3)
    print('<text x="%.1f" y="%.1f">%.2f</text>'
          % (LEFT + WIDTH + 10, top + BAND / 2 + 5, median))


def plot_print(document):
    """Prints the fraction of the upper bound that each row reaches, by device
    and suite, as SVG."""
    bands = [("%s, %s" % (device, suite), band_dots(rows))
             for device, suite, rows in row_suites(document["rows"])]
    bands = [(title, dots) for title, dots in bands if dots]
    bottom = TOP + BAND * len(bands)
    print(PLOT_HEAD % (
        LEFT + WIDTH + 70, bottom + 30, document["version"], document["date"],
        html.escape("; ".join(d["name"] for d in document["devices"]))))
    for tick in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20):
        plot_line("one" if tick == 1 else "tick", plot_x(tick), TOP, bottom)
        print('<text x="%.1f" y="%.1f" text-anchor="middle" class="small">'
              '%g</text>' % (plot_x(tick), bottom + 16, tick))
    for i, (title, dots) in enumerate(bands):
        band_print(title, dots, TOP + BAND * i)
    print("</svg>")


def main():
    """Reads the command line and prints."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", metavar="RESULT", nargs="?", default="-",
                        help="output of tandem-bench (standard input)")
    parser.add_argument("--compare", metavar="FILE",
                        help="print what changed since the result in FILE")
    parser.add_argument("--points", action="store_true",
                        help="print the points of the suite placement")
    parser.add_argument("--format", default="text",
                        choices=("text", "markdown", "svg"),
                        help="format of tables, or svg for the plot (text)")
    arguments = parser.parse_args()
    document = document_read(arguments.result)
    markdown = arguments.format == "markdown"
    status = 0
    try:
        if arguments.compare is not None:
            status = comparison_print(document_read(arguments.compare),
                                      document)
        elif arguments.points:
            points_print(document, markdown)
        elif arguments.format == "svg":
            plot_print(document)
        else:
            tables_print(document, markdown)
        sys.stdout.flush()
    except OSError as error:
        print("report.py: standard output: %s" % error.strerror,
              file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
