"""Runs of programs and queries, with what --time=json reports of each.

For the scripts beside this file that set programs beside SQL.
"""
import json
import pathlib
import statistics
import subprocess
import tempfile
import time


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


def timed_all(command, texts, data, device, runs, limit, say):
    """By name what `timed` gives of each text, or a Failed, from one process, which keeps tables and columns.

    texts: programs for `run`, or queries for `sql`, by name. One may take `limit` seconds, with the columns
    that it is the first to read. One that fails ends the process, and another one goes on behind it.
    say(name, seconds) is called as they are done.
    """
    results, left = {}, list(texts)
    while left:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            answers, times, said = folder / "answers", folder / "times", folder / "said"
            answers.mkdir()
            if command[-1] == "sql":
                files, called = [folder / "q.sql"], [f"q-{k + 1}" for k in range(len(left))]
                files[0].write_text("".join(texts[name] + ";\n" for name in left))
            else:
                files, called = [folder / f"{name}.hir" for name in left], left
                for file, name in zip(files, left):
                    file.write_text(texts[name])
            if len(left) == 1:
                called = [files[0].stem]
            places = [answers / f"{name}.csv" for name in called]
            options = ["--data", data, "--device", device, "--format", "csv", "--repeat", str(runs),
                       "--timeout", str(limit), f"--time=json:{times}",
                       "-o", str(places[0] if len(left) == 1 else answers)]
            done, since = 0, time.monotonic()
            with said.open("w") as to_said:
                process = subprocess.Popen([*command, *map(str, files), *options],
                                           stdout=to_said, stderr=to_said)
                while True:
                    ended = process.poll() is not None
                    while done < len(left) and places[done].exists():
                        say(left[done], time.monotonic() - since)
                        done, since = done + 1, time.monotonic()
                    if ended:
                        break
                    if time.monotonic() - since > 2 * limit + 60:   # what no limit ends
                        process.kill()
                    time.sleep(0.02)
            every = reports(times.read_text()) if times.exists() else []
            for name, its, place in list(zip(left, called, places))[:done]:
                own = [run for run in every if run["program"] == its]
                results[name] = (place.read_text(), own[len(own) // 4:])
            if done < len(left):
                why = said.read_text().strip().splitlines()
                results[left[done]] = Failed(f"exit code {process.returncode}: {' '.join(why[-3:])}")
                say(left[done], time.monotonic() - since)
                done += 1
            left = left[done:]
    return results


def median_ms(runs):
    return statistics.median(run["execute"]["total_ns"] for run in runs) / 1e6


def launches(runs):
    """Of the last run."""
    return sum(kernel["launches"] for kernel in runs[-1]["kernels"])
