# SPDX-License-Identifier: Apache-2.0
"""Runs each test case of a script in a child process.

A case is a function with the decorator `case`.  The parent starts the script
again for each case, and judges the exit status, the signal and the output of
the child.  A crash or a hang is therefore one failed case.

A child passes if it exits with status 0 and printed the line of `completed`.
The child prints this line when the function of the case returns.  A case that
ends the process itself calls `completed` before.
"""

import argparse
import collections
import faulthandler
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

import provider

STATUS_SKIPPED = 77
SHOWN_LINES = 150
# Time limits; see isolation.py.
FORK_SECONDS = 300
CASE_SECONDS = 900

Case = collections.namedtuple('Case', 'name function')

_cases = []


class Skipped(Exception):
    """The case cannot run here.  The argument is the reason."""


def case(function):
    """Adds a function to the cases of the script.  The function receives the
    parsed arguments of the script."""
    _cases.append(Case(function.__name__, function))
    return function


def note(text):
    """Prints a fact that the parent shows although the case passes."""
    print('note: %s' % text, flush=True)


def completed():
    """Tells the parent that all checks of the case passed."""
    print('completed', flush=True)


# ---- the child ----

def _run_child(name, arguments):
    chosen = [each for each in _cases if each.name == name]
    if not chosen:
        sys.exit('there is no case %s' % name)
    faulthandler.enable()
    faulthandler.dump_traceback_later(CASE_SECONDS - 2)
    try:
        chosen[0].function(arguments)
    except Skipped as reason:
        print('skipped: %s' % reason, flush=True)
        sys.exit(STATUS_SKIPPED)
    completed()


def limit_memory(gibibytes):
    """Lets the allocations of this process fail beyond a size."""
    limit = gibibytes << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def run_forked(function):
    """Runs a function in a fork of this process.

    Returns None if the function returned, else a text that says what happened.
    The process must not have used the provider before.
    """
    with tempfile.TemporaryFile() as output:
        process = multiprocessing.get_context('fork').Process(
            target=_forked_child, args=(function, output))
        process.start()
        process.join(FORK_SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
            return 'no end after %d s' % FORK_SECONDS
        output.seek(0)
        text = output.read().decode('utf-8', 'replace')
    return _describe_end(process.exitcode, text)


def _forked_child(function, output):
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    function()


def _describe_end(status, text):
    """Returns None for exit status 0, else a description of the end."""
    if status == 0:
        return None
    lines = text.strip().splitlines()[-SHOWN_LINES:]
    end = ('signal %s' % signal.Signals(-status).name if status < 0
           else 'exit status %d' % status)
    return '%s; output:\n    %s' % (end, '\n    '.join(lines))


# ---- the parent ----

def _child_command(arguments, name):
    command = [sys.executable, sys.argv[0], '--child', name]
    for key, value in vars(arguments).items():
        if key not in ('case', 'list', 'child') and value is not None:
            command += ['--' + key.replace('_', '-'), str(value)]
    return command


def _kill_group(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _start_child(command, output):
    """Runs the child.  Returns its exit status, or None after CASE_SECONDS."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output,
                             stderr=subprocess.STDOUT, start_new_session=True)
    try:
        return child.wait(CASE_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _kill_group(child)
        child.wait()


def _judge(status, text):
    """Returns 'passed', 'skipped' or 'failed', and an explanation."""
    lines = text.splitlines()
    if status == STATUS_SKIPPED:
        return 'skipped', lines[-1] if lines else ''
    if status is None:
        return 'failed', 'no end after %d s; output:\n    %s' % (
            CASE_SECONDS, '\n    '.join(lines[-SHOWN_LINES:]))
    if status == 0 and 'completed' not in lines:
        return 'failed', ('the child ended before its checks; output:\n    %s' %
                          '\n    '.join(lines[-SHOWN_LINES:]))
    failure = _describe_end(status, text)
    return ('passed', '') if failure is None else ('failed', failure)


def _run_case(arguments, each):
    start = time.monotonic()
    with tempfile.TemporaryFile() as output:
        status = _start_child(_child_command(arguments, each.name), output)
        output.seek(0)
        text = output.read().decode('utf-8', 'replace')
    verdict, why = _judge(status, text)
    print('%-8s %-36s %5.1f s %s' % (verdict, each.name,
                                     time.monotonic() - start, why), flush=True)
    for line in text.splitlines():
        if line.startswith('note: '):
            print('         %s' % line[6:], flush=True)
    return verdict


def _run_cases(title, arguments):
    counts = collections.Counter()
    print('%s: %s, device %s, seed %d' % (
        title, provider.versions(), arguments.device, arguments.seed),
        flush=True)
    for each in _cases:
        if not arguments.case or each.name in arguments.case:
            counts[_run_case(arguments, each)] += 1
    print('%d passed, %d failed, %d skipped' % (
        counts['passed'], counts['failed'], counts['skipped']))
    return 0 if counts['failed'] == 0 and counts['passed'] > 0 else 1


def main(title, description, add_arguments=None):
    """Runs the script: all cases, or one of them in a child process.

    add_arguments: a function that adds the script's own options to the parser.
        Each of them takes one value.
    """
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--case', action='append', metavar='NAME',
                        help='run only this case; may be repeated')
    parser.add_argument('--list', action='store_true',
                        help='print the names of the cases')
    parser.add_argument('--child', metavar='NAME', help=argparse.SUPPRESS)
    provider.add_device_argument(parser)
    parser.add_argument('--seed', type=int, default=1,
                        help='seed of all random choices (default: 1)')
    if add_arguments is not None:
        add_arguments(parser)
    arguments = parser.parse_args()
    if arguments.list:
        print('\n'.join(each.name for each in _cases))
        return 0
    if arguments.child:
        _run_child(arguments.child, arguments)
        return 0
    return _run_cases(title, arguments)
