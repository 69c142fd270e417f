"""The referee: `python -m referee --program PATH`, from the folder `tests`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from .cases import KNOWN, run_known
from .check import Options, Outcome, run_case, stratum
from .options import KINDS, TASKS


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m referee", description=__doc__)
    parser.add_argument(
        "--program", default="../target/release/maxmargin", help="the program to drive"
    )
    parser.add_argument("--cases", type=int, default=200, help="number of random cases [200]")
    parser.add_argument("--seed", type=int, default=1, help="seed of the cases [1]")
    parser.add_argument(
        "--only", default="", help=f"tasks ({', '.join(TASKS)}) and kinds ({', '.join(KINDS)})"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="cases side by side [cores]"
    )
    parser.add_argument(
        "--keep", type=Path, help="folder for the files of failures [a temporary one]"
    )
    parser.add_argument(
        "--replay",
        metavar="SEED:K",
        help="run one case, or the known one of this name, and keep its files",
    )
    parser.add_argument("--known", action="store_true", help="the known regression cases alone")
    parser.add_argument("--self-test", action="store_true", help="test the referee itself")
    return parser.parse_args()


def chosen(args: argparse.Namespace) -> list[int]:
    """The numbers of the cases to run."""
    names = [name for name in args.only.split(",") if name]
    unknown = [name for name in names if name not in TASKS + KINDS]
    if unknown:
        raise SystemExit(f"--only: unknown: {', '.join(unknown)}")
    tasks = [name for name in names if name in TASKS] or TASKS
    kinds = [name for name in names if name in KINDS] or KINDS
    wanted = [k for k in range(200) if stratum(k)[0] in tasks and stratum(k)[1] in kinds]
    if not wanted:
        raise SystemExit(f"--only {args.only}: there are no such cases")
    found, k = [], 0
    while len(found) < args.cases:
        task, kind = stratum(k)
        if task in tasks and kind in kinds:
            found.append(k)
        k += 1
    return found


def tell(outcome: Outcome, options: Options) -> None:
    """Prints a failure."""
    for about, what in outcome.complaints:
        print(
            f"FAILED {outcome.name} {outcome.task}/{outcome.kind} {outcome.solver}: {about}: {what}"
        )
    print(f"    again: python -m referee --program {options.program} --replay {outcome.name}")
    print(f"    files: {outcome.folder}", flush=True)


def table(outcomes: list[Outcome]) -> None:
    """Prints the figures of each stratum."""
    columns = [
        "stratum",
        "cases",
        "exact",
        "estim.",
        "none",
        "refused",
        "false bounds",
        "P off",
        "error of P",
        "short",
    ]
    columns += ["bounds of 0", "other"]
    rows = [columns]
    for name in sorted({f"{o.task}/{o.kind}" for o in outcomes if o.state != "skipped"}):
        own = [o for o in outcomes if f"{o.task}/{o.kind}" == name]
        abouts = [{about for about, _ in o.complaints} for o in own]
        errors = [o.error for o in own if o.error is not None]
        short = [o.short for o in own if o.short is not None]
        rows.append(
            [
                name,
                str(len(own)),
                *(
                    str(sum(o.certificate == kind for o in own))
                    for kind in ("exact", "estimate", "none")
                ),
                str(sum(o.state == "refused" for o in own)),
                str(sum("bound" in about for about in abouts)),
                str(sum("P" in about for about in abouts)),
                f"{max(errors):.1e}" if errors else "-",
                f"{max(short):.1e}" if short else "-",
                str(sum("zero" in about for about in abouts)),
                str(sum(bool(about - {"bound", "P", "zero"}) for about in abouts)),
            ]
        )
    widths = [max(len(row[j]) for row in rows) for j in range(len(columns))]
    for row in rows:
        print(
            "  ".join(
                cell.ljust(w) if j == 0 else cell.rjust(w)
                for j, (cell, w) in enumerate(zip(row, widths))
            )
        )


def own_gaps(outcomes: list[Outcome]) -> None:
    """Prints how sharp the referee's own bounds are."""
    gaps = np.array(
        [o.own_gap for o in outcomes if o.own_gap is not None and np.isfinite(o.own_gap)]
    )
    if not len(gaps):
        return
    shares = [
        f"{100 * np.mean(gaps <= level):.1f} % at most {level:g}"
        for level in (1e-12, 1e-10, 1e-8, 1e-4)
    ]
    print(
        f"the referee's own relative gap, of {len(gaps)}: {', '.join(shares)}; "
        f"largest {gaps.max():.1e}"
    )


def run_all(args: argparse.Namespace, options: Options) -> list[Outcome]:
    """Runs the cases side by side, and prints failures as they come."""
    outcomes = []
    told: set[str] = set()

    def take(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if outcome.state == "failed":
            tell(outcome, options)
        if outcome.state == "skipped" and outcome.note not in told:
            told.add(outcome.note)
            print(f"skipped: {outcome.note}", flush=True)

    names = [case.name for case in KNOWN]
    if args.replay in names:
        known, pairs = [args.replay], []
    elif args.replay:
        seed, k = map(int, args.replay.split(":"))
        known, pairs = [], [(seed, k)]
    elif args.known:
        known, pairs = names, []
    else:
        known, pairs = ([] if args.only else names), [(args.seed, k) for k in chosen(args)]
    with ProcessPoolExecutor(args.jobs) as pool:
        of_known = [pool.submit(run_known, options, name) for name in known]
        cases = pool.map(run_case, [options] * len(pairs), *(zip(*pairs) if pairs else ([], [])))
        for future in of_known:
            take(future.result())
        for outcome in cases:
            take(outcome)
    return outcomes


def main() -> int:
    args = parse()
    if args.self_test:
        from .test_optimum import run_tests

        return run_tests()
    program = args.program if os.sep not in args.program else str(Path(args.program).resolve())
    folder = (args.keep or Path(tempfile.mkdtemp(prefix="referee-"))).resolve()
    options = Options(program, folder, keeps_all=bool(args.replay))
    began = time.perf_counter()
    outcomes = run_all(args, options)
    if args.replay:
        for outcome in outcomes:
            print("\n".join(outcome.commands))
            print(outcome)
    table(outcomes)
    own_gaps(outcomes)
    refused = [o for o in outcomes if o.state == "refused"]
    if refused:
        share = 100 * len(refused) / len(outcomes)
        print(
            f"{len(refused)} refused ({share:.1f} %), for instance {refused[0].name}: "
            f"{refused[0].note}"
        )
    slowest = max(outcomes, key=lambda o: o.seconds)
    print(
        f"{time.perf_counter() - began:.0f} s; slowest "
        f"{slowest.name} ({slowest.task}/{slowest.kind}): {slowest.seconds:.1f} s"
    )
    failed = sum(o.state == "failed" for o in outcomes)
    print(f"{sum(o.state == 'passed' for o in outcomes)} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
