//! Parsers in files: the same model comes back and parses as before, and whatever is none is refused.

use std::fs;
use std::path::Path;

use maxmargin::data::dictionary::Dictionary;
use maxmargin::data::input::Input;
use maxmargin::data::trees::{Extracted, Lexicon, Shape, Strip, Terminals, Treebank, grammar, read};
use maxmargin::model::{Model, Parser, Saved, Summary, Tagger, TaskKind};
use maxmargin::problem::{Formulation, Problem};
use maxmargin::solver::bcfw::Bcfw;
use maxmargin::solver::{Certificate, Settings, Solver, Status};
use maxmargin::task::Task;
use maxmargin::tasks::parsing::{Grammar, Parse, ParseFeatures, ParseScratch, ParseSettings, Parsing};
use maxmargin::weights::Weights;

const TEXT: &str = "\
(S (NP (D the) (N cat)) (VP (V sees) (NP (D a) (N dog))))
(S (NP (D the) (N dog)) (VP (V sees) (NP (NP (D a) (N cat)) (PP (P with) (NP (D the) (N eyes))))))
(S (NP (D the) (N dog)) (VP (V sees) (NP (D a) (N cat)) (PP (P with) (NP (N eyes)))))
(FRAG (NP (N cats)))
";

fn bank(text: &str) -> Treebank {
    read(Input::new("trees", text.as_bytes()).unwrap(), Strip::ALL).unwrap()
}

fn trained(text: &str, shape: Shape, settings: ParseSettings) -> Parser {
    let bank = bank(text);
    let Extracted { grammar, lexicon, derivations } = grammar(&bank, shape).unwrap();
    let task = Parsing::new(grammar, settings).unwrap();
    let reading = maxmargin::data::trees::Reading::new(task.grammar(), lexicon.as_ref());
    let inputs: Vec<Vec<u32>> =
        bank.trees.iter().map(|tree| reading.terminals(&bank.labels, &bank.words, tree)).collect();
    let inputs: Vec<&[u32]> = inputs.iter().map(Vec::as_slice).collect();
    let outputs: Vec<Parse> = derivations.into_iter().map(|d| task.parse(d.unwrap()).unwrap()).collect();
    let formulation = Formulation { c: 20.0, ..Formulation::default() };
    let problem = Problem::new(&task, &inputs, &outputs, None, formulation).unwrap();
    let solution = Bcfw::default().solve(&problem, &Settings::default(), &mut ()).unwrap();
    let report = &solution.report;
    let summary = Summary {
        solver: report.solver.to_owned(),
        status: Status::Converged,
        certificate: Certificate::Exact,
        examples: outputs.len() as u64,
        c: 20.0,
        epsilon: 0.01,
        primal: report.primal,
        primal_error: report.primal_error,
        dual: report.dual,
        gap: report.gap,
        rounds: report.rounds,
        passes: report.passes,
        train_loss: 0.0,
    };
    let parser = Parser {
        shape,
        strip: Strip::ALL,
        grammar: task.grammar().clone(),
        lexicon,
        settings,
        formulation,
        data_checksum: bank.checksum,
        summary,
        weights: solution.weights,
    };
    parser.check().unwrap();
    parser
}

fn words() -> Shape {
    Shape { terminals: Terminals::Words { rare_below: 2 }, ..Shape::default() }
}

fn spans() -> ParseSettings {
    ParseSettings { features: ParseFeatures::Spans, max_span: Some(9), ..ParseSettings::default() }
}

/// Parsers of every kind.
fn all() -> Vec<Parser> {
    vec![
        trained(TEXT, Shape::default(), ParseSettings::default()),
        trained(TEXT, Shape { parent_annotation: true, markov: Some(1), ..Shape::default() }, spans()),
        trained(TEXT, words(), ParseSettings::default()),
        trained(TEXT, words(), spans()),
    ]
}

fn back(parser: &Parser) -> Parser {
    match Saved::from_bytes(&parser.to_bytes().unwrap()).unwrap() {
        Saved::Parser(parser) => *parser,
        other => panic!("a parser, not {:?}", other.task()),
    }
}

