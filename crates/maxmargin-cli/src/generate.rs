//! `maxmargin generate`

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use maxmargin::data::output::Output;
use maxmargin::data::synthetic::{
    self, AlignSizes, GraphSizes, LabelSetSizes, ParseSizes, Sizes, TagSizes, TaxonomySizes,
};
use maxmargin::model::TaskKind;

use crate::failure::{Failure, Result};
use crate::options::Task;
use crate::{paths, streams};

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The kind of data
    task: Task,
    /// Which two classes (binary)
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Number of examples
    #[arg(long, value_name = "N")]
    examples: u64,
    /// The same seed gives the same bytes
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Number of features (binary, multiclass, taxonomy, multilabel, graph) [default: 20; taxonomy: 50; multilabel: 100; graph:
    /// 8 of each cell]
    #[arg(long, value_name = "D")]
    features: Option<u32>,
    /// Number of classes (multiclass) [default: 3]
    #[arg(long, value_name = "K")]
    classes: Option<u32>,
    /// Features that are not zero in each example (binary, multiclass, taxonomy, multilabel) [default: all; multilabel: 40]
    #[arg(long, value_name = "N")]
    nonzeros: Option<u32>,
    /// Where to write the tree of the classes (taxonomy)
    #[arg(long, value_name = "FILE")]
    taxonomy: Option<PathBuf>,
    /// From the root to the leaves, which are the classes (taxonomy) [default: 3]
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
    /// Children of each inner node (taxonomy) [default: 3]
    #[arg(long, value_name = "N")]
    branching: Option<u32>,
    /// Number of tags (tag, parse) [default: 12, 20]
    #[arg(long, value_name = "K")]
    tags: Option<u32>,
    /// Number of words of each tag (tag, parse) [default: 2000, 50]
    #[arg(long, value_name = "N")]
    words: Option<u32>,
    /// Mean number of tokens of a sentence (tag), most words of one (parse), residues of a sequence (align) [default: 15, 15,
    /// 50]
    #[arg(long, value_name = "N")]
    length: Option<u32>,
    /// Number of rules of the hidden grammar (parse) [default: 200]
    #[arg(long, value_name = "N")]
    rules: Option<u32>,
    /// Number of labels of phrases (parse) [default: 8]
    #[arg(long, value_name = "N")]
    phrases: Option<u32>,
    /// Number of labels (multilabel, graph) [default: 20, 6]
    #[arg(long, value_name = "K")]
    labels: Option<u32>,
    /// Mean number of labels of an example (multilabel) [default: 3]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    cardinality: Option<f64>,
    /// Probability that labels of a group of four depend on each other (multilabel) [default: 0.8]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    correlation: Option<f64>,
    /// Rows of cells of a grid (graph) [default: 20]
    #[arg(long, value_name = "N")]
    height: Option<u32>,
    /// Columns of cells of a grid (graph) [default: 20]
    #[arg(long, value_name = "N")]
    width: Option<u32>,
    /// Number of letters (align) [default: 20]
    #[arg(long, value_name = "K")]
    letters: Option<u32>,
    /// Decoys of each sequence (align) [default: 10]
    #[arg(long, value_name = "N")]
    decoys: Option<u32>,
    /// Operations that lead from a part of a sequence to its homologue (align) [default: 30]
    #[arg(long, value_name = "N")]
    operations: Option<u32>,
    /// Share of operations that keep a residue (align) [default: 0.2]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    matches: Option<f64>,
    /// Share of operations that put a residue in (align); what is left of all replaces one [default: 0.2]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    insertions: Option<f64>,
    /// Share of operations that leave a residue out (align) [default: 0.2]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    deletions: Option<f64>,
    /// Probability that a residue is replaced by the one that a hidden table prefers, else by any (align) [default: 1]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    preference: Option<f64>,
    /// Probability that a label is wrong (binary, multiclass, tag); the standard deviation of the features (taxonomy, multilabel,
    /// graph); of checkers that by which a point is displaced after its class was fixed, 0.02 in the literature [default: 0;
    /// taxonomy: 3; multilabel: 1; graph: 2]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    noise: Option<f64>,
    /// Where to write the data, as plain text [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What the two classes of a binary problem are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// The sides of a hidden hyperplane (the default)
    Hyperplane,
    /// The cells of a board of 4 x 4: two features from -2 to 2, which only a kernel separates
    Checkers,
}

