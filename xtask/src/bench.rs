//! Stub.
/// All.
pub fn all() -> Result<(), String> {
    Ok(())
}
/// One.
pub fn one(_name: &str) -> Result<(), String> {
    Ok(())
}
