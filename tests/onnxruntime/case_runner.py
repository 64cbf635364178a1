# SPDX-License-Identifier: Apache-2.0
"""Runs named cases with the provider, one after the other, in this process."""

import argparse
import os
import sys
import tempfile

import provider
from small_models import keep_device_open


def _run(name, problem, case, device):
    """Prints the result of a case.  Returns true if it passed."""
    with tempfile.TemporaryDirectory() as directory:
        try:
            text = problem(case, device, os.path.join(directory, 'report'))
        except Exception as error:  # onnxruntime's errors have no common class
            text = '%s: %s' % (type(error).__name__, error)
    print('%s %s%s' % ('ok    ' if text is None else 'FAILED', name,
                       '' if text is None else ': ' + text), flush=True)
    return text is None


def main(description, cases, problem):
    """Runs the script with its command line.  Ends the process.

    cases: by name.
    problem: a function of a case, the device, and the path of a placement report
        (option "explain").  It returns a text that says what is wrong, or None.
    """
    parser = argparse.ArgumentParser(allow_abbrev=False,
                                     description=description.splitlines()[0])
    provider.add_device_argument(parser)
    parser.add_argument('--only', default='', metavar='TEXT',
                        help='run only the cases whose name contains TEXT')
    arguments = parser.parse_args()
    print('%s, device %s' % (provider.versions(), arguments.device))
    keep_device_open(arguments.device)
    results = [_run(name, problem, case, arguments.device)
               for name, case in cases.items() if arguments.only in name]
    print('%d passed, %d failed, 0 skipped' % (sum(results),
                                               results.count(False)))
    sys.exit(0 if results and all(results) else 1)
