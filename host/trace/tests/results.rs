//! The results files of studies 1 and 3, written and read again.

use cardiograph_trace::{
    About, Loaded, Operation, OperationKind, ReadOptions, Results, ResultsOf, Trace, read_from,
};

fn loaded(text: &str) -> Loaded {
    read_from("a file", text.as_bytes(), &ReadOptions::default()).unwrap()
}

fn written(trace: &Trace, study: ResultsOf) -> String {
    let mut bytes = Vec::new();
    let results = Results::of(trace, study).unwrap();
    results.write(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Returns the lines from the header on, all of which can be derived from a trace.
fn table(text: &str) -> &str {
    &text[text.find("Test results (us):").unwrap()..]
}

#[test]
fn the_table_of_magod2_comes_back_byte_by_byte() {
    let original = include_str!("../../../tests/data/traces/magod2_results.csv");
    let Loaded::Trace(trace) = loaded(original) else {
        panic!("not a trace");
    };
    let copy = written(&trace, ResultsOf::Magod2);
    assert_eq!(table(&copy), table(original));
    // The counter wraps within this table.
    assert!(table(&copy).contains("4294960000,14704,"));
    let names = |text: &str| -> Vec<String> {
        let lines = text.lines().take_while(|line| *line != ",");
        lines
            .map(|line| line.split(',').next().unwrap().to_string())
            .filter(|name| name != "Text string")
            .collect()
    };
    assert_eq!(names(&copy), names(original));
    for line in [
        "Bytes per line,100",
        "Lines per file,3",
        "Amount of files,2",
        // From 4294920500 to 4294960000 us.
        "Delay between writes,39",
        "Open and close file between writes [0/1],1",
    ] {
        assert!(copy.contains(&format!("\n{line}\n")), "{copy}");
    }
    let Loaded::Trace(again) = loaded(&copy) else {
        panic!("not a trace");
    };
    assert!(again.operations().eq(trace.operations()));
}

/// Two files of 2 KiB and one of 1 KiB, in writes of 512 B, and a read between them.
fn files(lengths: [u64; 3]) -> Trace {
    let mut trace = Trace::new(About::default());
    let mut now_ns = 123;
    for (file, writes) in [4, 2, 4].into_iter().enumerate() {
        for index in 0..=writes {
            let kind = match index == writes {
                true => OperationKind::Read,
                false => OperationKind::Write,
            };
            let operation = Operation {
                kind,
                file: file as u32,
                offset_bytes: index * 512,
                length_bytes: lengths[file],
                start_ns: now_ns,
                end_ns: now_ns + 1_000_003 * (index + 1) + file as u64,
            };
            now_ns = operation.end_ns + 5_000_000;
            trace.push(&operation).unwrap();
        }
    }
    trace
}

#[test]
fn the_library_comparison_keeps_all_digits() {
    let trace = files([512; 3]);
    let text = written(&trace, ResultsOf::LibraryComparison);
    let original = include_str!("../../../tests/data/traces/library_comparison.csv");
    assert_eq!(text.lines().next(), original.lines().next());
    let Loaded::Aggregate(found) = loaded(&text) else {
        panic!("no statistics of files");
    };
    let sums_ns = [10_000_030, 3_000_009 + 2, 10_000_030 + 8];
    let shown: Vec<_> = found
        .rows
        .iter()
        .map(|row| {
            let sum_ns = row.file_size_bytes as f64 * 1e9 / row.throughput_bytes_per_s;
            let extremes = (row.latency_ns_min, row.latency_ns_max);
            (
                row.iteration,
                row.file_size_bytes,
                sum_ns.round() as u64,
                extremes,
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            (1, 2048, sums_ns[0], (1_000_003, 4_000_012)),
            (1, 1024, sums_ns[1], (1_000_004, 2_000_007)),
            (2, 2048, sums_ns[2], (1_000_005, 4_000_014)),
        ]
    );
}

#[test]
fn traces_that_do_not_fit_are_refused_with_a_remedy() {
    for (lengths, study, why) in [
        (
            [512; 3],
            ResultsOf::Magod2,
            "the same number of writes in every file",
        ),
        ([500; 3], ResultsOf::LibraryComparison, "file 0 has 2000 B"),
    ] {
        let error = Results::of(&files(lengths), study)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(why), "{error}");
        assert!(error.contains("use --csv-format cardiograph"), "{error}");
    }
    let empty = Trace::new(About::default());
    let error = Results::of(&empty, ResultsOf::Magod2).err().unwrap();
    assert!(error.to_string().contains("no writes"), "{error}");
}
