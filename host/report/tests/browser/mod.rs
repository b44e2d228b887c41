//! Headless Chromium.

use std::process::Command;

/// Returns the markup of a page after its scripts have run; panics if a script reported an error.
pub fn markup(html: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    std::fs::write(&path, html).unwrap();
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args([
            "--virtual-time-budget=5000",
            "--dump-dom",
            "--enable-logging=stderr",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg(format!("file://{}", path.display()))
        .output()
        .expect("Chromium must be installed (Debian package chromium)");
    let log = String::from_utf8_lossy(&output.stderr);
    let complaints: Vec<_> = log
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    // Chromium writes the spaces between number and unit as entities.
    String::from_utf8_lossy(&output.stdout).replace("&nbsp;", " ")
}