const EXAMPLES: &str = "\
Examples:
  maxmargin generate binary --examples 1000 --seed 1 --noise 0.05 -o train.dat
  maxmargin generate binary --kind checkers --examples 1000000 --noise 0.02 -o board.dat
  maxmargin generate multiclass --examples 100000 --features 5000 --nonzeros 50 --classes 20 | gzip > big.dat.gz
  maxmargin generate tag --examples 10000 --tags 45 --words 5000 -o sentences.txt
  maxmargin generate parse --examples 1000 --rules 500 --length 20 -o trees.mrg
  maxmargin generate multilabel --examples 5000 --labels 50 --cardinality 4 -o sets.dat
  maxmargin generate taxonomy --examples 5000 --depth 4 --branching 5 --taxonomy tree.txt -o classes.dat
  maxmargin generate graph --examples 100 --height 30 --width 30 --labels 4 -o grids.jsonl
  maxmargin generate align --examples 100 --decoys 20 -o homologues.jsonl";

pub(crate) fn run(args: &Args) -> Result<()> {
    check_options(args)?;
    if let Some((taxonomy, output)) = args.taxonomy.as_deref().zip(args.output.as_deref()) {
        paths::refuse_overwriting("--output", output, &[("the taxonomy", Some(taxonomy))])?;
    }
    if args.nonzeros == Some(0) {
        return Err(Failure::Usage("--nonzeros: must be at least 1".to_owned()));
    }
    match &args.output {
        Some(path) => {
            let mut output = Output::create(path)?;
            write(args, &mut output, &path.display().to_string())?;
            Ok(output.finish()?)
        }
        None => write(args, &mut BufWriter::new(streams::Output), "standard output"),
    }
}

/// Refuses sizes of other tasks.
fn check_options(args: &Args) -> Result<()> {
    use Task::{Align, Binary, Graph, Multiclass, Multilabel, Parse, Tag, Taxonomy};
    let is_one_of = |tasks: &[Task]| tasks.contains(&args.task);
    let is_board = args.kind == Some(Kind::Checkers);
    // Whether it is given, the option, and the tasks that have it.
    let options: [(bool, &str, &[Task]); 25] = [
        (args.kind.is_some(), "--kind", &[Binary]),
        (args.features.is_some(), "--features", &[Binary, Multiclass, Taxonomy, Multilabel, Graph]),
        (args.classes.is_some(), "--classes", &[Multiclass]),
        (args.nonzeros.is_some(), "--nonzeros", &[Binary, Multiclass, Taxonomy, Multilabel]),
        (args.taxonomy.is_some(), "--taxonomy", &[Taxonomy]),
        (args.depth.is_some(), "--depth", &[Taxonomy]),
        (args.branching.is_some(), "--branching", &[Taxonomy]),
        (args.tags.is_some(), "--tags", &[Tag, Parse]),
        (args.words.is_some(), "--words", &[Tag, Parse]),
        (args.length.is_some(), "--length", &[Tag, Parse, Align]),
        (args.rules.is_some(), "--rules", &[Parse]),
        (args.phrases.is_some(), "--phrases", &[Parse]),
        (args.labels.is_some(), "--labels", &[Multilabel, Graph]),
        (args.cardinality.is_some(), "--cardinality", &[Multilabel]),
        (args.correlation.is_some(), "--correlation", &[Multilabel]),
        (args.height.is_some(), "--height", &[Graph]),
        (args.width.is_some(), "--width", &[Graph]),
        (args.letters.is_some(), "--letters", &[Align]),
        (args.decoys.is_some(), "--decoys", &[Align]),
        (args.operations.is_some(), "--operations", &[Align]),
        (args.matches.is_some(), "--matches", &[Align]),
        (args.insertions.is_some(), "--insertions", &[Align]),
        (args.deletions.is_some(), "--deletions", &[Align]),
        (args.preference.is_some(), "--preference", &[Align]),
        (args.noise.is_some(), "--noise", &[Binary, Multiclass, Taxonomy, Tag, Multilabel, Graph]),
    ];
    for (is_given, option, tasks) in options {
        if is_given && !is_one_of(tasks) {
            let way_out = match (option, args.task) {
                ("--classes", Binary) => "; binary has two",
                ("--classes", Taxonomy) => "; take --depth and --branching",
                ("--classes", Tag | Parse) => "; take --tags",
                ("--classes", Multilabel | Graph) => "; take --labels",
                _ => "",
            };
            let names: Vec<String> = tasks.iter().map(|&task| TaskKind::from(task).to_string()).collect();
            let of = match names.as_slice() {
                [one] => format!("the task {one}"),
                [others @ .., last] => format!("the tasks {} and {last}", others.join(", ")),
                [] => String::new(),
            };
            return Err(Failure::Usage(format!("{option}: belongs to {of}{way_out}")));
        }
    }
    if args.task == Taxonomy && args.taxonomy.is_none() {
        return Err(Failure::Usage("--taxonomy: say where the tree of the classes is to be written".to_owned()));
    }
    for (is_given, what) in [
        (args.features.is_some(), "--features: checkers have two"),
        (args.nonzeros.is_some(), "--nonzeros: checkers have two features, none of them left out"),
    ] {
        if is_board && is_given {
            return Err(Failure::Usage(what.to_owned()));
        }
    }
    Ok(())
}

