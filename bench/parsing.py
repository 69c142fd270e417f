"""Grammars: the decoder by itself, how often solvers call it, and what is learned, as in THJA04 section 5.5 and JFY09 section 5."""

from inputs import CRAFT, QUICK_DIVISOR
from measure import CORES, PROGRAM, best
from solvers import compare_threads

# JFY09 section 5.1: the loss is 100 for any wrong tree, sentences have at most 15 words.
JFY09 = ["--loss", "zero-one", "--loss-scale", 100, "-c", 20000, "--epsilon", 0.1]
JFY09_SENTENCES, JFY09_RULES, JFY09_WORDS = 10_000, 5_000, 15
# The same precision for the loss that does not add up.
F1 = ["--loss", "f1", "--loss-scale", 100, "--c-per-example", 1, "--epsilon", 0.1]

# THJA04 section 5.5: C = 1, epsilon 0.01, of losses that are at most 1: our defaults. Nothing is tuned.
GRAMMARS = {
    "rules as in the papers": [],
    "parent annotation": ["--parent-annotation"],
}
METHODS = {
    "mle": ["--solver", "mle"],
    "zero-one": ["--loss", "zero-one", "--penalty", "quadratic"],
    "F1": ["--loss", "f1"],
    "F1, slack rescaling": ["--loss", "f1", "--rescaling", "slack"],
    "F1, span features": ["--loss", "f1", "--features", "spans"],
}


def parse_speed(bench):
    """CKY: rule applications a second on one thread, sentences of at most 40 words"""
    inputs = {"generated, 5,000 rules asked for": None, "CRAFT": bench.inputs.packed(f"{CRAFT}.train")}
    table = []
    for name, path in inputs.items():
        env = {"MAXMARGIN_TREES": str(path)} if path else None
        found = bench.command("cargo", "bench", "--package", "maxmargin", "--bench", "cky", env=env).json()
        speed = found["million_per_second"]
        if path is None:
            bench.outcome.at_least(f"{name}: rule applications", speed, 300, " million a second", digits=0)
        else:
            bench.outcome.state(f"{name}: rule applications", f"{speed} million a second")
        table.append([name, found["binary_rules"], found["symbols"], found["sentences"], found["words"], found["rule_applications"], f"{found['seconds']:.2f}"])
    bench.outcome.table("", ["grammar", "binary rules", "symbols", "sentences", "words", "applications", "s"], table)


def parse_calls(bench):
    """CRAFT, at most 10 words: oracle calls of one-slack with and without cache, and of BCFW"""
    data = bench.inputs.plain(f"{CRAFT}.train")
    table = []
    for name, setting in {"zero-one, as in JFY09": JFY09, "F1": F1}.items():
        options = ["--max-words", 10, *setting]
        runs = {
            "one-slack, cache off": bench.train("parse", data, *options, "--solver", "one-slack", "--cache", "off", threads=CORES),
            "one-slack": bench.train("parse", data, *options, "--solver", "one-slack", threads=CORES),
            "bcfw": bench.train("parse", data, *options, "--solver", "bcfw", threads=CORES),
        }
        off, on, bcfw = (run["oracle_calls"] for run in runs.values())
        bench.outcome.check(f"{name}: status, all", "converged, exact", ", ".join(run["status"] for run in runs.values()), all(run.converged for run in runs.values()))
        bench.outcome.at_least(f"{name}: calls without the cache over calls with it", off / on, 2)
        bench.outcome.at_most(f"{name}: calls of BCFW over calls of one-slack with cache", bcfw / on, 0.5)
        share = runs["one-slack"]["seconds_oracle"] / runs["one-slack"].seconds
        bench.outcome.state(f"{name}: oracle's share of one-slack's time, cache on", f"{100 * share:.0f} %")
        table += [
            [name, solver, run["oracle_calls"], f"{run['passes']:.1f}", run["rounds"], f"{run['gap'] / run['c']:.3f}", f"{run.seconds:.1f}"]
            for solver, run in runs.items()
        ]
    bench.outcome.table(f"{CORES} threads", ["loss", "solver", "oracle calls", "passes", "rounds", "gap / C", "training s"], table)