#[test]
fn parsers_come_back_and_parse_as_before() {
    let bank = bank(TEXT);
    for parser in all() {
        let loaded = back(&parser);
        assert_eq!(loaded, parser);
        assert_eq!(loaded.to_bytes().unwrap(), parser.to_bytes().unwrap());
        assert_eq!(Saved::from_bytes(&parser.to_bytes().unwrap()).unwrap().task(), TaskKind::Parse);
        let (ours, theirs) = (parser.task().unwrap(), loaded.task().unwrap());
        let mut scratch = ParseScratch::default();
        for tree in &bank.trees {
            let x = loaded.reading().terminals(&bank.labels, &bank.words, tree);
            assert_eq!(x, parser.reading().terminals(&bank.labels, &bank.words, tree));
            let (a, b) =
                (ours.decode(&parser.weights, &x, &mut scratch), theirs.decode(&loaded.weights, &x, &mut scratch));
            assert_eq!((a.score.to_bits(), a.nodes), (b.score.to_bits(), b.nodes));
            assert!(!a.is_fallback);
        }
    }
}

#[test]
fn weights_find_their_places_in_another_grammar() {
    for parser in all() {
        let task = parser.task().unwrap();
        assert_eq!(parser.weights_over(&task, parser.lexicon.as_ref()), Some(parser.weights.clone()));
    }
    // More trees in another order: the rules have other numbers.
    let more = format!("(S (NP (N dogs)) (VP (V sleep)))\n{TEXT}(X (Y (Z z) (Z z)) (Z z))\n");
    for shape in [Shape::default(), words()] {
        let parser = trained(TEXT, shape, ParseSettings::default());
        let other = trained(&more, shape, ParseSettings::default());
        let task = other.task().unwrap();
        let moved = parser.weights_over(&task, other.lexicon.as_ref()).unwrap();
        let named = |parser: &Parser, task: &Parsing, w: &Weights| {
            let terminal =
                |t: u32| String::from_utf8_lossy(parser.lexicon.as_ref().unwrap().names().name(t)).into_owned();
            let weight = |rule: u32| {
                let at = task.blocks()[0].at(0, task.feature(rule)?);
                Some((parser.grammar.shown(rule, terminal).unwrap(), w.as_slice()[at]))
            };
            (0..parser.grammar.len() as u32).filter_map(weight).collect::<Vec<_>>()
        };
        let before = named(&parser, &parser.task().unwrap(), &parser.weights);
        let after = named(&other, &task, &moved);
        assert!(after.len() > before.len());
        for (rule, weight) in &after {
            let expected = before.iter().find(|(name, _)| name == rule).map_or(0.0, |(_, weight)| *weight);
            assert_eq!(*weight, expected, "{rule}");
        }
    }
    let strange = trained("(A (B b) (C c))\n(A (C c) (B b))\n", Shape::default(), ParseSettings::default());
    let task = strange.task().unwrap();
    assert_eq!(trained(TEXT, Shape::default(), ParseSettings::default()).weights_over(&task, None), None);
}

#[test]
fn no_byte_may_change_and_none_may_be_missing() {
    for parser in [&all()[1], &all()[2]] {
        let bytes = parser.to_bytes().unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(Saved::from_bytes(&damaged).is_err(), "byte {at}");
            if at % 7 == 0 {
                assert!(Saved::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
            }
        }
        assert!(Model::from_bytes(&bytes).unwrap_err().to_string().contains("of the task parse"));
    }
}

/// Changes the record in a file and mends its checksum: damage that only a reader of the content can see.
fn with_record(bytes: &[u8], change: &dyn Fn(String) -> String) -> Vec<u8> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let tensors = &bytes[8 + length..];
    let notes = &mut header["__metadata__"];
    let record = change(notes["model"].as_str().unwrap().to_owned());
    let crc = crc32fast::hash(&[record.as_bytes(), tensors].concat());
    notes["crc32"] = format!("{crc:08x}").into();
    notes["model"] = record.into();
    // The version comes first in our files.
    let (version, crc32, model) = (&notes["maxmargin"], &notes["crc32"], &notes["model"]);
    let metadata = format!(r#"{{"maxmargin":{version},"crc32":{crc32},"model":{model}}}"#);
    let rest: Vec<String> = header
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| *name != "__metadata__")
        .map(|(name, info)| format!("{name:?}:{info}"))
        .collect();
    let header = format!(r#"{{"__metadata__":{metadata},{}}}"#, rest.join(","));
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), tensors].concat()
}

