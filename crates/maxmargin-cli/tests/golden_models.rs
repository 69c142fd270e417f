//! The same bits on every CPU: the commands of `golden_models.txt` write files, whose checksums are compared with the
//! recorded ones. Solvers, tasks and kernels take part, and so do the generators of the data.
//!
//! A model file tells no times, so that its bytes follow from the commands. They are checked twice: the tensors (the
//! weights), and the whole file, whose header has the objective and the number of rounds.
//!
//! `make golden-record` records the checksums anew, and `make golden-cpus` compares them on emulated CPUs.

mod common;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use common::Folder;

/// Where this environment variable is set, the checksums are recorded and not compared.
const RECORD: &str = "MAXMARGIN_RECORD_GOLDEN";

fn checksum(bytes: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(bytes))
}

/// The file that a command writes.
fn written(command: &str) -> &str {
    let mut words = command.split_whitespace();
    words.find(|word| ["-o", "-m"].contains(word)).unwrap_or_else(|| panic!("{command}: no -o or -m"));
    words.next().unwrap()
}

/// The checksums of a file: of the tensors, where it is a model, and of all bytes.
fn checksums(name: &str, bytes: &[u8]) -> [String; 2] {
    let tensors = if Path::new(name).extension().is_some_and(|e| e == "mm") {
        // The header's length, and the header. See `model/container.rs` in the library.
        let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        checksum(&bytes[8 + header..])
    } else {
        "-".to_owned()
    };
    [tensors, checksum(bytes)]
}

#[test]
fn files_have_the_recorded_bits() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden_models.txt");
    let golden = fs::read_to_string(&path).unwrap();
    let folder = Folder::new();
    let (mut found, mut differences) = (String::new(), String::new());
    for line in golden.lines() {
        if line.starts_with('#') || line.is_empty() {
            writeln!(found, "{line}").unwrap();
            continue;
        }
        let fields: Vec<&str> = line.splitn(3, char::is_whitespace).collect();
        let [tensors, file, command] = fields[..] else { panic!("golden_models.txt: not CRC CRC COMMAND: {line}") };
        folder.run(command).good();
        let name = written(command);
        let now = checksums(name, &folder.read(name));
        writeln!(found, "{} {} {command}", now[0], now[1]).unwrap();
        let what = match (now[0] == tensors, now[1] == file) {
            (true, true) => continue,
            (true, false) if tensors != "-" => "the weights are the same, the header is not",
            (true, _) => "the file differs",
            (false, _) => "the weights differ",
        };
        writeln!(differences, "    maxmargin {command}\n        {what}").unwrap();
    }
    if std::env::var_os(RECORD).is_some() {
        fs::write(&path, found).unwrap();
        return;
    }
    assert!(
        differences.is_empty(),
        "not the bits that were recorded:\n{differences}\
         Where a change of the bits is meant, `make golden-record` records them anew: say in CHANGELOG.md why they changed.\n"
    );
}