def parse_threads(bench):
    """CRAFT, at most 15 words: 2 threads against 1, time and equality of the models"""
    data = bench.inputs.plain(f"{CRAFT}.train")
    table = []
    for solver, passes in (("bcfw", 3), ("one-slack", 3)):
        runs = compare_threads(bench, "parse", solver, data, "--max-words", 15, "--solver", solver, "--max-passes", passes)
        one, two = best(runs[1]), best(runs[2])
        bench.outcome.at_least(f"{solver}: times faster", one.seconds / two.seconds, 1.8)
        table += [[solver, count, f"{run.seconds:.2f}", f"{run['seconds_oracle']:.2f}"] for count, run in ((1, one), (2, two))]
    bench.outcome.table("best of 3, 3 passes", ["solver", "threads", "training s", "oracle s"], table)


def parse_accuracy(bench):
    """CRAFT, at most 10 and 15 words: large-margin grammars against maximum likelihood, as in THJA04 table 5"""
    data, held = bench.inputs.plain(f"{CRAFT}.train"), bench.inputs.joined([f"{CRAFT}.dev", f"{CRAFT}.test"], "craft.held")
    table = []
    for grammar, shape in GRAMMARS.items():
        folds = bench.train("parse", data, "--max-words", 10, *shape, "--solver", "mle", "--folds", 5, threads=CORES)["cv"][0]["loss"]
        bench.outcome.state(f"{grammar}: mle's loss in cross-validation, at most 10 words", f"{folds:.4f}")
        for words in (10, 15):
            found = {}
            for method, options in METHODS.items():
                if words == 15 and method in ("zero-one", "F1, slack rescaling"):
                    continue
                name = f"{method.replace(', ', '-').replace(' ', '-')}.mm"
                run = bench.train("parse", data, "--max-words", words, *shape, *options, threads=CORES, model=name)
                against = [] if method == "mle" else ["--compare", bench.inputs.folder / "mle.mm"]
                found[method] = bench.command(PROGRAM, "evaluate", run.model, held, "--max-words", words, "--json", *against).json()
                scores = found[method]
                p = f"{scores['compare']['p_value']:.3f}" if against else ""
                figures = [f"{100 * scores[key]:.2f}" for key in ("bracket_precision", "bracket_recall", "bracket_f1", "exact_match")]
                table.append([grammar, words, scores["examples"], method, *figures, p, f"{run.seconds:.1f}"])
            where = f"{grammar}, at most {words} words"
            gain = {method: 100 * (scores["bracket_f1"] - found["mle"]["bracket_f1"]) for method, scores in found.items()}
            if words == 10:
                bench.outcome.at_least(f"{where}: F1 with the F1 loss less mle's", gain["F1"], 1, " points")
                more = 100 * (found["zero-one"]["exact_match"] - found["mle"]["exact_match"])
                bench.outcome.check(f"{where}: exact match with the zero-one loss less mle's", "> 0.00 points", f"{more:.2f} points", more > 0)
            else:
                bench.outcome.check(f"{where}: F1 with the F1 loss less mle's", "> 0.00 points", f"{gain['F1']:.2f} points", gain["F1"] > 0)
            spans = gain["F1, span features"] - gain["F1"]
            bench.outcome.check(f"{where}: F1 that span features add", "> 0.00 points", f"{spans:.2f} points", spans > 0)
    header = ["grammar", "words", "sentences", "method", "precision", "recall", "F1", "exact match", "p (exact match, against mle)", "training s"]
    bench.outcome.table("CRAFT's dev and test together, C = 1 for each sentence, default epsilon", header, table)


def parse_jfy09(bench):
    """10,000 generated sentences of at most 15 words, 5,000 rules, to JFY09's epsilon: seconds of training"""
    examples = JFY09_SENTENCES // (QUICK_DIVISOR if bench.inputs.quick else 1)
    data = bench.inputs.folder / f"trees.{examples}"
    sizes = ["--examples", examples, "--rules", JFY09_RULES, "--length", JFY09_WORDS, "--seed", 1]
    bench.command(PROGRAM, "generate", "parse", *sizes, "-o", data)
    out, table = bench.outcome, []
    for solver in ("auto", "one-slack"):
        run = bench.train("parse", data, *JFY09, "--solver", solver, threads=CORES)
        out.check(f"{solver}: status", "converged, exact", f"{run['status']}, {run['certificate']}", run.converged)
        what = f"{solver}: training, {CORES} threads (JFY09: 2.9 hours of CPU)"
        if solver == "auto":
            out.at_most(what, run.seconds, 600, " s", digits=1)
        else:
            out.state(what, f"{run.seconds:.1f} s")
        table.append([run["solver"], run["dimension"], run["oracle_calls"], run["rounds"], f"{run.seconds:.1f}", f"{run.cpu:.1f}"])
    out.table("", ["solver", "weights", "oracle calls", "rounds", "training s", "CPU s"], table)