#[test]
fn records_that_do_not_fit_are_refused() {
    let parser = &all()[2];
    let bytes = parser.to_bytes().unwrap();
    assert!(Saved::from_bytes(&with_record(&bytes, &|record| record)).is_ok());
    let refused = |from: &str, to: &str, word: &str| {
        let change = |record: String| {
            assert!(record.contains(from), "{from} in {record}");
            record.replace(from, to)
        };
        let error = Saved::from_bytes(&with_record(&bytes, &change)).unwrap_err().to_string();
        assert!(error.contains(word), "{from} -> {to}: {error}");
    };
    let parts = parser.grammar.parts();
    let (symbols, phrases, tags) = (parts.symbols.len(), parts.labels.len(), parts.tags);
    refused(&format!("\"symbols\":{symbols}"), "\"symbols\":18446744073709551615", "names where");
    refused(&format!("\"phrases\":{phrases}"), "\"phrases\":0", "names where");
    refused(&format!("\"tags\":{tags}"), "\"tags\":4294967295", "symbols that are none");
    refused(&format!("\"longest\":{}", parts.longest), "\"longest\":-1", "damaged");
    refused(&format!("\"terminals\":{}", parts.terminals), "\"terminals\":4294967295", "names where");
    refused("\"lexicon\":{", "\"lexicon\":null,\"other\":{", "weights where the grammar has");
    refused("\"task\":\"parse\"", "\"task\":\"tag\"", "damaged");
}

#[test]
fn what_does_not_fit_is_refused() {
    let good = trained(TEXT, words(), ParseSettings::default());
    let refused = |what: &str, change: &dyn Fn(&mut Parser)| {
        let mut bad = good.clone();
        change(&mut bad);
        let message = bad.to_bytes().expect_err(what).to_string();
        assert!(message.contains("not a valid model"), "{what}: {message}");
    };
    refused("a weight that is none", &|p| p.weights.as_mut_slice()[3] = f64::NAN);
    refused("too few weights", &|p| p.weights = Weights::zeros(p.weights.len() - 1));
    refused("too many weights", &|p| p.weights = Weights::zeros(p.weights.len() + 1));
    refused("no C", &|p| p.formulation.c = 0.0);
    refused("a loss scale that is none", &|p| p.formulation.loss_scale = f64::INFINITY);
    refused("no lexicon", &|p| p.lexicon = None);
    refused("another lexicon", &|p| {
        let mut names = Dictionary::new();
        names.intern(b"word").unwrap();
        p.lexicon = Lexicon::from_names(names, 1).ok();
        if p.lexicon.is_none() {
            p.formulation.c = -1.0;
        }
    });
    refused("weights of other features", &|p| p.settings.features = ParseFeatures::Spans);
    refused("a name with a line end", &|p| {
        let mut parts = p.grammar.parts().clone();
        parts.symbols[0].push('\n');
        p.grammar = Grammar::new(parts).unwrap();
    });
}

#[test]
fn models_of_other_tasks_are_told_apart_and_older_files_still_load() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.mm");
    let parser = &all()[0];
    parser.save(&path).unwrap();
    assert_eq!(Parser::load(&path).unwrap(), *parser);
    let error = Tagger::load(&path).unwrap_err().to_string();
    assert!(error.contains("p.mm: a model of the task parse, not of tags"), "{error}");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/model");
    let error = Parser::load(corpus.join("good-binary")).unwrap_err().to_string();
    assert!(error.contains("a model of the task binary, not of trees"), "{error}");
    for name in ["good-binary", "good-multiclass", "good-table"] {
        assert!(Model::load(corpus.join(name)).is_ok(), "{name}");
    }
    // Written by the first version with this task; whatever becomes of the format, it must stay readable.
    let kept = fs::read(corpus.join("good-parser")).unwrap();
    let Saved::Parser(kept) = Saved::from_bytes(&kept).unwrap() else { panic!("a parser") };
    assert!(kept.lexicon.is_some() && kept.task().unwrap().spans().is_some() && kept.grammar.len() > 10);
}
