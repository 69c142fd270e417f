//! The options of `train`, each declared once. All are optional, so that one which does not apply can be refused.

mod alignments;
mod values;

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use maxmargin::kernel::Specification;
use maxmargin::model::TaskKind;
use maxmargin::problem;
use maxmargin::solver::SolverKind;

pub(crate) use alignments::{AlignOptions, GapCosts, GapsName, PriorName, ReachName};
use values::{
    ancestor_weight, at_least_one, bias, cache, class_weight, folds, given_ladder, kernel, ladder, markov, pairs,
    positive, probability, seconds, tag_cost, weight_of_slack,
};
pub(crate) use values::{count_from_one, lead, threads, threshold};

/// What is to be learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Task {
    /// Two classes: labels +1 and -1, or 1 and 0
    Binary,
    /// Any number of classes, any words as labels
    Multiclass,
    /// Classes that are nodes of a tree or lattice, --taxonomy
    Taxonomy,
    /// Tags for the tokens of sentences
    Tag,
    /// Trees for sentences, by a grammar that is read off bracketed trees
    Parse,
    /// Sets of labels
    Multilabel,
    /// Labels for the variables of factor graphs
    Graph,
    /// Alignments of two sequences
    Align,
}

impl From<Task> for TaskKind {
    fn from(task: Task) -> Self {
        match task {
            Task::Binary => Self::Binary,
            Task::Multiclass => Self::Multiclass,
            Task::Taxonomy => Self::Taxonomy,
            Task::Tag => Self::Tag,
            Task::Parse => Self::Parse,
            Task::Multilabel => Self::Multilabel,
            Task::Graph => Self::Graph,
            Task::Align => Self::Align,
        }
    }
}

