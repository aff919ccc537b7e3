"""Runs of a program or a query in a process of its own, with what --time=json reports of each.

For the scripts beside this file that set programs beside SQL.
"""
import json
import statistics
import subprocess
import tempfile


class Failed(Exception):
    """A run that gave no answer: the command and what it wrote to stderr."""


def reports(text):
    """All reports in a file of --time=json, which holds several documents, one after the other."""
    text, runs, decoder = text.strip(), [], json.JSONDecoder()
    while text:
        report, end = decoder.raw_decode(text)
        runs += report if isinstance(report, list) else [report]
        text = text[end:].strip()
    return runs


def timed(command, data, device, runs):
    """What was printed, and the reports of the runs without the first quarter, which move columns."""
    with tempfile.NamedTemporaryFile(suffix=".json") as times:
        options = ["--data", data, "--device", device, "--format", "csv", "--repeat", str(runs),
                   f"--time=json:{times.name}"]
        done = subprocess.run(command + options, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
        all_runs = reports(open(times.name).read())
    return done.stdout, all_runs[len(all_runs) // 4:]


def median_ms(runs):
    return statistics.median(run["execute"]["total_ns"] for run in runs) / 1e6


def launches(runs):
    """Of the last run."""
    return sum(kernel["launches"] for kernel in runs[-1]["kernels"])
