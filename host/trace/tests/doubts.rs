//! Tables whose meaning is uncertain: read with a note, or refused with the options that settle it.

use cardiograph_trace::{Loaded, ReadOptions, read_from};

/// Reads a table with 50 rows, the last of which is a stall.
fn table(header: &str, row: impl Fn(u32, u32) -> String) -> Result<Loaded, String> {
    let latency_us = |at: u32| if at == 49 { 85_012 } else { 800 + at * 7 % 31 };
    let rows: Vec<String> = (0..50)
        .map(|at| row(at * 10_000 + 5, latency_us(at)))
        .collect();
    let text = format!("{header}\n{}\n", rows.join("\n"));
    read_from("my card.csv", text.as_bytes(), &ReadOptions::default())
        .map_err(|why| why.to_string())
}

fn notes(loaded: Result<Loaded, String>) -> String {
    let about = match loaded {
        Ok(Loaded::Trace(trace)) => trace.about,
        Ok(Loaded::Recording(recording)) => recording.trace.about,
        Ok(Loaded::Histogram(histogram)) => histogram.about,
        Ok(Loaded::Aggregate(aggregate)) => aggregate.about,
        Err(why) => panic!("{why}"),
    };
    about.notes.join("\n")
}

#[test]
fn a_duration_that_may_not_be_that_of_writes_is_doubted() {
    for name in [
        "idle_duration_us",
        "erase_latency_us",
        "target_latency_us",
        "log_latency_us",
    ] {
        let notes = notes(table(name, |_, us| us.to_string()));
        assert!(
            notes.contains(&format!("\"{name}\" is read as the latency of writes")),
            "{notes}"
        );
    }
    for name in [
        "latency_us",
        "write_us",
        "t_write_us",
        "sd_write_latency_us",
        "Schreibdauer (µs)",
    ] {
        let notes = notes(table(name, |_, us| us.to_string()));
        assert!(!notes.contains("is read as the latency"), "{name}: {notes}");
    }
    for name in ["peak_latency_us", "latency_ewma_us"] {
        let refused = table(name, |_, us| us.to_string()).err();
        assert!(
            refused.is_some_and(|why| why.contains("log one row per write")),
            "{name}"
        );
    }
}

#[test]
fn an_unusual_magnitude_is_doubted() {
    let notes_of = |name: &str| notes(table(name, |_, us| us.to_string()));
    assert!(
        notes_of("latency_ns").contains("takes 815 ns, which is unusual"),
        "{}",
        notes_of("latency_ns")
    );
    assert!(notes_of("latency_s").contains("which is unusual"));
    assert!(!notes_of("latency_us").contains("unusual"));
}

#[test]
fn names_in_other_words_are_understood() {
    let row = |at: u32, us: u32| format!("{at},{us}");
    assert!(matches!(
        table("Zeit [us],adc", row),
        Ok(Loaded::Recording(_))
    ));
    assert!(matches!(
        table("TimeUS,Volt", row),
        Ok(Loaded::Recording(_))
    ));
    let ends = |at: u32, us: u32| format!("{at},{}", at + us % 5000);
    assert!(matches!(
        table("submit_us,complete_us", ends),
        Ok(Loaded::Trace(_))
    ));
}

#[test]
fn an_unknown_table_names_its_columns() {
    let message = |header: &str| table(header, |at, us| format!("{at},{us}")).err().unwrap();
    let found = message("tick count,v(x)");
    assert_eq!(
        found,
        "my card.csv: unknown format; its columns, each with its first value, are 'tick count' (5), 'v(x)' (800); if it is a \
         recording, name the column with the times of its samples: cardiograph analyze 'my card.csv' --time-column 'tick count' \
         (with --time-unit us if the name of the column has no unit); if each row is a write, also name the column with \
         its latency: --latency-column 'v(x)'"
    );
}

#[test]
fn of_several_times_in_a_row_none_is_chosen() {
    for text in [
        "12 ms: write 812 us\n15 ms: write 790 us\n",
        "write 812 us, sync 9 us\nwrite 790 us, sync 8 us\n",
    ] {
        let refused = read_from("a.log", text.as_bytes(), &ReadOptions::default());
        let refused = refused.err().unwrap().to_string();
        assert!(refused.contains("unknown format"), "{refused}");
    }
}

#[test]
fn tables_that_may_not_be_single_writes_are_doubted() {
    let read = |text: &str| {
        let loaded = read_from("a.csv", text.as_bytes(), &ReadOptions::default());
        loaded.map_err(|why| why.to_string())
    };
    for (text, note) in [
        (
            "latency_us,size\n840,25\n870,20\n790,19\n912,4\n85012,1\n",
            "decrease, like the counts of a histogram",
        ),
        (
            "latency_us,0\n840,25\n870,20\n790,19\n912,4\n85012,1\n",
            "column \"0\" decrease, like the counts",
        ),
        (
            "bytes,latency_us\n512,970\n1024,1000\n2048,1030\n4096,1010\n",
            "Every row has a different length",
        ),
        (
            "n,latency_us\n0,942\n1,1896\n2,2750\n3,3555\n",
            "as in running totals",
        ),
        (
            "micros,dt\n0,940\n2672,952\n5500,852\n",
            "--latency-column dt",
        ),
        (
            "time_us,busy_us\n0,940\n2672,952\n5500,852\n",
            "--latency-column busy_us",
        ),
        (
            "time_ms,sensor\n0,A\n1,B\n10,A\n11,B\n20,A\n21,B\n30,A\n31,B\n",
            "such as \"A\" and \"B\"; all rows count as samples",
        ),
        (
            "time_ms,sensor\n0,A\n0,B\n10,A\n10,B\n20,A\n21,B\n",
            "2 samples have the time of the sample before",
        ),
        (
            "dur_us,event\n940,0\n952,1\n852,0\n941,1\n812,0\n800,1\n801,0\n850,1\n",
            "several texts, such as \"0\" and \"1\"",
        ),
        ("latency_ms\n942\n954\n854\n", "which is unusual"),
    ] {
        let notes = notes(read(text));
        assert!(notes.contains(note), "{text}: {notes}");
    }
    let latencies: Vec<String> = [812, 790, 85_012, 801, 811, 805, 799, 820, 803]
        .map(|us| us.to_string())
        .into();
    let mean = 91_453 / 9;
    let text = format!("latency_us\n{}\n{mean}\n", latencies.join("\n"));
    assert!(
        notes(read(&text)).contains("is the mean of all others"),
        "{text}"
    );
    let refused = read("latency_us,count\n680,2\n690,3\n700,5\n710,6\n85012,7\n").err();
    assert!(refused.is_some_and(|why| why.contains("only rise, as running totals do; run awk")));
    let refused = read("percentile,latency_us\n50,855\n90,1000\n95,50000\n").err();
    assert!(refused.is_some_and(|why| why.contains("contains statistics")));
}
