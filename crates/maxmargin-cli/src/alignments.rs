//! The task `align` in the program.

pub(crate) mod evaluate;
pub(crate) mod inspect;
pub(crate) mod predict;
mod prior;
pub(crate) mod train;

use maxmargin::data::alignments::{Alphabets, Record, Records, Strangers};
use maxmargin::inference::align::{Reach, bytes};
use maxmargin::model::PairAligner;
use maxmargin::tasks::alignment::{AlignLoss, Gaps};

use crate::failure::{Failure, Result};
use crate::streams::note;
use crate::text::{count, counted, number};
use crate::{memory, text};

/// The name of a loss, as on the command line.
fn loss_name(loss: AlignLoss) -> &'static str {
    match loss {
        AlignLoss::ZeroOne => "zero-one",
        AlignLoss::Q => "q",
        AlignLoss::Q4 => "q4",
        AlignLoss::Hamming => "hamming",
    }
}

/// What a model aligns, in words.
pub(crate) fn kind(model: &PairAligner) -> String {
    let reach = match model.reach {
        Reach::Local => "local",
        Reach::Global => "global",
    };
    let what = if model.loss == AlignLoss::ZeroOne { "homologues against decoys" } else { "the alignment itself" };
    format!("{reach} alignments, {what}")
}

/// The weights of a model, in words.
pub(crate) fn features(model: &PairAligner) -> String {
    let letters = model.letters.chars().count() as u64;
    let gaps = match model.gaps {
        Gaps::Linear => "linear gaps",
        Gaps::Affine => "affine gaps",
    };
    let marks = match model.marks.chars().count() as u64 {
        0 => String::new(),
        n => format!(", {} of residues: {}", counted(n, "mark"), model.marks),
    };
    let prior = model.prior.as_ref().map_or_else(String::new, |prior| {
        let costs: Vec<String> = prior.gaps.iter().map(|&cost| number(cost)).collect();
        format!("; from {} with gaps of {}, times {}", prior.name, costs.join(" and "), number(prior.factor))
    });
    let tied = match (model.is_tied, model.marks.is_empty()) {
        (false, _) => "",
        (true, true) => "; equal letters share a score, and so do different ones",
        (true, false) => "; equal letters share a score, and so do different ones; likewise marks",
    };
    format!(
        "{} of {}: {}, {gaps}{marks}{prior}{tied}",
        counted(letters * letters, "pair"),
        counted(letters, "letter"),
        model.letters
    )
}

/// Can all records be read with these letters and marks? Tells about letters that are not known.
fn check_letters(name: &str, data: &Records, alphabets: &Alphabets) -> Result<()> {
    for (i, record) in data.records.iter().enumerate() {
        alphabets.check(record).map_err(|what| Failure::Data(format!("{name}:{}: {what}", data.line(i))))?;
    }
    Ok(())
}

/// Tells about residues whose letter has no weights; refuses where these are most of them.
fn tell_strangers(name: &str, strangers: Strangers, alphabets: &Alphabets) -> Result<()> {
    let Strangers { residues, unknown } = strangers;
    if unknown == 0 {
        return Ok(());
    }
    let letters: String = alphabets.letters.letters().iter().collect();
    let what = format!("{} of {} are not among the letters {letters}", count(unknown), counted(residues, "residue"));
    if 2 * unknown > residues {
        return Err(Failure::Data(format!("{name}: {what}: is this the right alphabet?")));
    }
    note(&format!("{name}: {what}; they match with a weight of 0"));
    Ok(())
}

/// What the largest pairs need, of which each thread has one at a time: a refusal where that is more than there is.
fn check_memory(name: &str, data: &Records, threads: usize) -> Result<()> {
    let residues = |text: &str| text.chars().count();
    let largest = |record: &Record| {
        let longest = record.candidates.iter().map(|z| residues(&z.letters)).max().unwrap_or(0);
        bytes(residues(&record.x.letters), longest)
    };
    let mut needs: Vec<(f64, u64)> =
        data.records.iter().enumerate().map(|(i, record)| (largest(record), data.line(i))).collect();
    needs.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let need: f64 = needs.iter().take(threads).map(|pair| pair.0).sum();
    match (memory::lacking(need), needs.first()) {
        (Some(free), Some((_, line))) => {
            let (need, free) = (text::bytes(need), text::bytes(free));
            let what = format!("the tables of the longest pairs, one in each of {threads} threads, take {need}");
            Err(Failure::Data(format!(
                "{name}:{line}: {what}, and {free} are free: take fewer --threads, or shorter sequences"
            )))
        }
        _ => Ok(()),
    }
}