fn write(args: &Args, out: &mut impl Write, name: &str) -> Result<()> {
    if args.task == Task::Taxonomy {
        let default = TaxonomySizes::default();
        let sizes = TaxonomySizes {
            examples: args.examples,
            features: args.features.unwrap_or(default.features),
            nonzeros: args.nonzeros.unwrap_or(default.nonzeros),
            depth: args.depth.unwrap_or(default.depth),
            branching: args.branching.unwrap_or(default.branching),
            noise: args.noise.unwrap_or(default.noise),
        };
        sizes.check()?;
        if let Some(path) = &args.taxonomy {
            let mut tree = Output::create(path)?;
            synthetic::taxonomy_tree(&sizes, &mut tree, &path.display().to_string())?;
            tree.finish()?;
        }
        return Ok(synthetic::taxonomy(&sizes, args.seed, out, name)?);
    }
    if args.task == Task::Tag {
        let default = TagSizes::default();
        let sizes = TagSizes {
            examples: args.examples,
            tags: args.tags.unwrap_or(default.tags),
            words: args.words.unwrap_or(default.words),
            length: args.length.unwrap_or(default.length),
            noise: args.noise.unwrap_or(default.noise),
        };
        return Ok(synthetic::tag(&sizes, args.seed, out, name)?);
    }
    if args.task == Task::Parse {
        let default = ParseSizes::default();
        let sizes = ParseSizes {
            examples: args.examples,
            rules: args.rules.unwrap_or(default.rules),
            tags: args.tags.unwrap_or(default.tags),
            phrases: args.phrases.unwrap_or(default.phrases),
            length: args.length.unwrap_or(default.length),
            words: args.words.unwrap_or(default.words),
        };
        return Ok(synthetic::parse(&sizes, args.seed, out, name)?);
    }
    if args.task == Task::Multilabel {
        let default = LabelSetSizes::default();
        let features = args.features.unwrap_or(default.features);
        let sizes = LabelSetSizes {
            examples: args.examples,
            features,
            nonzeros: args.nonzeros.unwrap_or(default.nonzeros.min(features)),
            labels: args.labels.unwrap_or(default.labels),
            cardinality: args.cardinality.unwrap_or(default.cardinality),
            correlation: args.correlation.unwrap_or(default.correlation),
            noise: args.noise.unwrap_or(default.noise),
        };
        return Ok(synthetic::multilabel(&sizes, args.seed, out, name)?);
    }
    if args.task == Task::Graph {
        let default = GraphSizes::default();
        let sizes = GraphSizes {
            examples: args.examples,
            height: args.height.unwrap_or(default.height),
            width: args.width.unwrap_or(default.width),
            labels: args.labels.unwrap_or(default.labels),
            features: args.features.unwrap_or(default.features),
            noise: args.noise.unwrap_or(default.noise),
        };
        return Ok(synthetic::graph(&sizes, args.seed, out, name)?);
    }
    if args.task == Task::Align {
        let default = AlignSizes::default();
        let length = args.length.unwrap_or(default.length);
        let sizes = AlignSizes {
            examples: args.examples,
            length,
            letters: args.letters.unwrap_or(default.letters),
            decoys: args.decoys.unwrap_or(default.decoys),
            operations: args.operations.unwrap_or(default.operations.min(length)),
            matches: args.matches.unwrap_or(default.matches),
            insertions: args.insertions.unwrap_or(default.insertions),
            deletions: args.deletions.unwrap_or(default.deletions),
            preference: args.preference.unwrap_or(default.preference),
        };
        return Ok(synthetic::align(&sizes, args.seed, out, name)?);
    }
    if args.kind == Some(Kind::Checkers) {
        return Ok(synthetic::checkers(args.examples, args.noise.unwrap_or(0.0), args.seed, out, name)?);
    }
    let features = args.features.unwrap_or(Sizes::default().features);
    let sizes = Sizes {
        examples: args.examples,
        features,
        classes: args.classes.unwrap_or(Sizes::default().classes),
        nonzeros: args.nonzeros.unwrap_or(features),
        noise: args.noise.unwrap_or(Sizes::default().noise),
    };
    let write = if args.task == Task::Binary { synthetic::binary } else { synthetic::multiclass };
    Ok(write(&sizes, args.seed, out, name)?)
}