/// Parses the name of a solver; help texts list all of them.
fn solver_kind() -> impl TypedValueParser<Value = SolverKind> {
    let names = SolverKind::ALL.map(|kind| PossibleValue::new(kind.name()).help(kind.about()));
    PossibleValuesParser::new(names).map(|name| name.parse().expect("a name of the list"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rescaling {
    /// The margin grows with the loss
    Margin,
    /// The slack counts more where the loss is larger
    Slack,
}

impl From<Rescaling> for problem::Rescaling {
    fn from(rescaling: Rescaling) -> Self {
        match rescaling {
            Rescaling::Margin => Self::Margin,
            Rescaling::Slack => Self::Slack,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Penalty {
    /// (C/n) times the sum of slacks
    Linear,
    /// (C/2n) times the sum of squared slacks
    Quadratic,
    /// No slack: every example must be separated
    Hard,
}

impl From<Penalty> for problem::Penalty {
    fn from(penalty: Penalty) -> Self {
        match penalty {
            Penalty::Linear => Self::Linear,
            Penalty::Quadratic => Self::Quadratic,
            Penalty::Hard => Self::Hard,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LossName {
    /// Every error costs 1; tag, parse: a sentence with any error; align: a decoy in the place of the homologue
    ZeroOne,
    /// Every wrong token costs 1, or what --tag-cost says (tag); every wrong or missing bracket (parse) or label (multilabel),
    /// every wrong label of a variable (graph) costs 1; align: the share of residues with a wrong partner
    Hamming,
    /// The share of true matches that are missed (align)
    Q,
    /// The same, where a residue may be matched up to 4 residues off (align)
    Q4,
    /// 1 - F1 of the brackets of a tree (parse), of the labels of a set (multilabel)
    F1,
    /// Difference of the labels, which are numbers (multiclass)
    Absolute,
    /// Square of that difference (multiclass)
    Squared,
    /// The numbers of --cost-matrix (multiclass, taxonomy)
    Matrix,
    /// The height of the first common ancestor: the longest way from there down to a leaf (taxonomy)
    Tree,
    /// The number of edges between two nodes (taxonomy)
    Path,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UpdateName {
    /// Over all cuts, after every --batch new ones
    Batch,
    /// Over an example's own cuts at once, over all cuts once a sweep
    Own,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InnerName {
    /// Variables turn together with their factors, which then agree; after that decoded outputs or blocks (gdmm)
    Turns,
    /// Block by block, as far as each allows; of sets only blocks of labels that may come in
    Blocks,
    /// All blocks at once, by Frank-Wolfe with away steps: to compare with, and for small data
    AwaySteps,
}

/// One `--class-weight`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ClassWeight {
    Balanced,
    Given(String, f64),
}

/// Several C.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ladder {
    Auto,
    /// Ascending.
    Given(Vec<f64>),
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Problem")]
pub(crate) struct ProblemOptions {
    /// Weight C of the mean slack: C/n per example [default: n, a weight of 1 per example]
    #[arg(short, long, value_name = "C", value_parser = weight_of_slack, allow_negative_numbers = true)]
    pub(crate) c: Option<f64>,
    /// The same as --c K*n: the C of liblinear and scikit-learn
    #[arg(long, value_name = "K", value_parser = weight_of_slack, allow_negative_numbers = true, conflicts_with = "c")]
    pub(crate) c_per_example: Option<f64>,
    /// Train at each of these --c in ascending order, each from where the last ended, and keep the last; `auto`: seven
    /// powers of ten per example, from where C begins to matter until no training example is wrong
    #[arg(long, value_name = "C,C,...|auto", value_parser = ladder, conflicts_with_all = ["c", "c_per_example"])]
    pub(crate) c_path: Option<Ladder>,
    /// The same with values of --c-per-example
    #[arg(long, value_name = "K,K,...", value_parser = given_ladder,
          conflicts_with_all = ["c", "c_per_example", "c_path"])]
    pub(crate) c_path_per_example: Option<Ladder>,
    /// How slack is penalised [default: linear]
    #[arg(long, value_name = "P")]
    pub(crate) penalty: Option<Penalty>,
    /// Where the loss enters the margin constraints [default: margin]
    #[arg(long, value_name = "R")]
    pub(crate) rescaling: Option<Rescaling>,
    /// What an error costs [default: zero-one; taxonomy: tree; tag, multilabel, graph:
    /// hamming; parse: f1]
    #[arg(long, value_name = "L")]
    pub(crate) loss: Option<LossName>,
    /// Costs for --loss matrix: a row for each true label, a column for each predicted one, in ascending order of the
    /// labels or in that of a header line
    #[arg(long, value_name = "FILE")]
    pub(crate) cost_matrix: Option<PathBuf>,
    /// Multiply the loss [default: 1]
    #[arg(long, value_name = "F", value_parser = positive, allow_negative_numbers = true)]
    pub(crate) loss_scale: Option<f64>,
    /// Weight of the examples of a class, once for each class; `balanced` gives all classes the same total weight
    /// [default: 1]
    #[arg(long, value_name = "LABEL=W|balanced", value_parser = class_weight, allow_hyphen_values = true)]
    pub(crate) class_weight: Vec<ClassWeight>,
    /// This label against all others (binary)
    #[arg(long, value_name = "LABEL", allow_hyphen_values = true)]
    pub(crate) positive: Option<String>,
    /// Add a constant feature with value B, which gives every class or label an offset (binary, multiclass, taxonomy,
    /// multilabel) [default: none]
    #[arg(long, value_name = "B", value_parser = bias, allow_negative_numbers = true)]
    pub(crate) bias: Option<f32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArchitectureName {
    /// Weights for each class, as in multiclass; the taxonomy is in the loss alone
    Flat,
    /// Weights for each node: a class has those of all its ancestors and its own
    Taxonomy,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Taxonomies")]
pub(crate) struct TaxonomyOptions {
    /// The tree or lattice of the classes: a line CHILD PARENT for each edge, one root
    #[arg(long, value_name = "FILE")]
    pub(crate) taxonomy: Option<PathBuf>,
    /// What the classes share [default: taxonomy]
    #[arg(long, value_name = "A", conflicts_with = "class_features")]
    pub(crate) architecture: Option<ArchitectureName>,
    /// With weights for each node: what those of ancestors count for in the score of a class, beside 1 for its own; the
    /// smaller, the closer to flat; from 0.000001 to 10 [default: 1]
    #[arg(long, value_name = "W", value_parser = ancestor_weight, allow_hyphen_values = true, conflicts_with = "class_features")]
    pub(crate) ancestor_weight: Option<f64>,
    /// Weights for attributes of the classes, instead: a line CLASS ATTRIBUTE[:VALUE] ... for each
    #[arg(long, value_name = "FILE")]
    pub(crate) class_features: Option<PathBuf>,
}

/// How a file of tagged sentences is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    /// A token a line, columns between tabs or blanks, the last one the tag; an empty line between sentences (CoNLL)
    Columns,
    /// TAG qid:N INDEX:VALUE ...
    Svmhmm,
    /// TAG, then ATTRIBUTE[:VALUE] ..., between tabs; an empty line between sentences
    Crfsuite,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemeName {
    /// B- begins a chunk, I- goes on with it, O is outside
    #[value(name = "BIO")]
    Bio,
    /// The same with E- for the last token of a chunk and S- for chunks of one token
    #[value(name = "BIOES")]
    Bioes,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Tagging")]
pub(crate) struct TagOptions {
    /// How sentences are written [default: columns]
    #[arg(long, value_name = "F")]
    pub(crate) format: Option<FormatName>,
    /// Features of the columns, in CRF++'s template language [default: a built-in set]
    #[arg(long, value_name = "FILE")]
    pub(crate) template: Option<PathBuf>,
    /// Leave out features that fewer tokens than this have (tag), rules that fewer than so many nodes of the trees have
    /// (parse) [default: 1]
    #[arg(long, value_name = "N", value_parser = count_from_one)]
    pub(crate) min_count: Option<u32>,
    /// On how many tags before it a tag depends, 1 or 2 [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) order: Option<u8>,
    /// Never tag B right after tag A; may be given several times
    #[arg(long, value_name = "A,B", allow_hyphen_values = true)]
    pub(crate) forbid: Vec<String>,
    /// Only sequences of tags that are valid in this scheme
    #[arg(long, value_name = "S", ignore_case = true)]
    pub(crate) scheme: Option<SchemeName>,
    /// What it costs to miss a tag; may be given several times [default: 1]
    #[arg(long, value_name = "TAG=W", value_parser = tag_cost, allow_hyphen_values = true)]
    pub(crate) tag_cost: Vec<(String, f64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TerminalsName {
    /// Tags, which the input has: words do not matter
    Tags,
    /// Words; those that are rare or new count by their class, such as capitals, digits and endings
    Words,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FeaturesName {
    /// One a rule of the grammar
    Rules,
    /// Also the length of each phrase, and the first, last and neighbouring terminals
    Spans,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BinariseName {
    /// From left to right
    Right,
    /// From the head of a phrase outward
    Head,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Parsing")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that is given or not")]
pub(crate) struct ParseOptions {
    /// What sentences are made of [default: tags]
    #[arg(long, value_name = "T")]
    pub(crate) terminals: Option<TerminalsName>,
    /// What of a tree is weighed [default: rules]
    #[arg(long, value_name = "F")]
    pub(crate) features: Option<FeaturesName>,
    /// Tell phrases with the same label apart by the label above them
    #[arg(long)]
    pub(crate) parent_annotation: bool,
    /// How a rule with many children becomes rules with two [default: right]
    #[arg(long, value_name = "B")]
    pub(crate) binarise: Option<BinariseName>,
    /// The next child of such a rule depends on so many before it, and rules that were never seen become possible
    /// [default: on all, so that there are just the rules that were seen]
    #[arg(long, value_name = "N", value_parser = markov, allow_negative_numbers = true)]
    pub(crate) markov: Option<usize>,
    /// Keep empty elements (tagged -NONE-) in the trees [default: they are taken out]
    #[arg(long)]
    pub(crate) keep_empty: bool,
    /// Keep functions and numbers behind labels, as in NP-SBJ-1 [default: they are taken off]
    #[arg(long)]
    pub(crate) keep_functions: bool,
    /// Leave sentences with more words out of training and of --heldout [default: none]
    #[arg(long, value_name = "N", value_parser = count_from_one)]
    pub(crate) max_words: Option<u32>,
    /// Where --min-count or --max-span leave no way to a tree, learn the nearest one that there is [default: such trees
    /// are told and left out]
    #[arg(long)]
    pub(crate) fallback: bool,
    /// Only phrases of at most so many words, but for those at the beginning or the end of a sentence: less memory and
    /// time, and some trees become impossible [default: all]
    #[arg(long, value_name = "N", value_parser = count_from_one)]
    pub(crate) max_span: Option<u32>,
    /// Where the loss does not add up over brackets (--loss f1, --rescaling slack, --penalty quadratic): the worst tree of
    /// sentences of at most so many words is found exactly, that of longer ones searched for [default: 40]
    #[arg(long, value_name = "N")]
    pub(crate) exact_words: Option<u32>,
    /// With --terminals words: words that are seen fewer times count by their class [default: 2]
    #[arg(long, value_name = "N", value_parser = count_from_one)]
    pub(crate) rare_below: Option<u32>,
}

/// `--pairs`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PairsName {
    None,
    Tree,
    Top(usize),
    All,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Label sets")]
pub(crate) struct MultilabelOptions {
    /// Which pairs of labels have a weight: none; tree, those of a tree that tell most of each other; top:N, the N that tell
    /// most; all. Beyond trees the best set is searched for, and not always proven best [default: none]
    #[arg(long, value_name = "none|tree|top:N|all", value_parser = pairs)]
    pub(crate) pairs: Option<PairsName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BasisName {
    /// Drawn from the vectors of the examples
    Random,
    /// Rather those that are far from all chosen before (incomplete Cholesky with random pivots)
    Pivoted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SamplingName {
    /// One sample for all cuts, --sample-size examples far from each other: training in coordinates of what they span
    Pivoted,
    /// One sample for all cuts, which grows by --sample-size examples a cut, and a line search
    Growing,
    /// With equal probabilities for each cut anew, as in Yu and Joachims 2008
    Uniform,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Kernel")]
pub(crate) struct KernelOptions {
    /// linear, rbf:gamma=G, poly:degree=D,gamma=G,coef0=R or sigmoid:gamma=G,coef0=R in the place of inner products of the
    /// examples' vectors (tag: of the tokens'); G may be `scale` or `auto`, as in scikit-learn [default: linear; degree=3,
    /// gamma=scale, coef0=0]
    #[arg(long, value_name = "K", value_parser = kernel)]
    pub(crate) kernel: Option<Specification>,
    /// Train on K coordinates that come near the kernel: any solver, fast, and not exact
    #[arg(long, value_name = "K", value_parser = at_least_one)]
    pub(crate) low_rank: Option<usize>,
    /// How the K basis vectors of --low-rank are chosen [default: pivoted]
    #[arg(long, value_name = "B")]
    pub(crate) basis: Option<BasisName>,
    /// Memory for kernel values that may be needed again, in MB [default: 1000]
    #[arg(long, value_name = "MB")]
    pub(crate) kernel_cache: Option<usize>,
    /// R: examples that cuts of sampled-linear and sampled-constant are made of; the latter trains on 64 R examples in all
    /// [default: 400; 1000 for sampled-constant with --sampling uniform]
    #[arg(long, value_name = "R", value_parser = at_least_one)]
    pub(crate) sample_size: Option<usize>,
    /// How sampled-linear and sampled-constant draw [default: pivoted where there are over 10,000 examples and 2 R of
    /// them span the kernel but for 0.1 %, else growing; uniform for sampled-constant of tags and taxonomies]
    #[arg(long, value_name = "S")]
    pub(crate) sampling: Option<SamplingName>,
    /// Print by how much the objective of sampled cuts may be above its minimum, with probability 1 - DELTA
    /// (--sampling uniform)
    #[arg(long, value_name = "DELTA", value_parser = probability, allow_negative_numbers = true)]
    pub(crate) bound: Option<f64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Solver")]
pub(crate) struct SolverOptions {
    /// The algorithm [default: auto]
    #[arg(long, value_name = "S", value_parser = solver_kind())]
    pub(crate) solver: Option<SolverKind>,
    /// Number of groups of group-slack
    #[arg(long, value_name = "P", value_parser = at_least_one)]
    pub(crate) groups: Option<usize>,
    /// Outputs kept per example to build cuts from, or `off` (one-slack, group-slack) [default: off for classes, whose
    /// oracle is as fast as a cache; 10 for all else]
    #[arg(long, value_name = "F", value_parser = cache)]
    pub(crate) cache: Option<u16>,
    /// Search between the best point and the QP's (one-slack, group-slack) [default: on]
    #[arg(long, value_name = "on|off", hide_possible_values = true)]
    pub(crate) line_search: Option<Switch>,
    /// Cuts kept at most; beyond it old ones are merged (one-slack, group-slack) [default: 1000, or 10 a group]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) max_cuts: Option<usize>,
    /// When n-slack solves its dual again [default: batch]
    #[arg(long, value_name = "U")]
    pub(crate) update: Option<UpdateName>,
    /// Number of new cuts that --update batch waits for (n-slack) [default: 100]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) batch: Option<usize>,
    /// What it costs where factors disagree, in units of the loss (gdmm, soft-bcfw; gdmm on loops counts it for more where C is large)
    /// [default: 1]
    #[arg(long, value_name = "RHO", value_parser = positive, allow_negative_numbers = true)]
    pub(crate) rho: Option<f64>,
    /// Step of the multipliers (gdmm) [default: 1]
    #[arg(long, value_name = "ETA", value_parser = positive, allow_negative_numbers = true)]
    pub(crate) eta: Option<f64>,
    /// Parts of a variable's labels, of which a visit searches one; 1 searches all labels of all factors, one by one (gdmm,
    /// soft-bcfw) [default: one for every 64 labels; of more than 128 tags all that have weights are searched]
    #[arg(long, value_name = "NU", value_parser = at_least_one)]
    pub(crate) fmo_parts: Option<usize>,
    /// How gdmm and soft-bcfw move masses between two steps of the multipliers [default: turns; soft-bcfw and multilabel:
    /// blocks]
    #[arg(long, value_name = "METHOD")]
    pub(crate) inner: Option<InnerName>,
    /// Ends only when the gap that is asked for is proven (gdmm, soft-bcfw)
    #[arg(long)]
    pub(crate) certify: bool,
    /// Threads; the result does not depend on their number [default: one a core]
    #[arg(long, value_name = "T", value_parser = threads)]
    pub(crate) threads: Option<usize>,
    /// Seed of whatever a solver draws at random; the same seed gives the same model [default: 0]
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Start from the weights of this model, which must have the same labels (parse: rules, graph: domains or templates,
    /// align: letters in common); not with gdmm and soft-bcfw
    #[arg(long, value_name = "MODEL")]
    pub(crate) warm_start: Option<PathBuf>,
}

impl SolverOptions {
    /// Is a solver asked for whose cuts are made of samples?
    pub(crate) fn is_sampled(&self) -> bool {
        matches!(self.solver, Some(SolverKind::SampledLinear | SolverKind::SampledConstant))
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Stopping")]
pub(crate) struct StoppingOptions {
    /// Stop when the duality gap is at most C*E (--penalty hard: E times the objective) [default: 0.01 times the
    /// largest loss; tag, parse, align, multilabel, graph: the mean of the examples' largest losses]
    #[arg(short, long, value_name = "E", value_parser = positive, allow_negative_numbers = true)]
    pub(crate) epsilon: Option<f64>,
    /// Stop when the gap is at most R times the objective, instead
    #[arg(long, value_name = "R", value_parser = positive, allow_negative_numbers = true, conflicts_with = "epsilon")]
    pub(crate) relative_gap: Option<f64>,
    /// Stop after that many seconds of training (with a path: at each C) and keep the best model so far; a last look at all
    /// examples, for its objective and its loss, comes on top
    #[arg(long, value_name = "S", value_parser = positive, allow_negative_numbers = true)]
    pub(crate) max_seconds: Option<f64>,
    /// Stop after that many passes over the data (with a path: at each C) and keep the best model so far [default: gdmm
    /// without --certify: 200]
    #[arg(long, value_name = "P", value_parser = positive, allow_negative_numbers = true)]
    pub(crate) max_passes: Option<f64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Validation")]
pub(crate) struct ValidationOptions {
    /// Labelled examples on which the loss is measured once a pass as training goes
    #[arg(long, value_name = "FILE")]
    pub(crate) heldout: Option<PathBuf>,
    /// Save the model with the least loss on --heldout, with a path that of the best C
    #[arg(long, requires = "heldout", conflicts_with = "folds")]
    pub(crate) keep_best: bool,
    /// Cross-validate each C on K parts of the data, then train on all of them with the best C
    #[arg(long, value_name = "K", value_parser = folds, conflicts_with = "heldout")]
    pub(crate) folds: Option<usize>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Checkpoints")]
pub(crate) struct CheckpointOptions {
    /// Save the state of training here every few seconds; removed when training is done
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Seconds between checkpoints, more where saving takes long; 0: after every round [default: 5]
    #[arg(long, value_name = "S", value_parser = seconds, allow_negative_numbers = true, requires = "checkpoint")]
    pub(crate) checkpoint_every: Option<f64>,
    /// Go on from the checkpoint, if there is one
    #[arg(long, requires = "checkpoint")]
    pub(crate) resume: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputOptions {
    /// Where to save the model
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: PathBuf,
    /// Write one JSON object per round
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Print the summary as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress on standard error
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
