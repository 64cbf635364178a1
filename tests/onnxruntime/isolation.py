# SPDX-License-Identifier: Apache-2.0
"""Runs test cases in a child process that may crash or hang.

If the child ends before its last case, or a case takes too long, the case that
was running fails, and a new child continues with the next case.  The parent must
not have opened an ONNX Runtime session, because the child is a fork of it.

The child's standard error goes to a file.  The provider computes a group on the
CPU if the chosen device fails, and writes a warning; such a case fails, too.
"""

import collections
import multiprocessing
import os
import tempfile

# A case that takes longer fails.  PoCL needs a minute to compile one of
# CLBlast's kernels, and several minutes if other programs run.
CASE_SECONDS = 300

PASSED, FAILED, SKIPPED = 'passed', 'failed', 'skipped'
Result = collections.namedtuple('Result', 'status text')

# Part of the warning of the provider.
DEVICE_FAILURE = 'is computed on the CPU'
# Sessions of cases must print warnings.
WARNING = 2


def error_text(error):
    """Returns the message of an exception of ONNX Runtime in one line."""
    text = ' '.join(str(error).split())
    return text.rpartition('Status Message: ')[2] or text


class ErrorFile:
    """A file that receives this process's standard error."""

    def __init__(self):
        self.file = tempfile.TemporaryFile('w+b')
        os.dup2(self.file.fileno(), 2)

    def take(self):
        """Returns what was written since the last call."""
        self.file.seek(0)
        text = self.file.read().decode(errors='replace')
        self.file.seek(0)
        self.file.truncate()
        return text

    def device_failure(self):
        """Returns the provider's warning that the device failed, or None."""
        for line in self.take().splitlines():
            if DEVICE_FAILURE in line:
                return line
        return None


def _run(function, case, errors):
    try:
        result = function(case)
    except Exception as error:  # ONNX Runtime raises several types
        result = Result(FAILED, '%s: %s' % (type(error).__name__,
                                            error_text(error)))
    failure = errors.device_failure()
    if failure is not None and result.status == PASSED:
        result = Result(FAILED, 'the device failed: ' + failure)
    return result


def _child_main(connection, cases, prepare):
    errors = ErrorFile()
    function = prepare()
    for case in cases:
        connection.send((case, _run(function, case, errors)))
    connection.close()


def _received(connection, process):
    """Yields what a child sends until it ends or a case takes too long."""
    while True:
        try:
            if not connection.poll(CASE_SECONDS):
                process.kill()
                return
            yield connection.recv()
        except EOFError:
            return


def run_isolated(cases, prepare):
    """Yields (case, result) for each case.

    cases: names or numbers of cases.
    prepare: a function that a child calls first.  It returns the function that
        runs one case and returns its result.
    """
    cases = list(cases)
    context = multiprocessing.get_context('fork')
    while cases:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_child_main,
                                  args=(sender, cases, prepare))
        process.start()
        sender.close()
        done = 0
        for message in _received(receiver, process):
            done += 1
            yield message
        process.join()
        cases = cases[done:]
        if cases:
            text = ('did not end within %d s' % CASE_SECONDS
                    if process.exitcode == -9 else
                    'the process ended with status %s' % process.exitcode)
            yield cases.pop(0), Result(FAILED, text)
