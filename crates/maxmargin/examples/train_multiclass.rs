//! From a file to a saved model: read, train, look at the certificate, predict, save, load.
//!
//! `cargo run --release --example train_multiclass [TRAIN_FILE] [TEST_FILE] [MODEL]`; without arguments it takes the
//! digits in demo/ and keeps the model in memory only.

use std::ops::ControlFlow;

use maxmargin::Result;
use maxmargin::data::input::Input;
use maxmargin::data::labels::{Classes, Lookup};
use maxmargin::data::svmlight::{self, LabelRule};
use maxmargin::model::{Loss, Model, Summary, TaskKind};
use maxmargin::parallel::Pool;
use maxmargin::problem::{Formulation, Problem};
use maxmargin::solver::cutting_plane::CuttingPlane;
use maxmargin::solver::{Progress, Settings, Solver, Stop};
use maxmargin::tasks::multiclass::Multiclass;

const TRAIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../demo/digits.train.gz");
const TEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../demo/digits.test.gz");

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize, otherwise: &str| arguments.get(at).cloned().unwrap_or_else(|| otherwise.to_owned());
    let (train, test) = (argument(0, TRAIN), argument(1, TEST));
    let pool = Pool::new(0)?;

    // The examples, and the classes that their labels make.
    let data = svmlight::read(Input::open(&train)?, LabelRule::Required, &pool)?;
    let classes = Classes::multiclass(&data, &train)?;
    let features = data.matrix.columns();
    println!("{} examples, {features} features, {} classes", data.len(), classes.words.len());

    // The task, and the problem: its loss, C and the rest of the formulation.
    let loss = Loss::ZeroOne;
    let task = Multiclass::new(features, loss.costs(&classes.words)?);
    let formulation = Formulation { c: 0.1 * data.len() as f64, ..Formulation::default() };
    let rows = data.matrix.views();
    let problem = Problem::new(&task, &rows, &classes.outputs, None, formulation)?;

    // Training, watched. The observer may stop it: ControlFlow::Break(()).
    let settings = Settings { stop: Some(Stop::RelativeGap(0.001)), threads: 0, ..Settings::default() };
    let mut watch = |round: &Progress| {
        if let (Some(gap), true) = (round.gap, round.round.is_multiple_of(20)) {
            println!("round {:3}: gap {gap:.4}, target {:.4}", round.round, round.target);
        }
        ControlFlow::Continue(())
    };
    let solution = CuttingPlane::default().solve(&problem, &settings, &mut watch)?;

    // The certificate: no w has an objective below the dual value.
    let report = &solution.report;
    println!("{:?} after {} rounds, certificate {:?}", report.status, report.rounds, report.certificate);
    println!("objective {:.4}, proven to be at most {:.4} above its minimum", report.primal, report.gap);

    // What prediction needs, in one value that can be saved and loaded.
    let model = Model {
        task: TaskKind::Multiclass,
        labels: classes.words.clone(),
        features,
        bias: 0.0,
        loss,
        formulation,
        data_checksum: data.checksum,
        summary: Summary {
            solver: report.solver.to_owned(),
            status: report.status,
            certificate: report.certificate,
            examples: data.len() as u64,
            c: formulation.c,
            epsilon: report.target / formulation.c,
            primal: report.primal,
            primal_error: report.primal_error,
            dual: report.dual,
            gap: report.gap,
            rounds: report.rounds,
            passes: report.passes,
            train_loss: problem.train_loss(&solution.weights, &pool)?,
        },
        weights: solution.weights.clone(),
        kernel: None,
    };
    let model = if let Some(path) = arguments.get(2) {
        model.save(path)?;
        Model::load(path)?
    } else {
        Model::from_bytes(&model.to_bytes()?)?
    };

    // Prediction on examples that training has not seen.
    let unseen = svmlight::read(Input::open(&test)?, LabelRule::Required, &pool)?;
    let (lookup, predictor) = (Lookup::new(&model.labels), model.predictor());
    let mut scores = Vec::new();
    let is_right = |i: &usize| {
        let truth = unseen.labels.name(*i).and_then(|label| lookup.class(label));
        truth == Some(predictor.predict(unseen.matrix.row(*i), &mut scores))
    };
    let right = (0..unseen.len()).filter(is_right).count();
    println!("{right} of {} test examples are predicted right", unseen.len());
    Ok(())
}
