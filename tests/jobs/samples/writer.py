# pyright: basic, reportAttributeAccessIssue=false, reportMissingImports=false, reportOptionalMemberAccess=false
# ruff: noqa: PTH110, PTH123, T201
"""A capability for tests that writes past Python's streams, and lines without an end."""

import ctypes
import os
import subprocess
import sys
import time


class Writer:
    def initialize(self, config):
        if "say" in config:
            os.write(1, config["say"].encode())

    def pid(self):
        return os.getpid()

    def execute(self, text, fd=1):
        os.write(fd, text.encode())

    def shell(self, command):
        subprocess.run(command, shell=True, check=True)

    def later(self, path, text):
        """Leave a process behind that writes once a file is there, and then removes it."""
        script = 'until test -e "$0"; do sleep 0.01; done; printf %s "$1"; rm "$0"'
        subprocess.Popen(["sh", "-c", script, path, text])

    def meet(self, text, here, there):
        """Write, and end no sooner than the other call has written."""
        os.write(1, text.encode())
        open(here, "w").close()
        while not os.path.exists(there):
            time.sleep(0.002)

    def write_all(self, word, times):
        whole = (word * times).encode()
        while whole:
            whole = whole[os.write(1, whole) :]

    def print_all(self, word, times):
        print(word * times)

    def print_piecemeal(self, word, times):
        for _ in range(times):
            print(word, end="")

    def redraw(self, times, way):
        """Draw one line again and again, each time flushed."""
        for number in range(times):
            text = f"\r{number} of {times}"
            if way == "bytes":
                sys.stdout.buffer.write(text.encode())
                sys.stdout.buffer.flush()
            else:
                print(text, end="", flush=True)

    def redraw_and_die(self, times, way, how):
        self.redraw(times, way)
        sys.stderr.write("at the end")
        sys.stderr.flush()
        if how == "segfault":
            ctypes.string_at(0)
        os._exit(3)

    def turn_line(self):
        """Flush, end the line, and flush a second one with the same text."""
        print("again", end="", flush=True)
        print()
        print("again", end="", flush=True)
        os._exit(3)
