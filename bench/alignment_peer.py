"""Runs in the environment of the peers (build.py), in a process of its own: parasail. Prints JSON lines.

alignment_peer.py scores FILE         writes BLOSUM62 as maxmargin's benches read it: a line of letters, then a line of scores for each
alignment_peer.py speed PAIRS         local alignments of each x with its z and decoys, the way back included: cells a second, best of 5
alignment_peer.py q PAIRS             Q-scores of BLOSUM62's alignments of x and z, local and global
The first column of a gap costs 11 and every further one 1, which is what parasail means by 11 and 1. One thread.
"""

import json
import sys
import time

import parasail

OPEN, EXTEND, ROUNDS, WINDOW = 11, 1, 5, 4
TABLE = parasail.blosum62


def letters():
    """Those of the table, in its order, without the one for the end."""
    return "ARNDCQEGHILKMFPSTWYVBZX"


def records(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def write_scores(path):
    count = len(letters())
    with open(path, "w") as out:
        out.write(letters() + "\n")
        for row in TABLE.matrix[:count]:
            out.write(" ".join(str(int(score)) for score in row[:count]) + "\n")


def speed(path):
    queries = [(record["x"], [record["z"], *record["decoys"]]) for record in records(path)]
    cells = sum(len(x) * len(z) for x, candidates in queries for z in candidates)
    found = {}
    # Its striped ways go wrong on some of these pairs: their scores are not those of parasail.sw, which is plain.
    for align in (parasail.sw_trace_scan_sat, parasail.sw_trace_scan_16, parasail.sw_trace_diag_16):
        best, total = float("inf"), 0
        for _ in range(ROUNDS):
            total, start = 0, time.process_time()
            for x, candidates in queries:
                for z in candidates:
                    result = align(x, z, OPEN, EXTEND, TABLE)
                    result.cigar.seq
                    total += result.score
            best = min(best, time.process_time() - start)
        found[align.__name__] = {"seconds": best, "million_per_second": cells / best / 1e6, "sum_of_scores": total}
    print(json.dumps({"cells": cells, "by": found}))


def matches(ax, az):
    """For each residue of x that has one, its partner."""
    pairs, i, j = {}, 0, 0
    for a, b in zip(ax, az):
        if a != "-" and b != "-":
            pairs[i] = j
        i += a != "-"
        j += b != "-"
    return pairs


def q(path):
    for name, align in (("local", parasail.sw_trace_scan_sat), ("global", parasail.nw_trace_scan_sat)):
        exact = near = count = 0
        for record in records(path):
            truth = matches(record["ax"], record["az"])
            result = align(record["x"], record["z"], OPEN, EXTEND, TABLE)
            trace = result.traceback
            begin = (result.cigar.beg_query, result.cigar.beg_ref)
            found = {i + begin[0]: j + begin[1] for i, j in matches(trace.query, trace.ref).items()}
            if truth:
                exact += sum(found.get(i) == j for i, j in truth.items()) / len(truth)
                near += sum(i in found and abs(found[i] - j) <= WINDOW for i, j in truth.items()) / len(truth)
                count += 1
        print(json.dumps({"alignment": name, "q_score": exact / count, "q4_score": near / count, "pairs": count}))


if __name__ == "__main__":
    {"scores": write_scores, "speed": speed, "q": q}[sys.argv[1]](sys.argv[2])
