//! Settings of the network, from the card.

use cardiograph_network::{FILE_BYTES_MAX, FILE_NAME, Settings};
use cardiograph_recorder::{CardFiles, FileError, ReadDesk, ReadError};
use embassy_time::{Duration, Instant, Timer};
use esp_println::println;

/// Time in which the recorder mounts a card.
const CARD: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(200);

/// Reads the settings through the recorder. Without a card or a valid file, returns those of an access point.
pub async fn read(desk: &ReadDesk<'_>) -> Settings {
    let end = Instant::now() + CARD;
    loop {
        let error = match parse(desk).await {
            Ok(settings) => return settings,
            Err(FileError::Read(ReadError::NoCard | ReadError::Closed)) if Instant::now() < end => {
                Timer::after(RETRY).await;
                continue;
            }
            Err(error) => error,
        };
        match error {
            FileError::NotFound => println!("no {FILE_NAME} on the card: opening an access point"),
            error => println!("{FILE_NAME}: {error}; opening an access point"),
        }
        return Settings::default();
    }
}

async fn parse(desk: &ReadDesk<'_>) -> Result<Settings, FileError> {
    let files = CardFiles::new(desk);
    let file = files.open(FILE_NAME).await?;
    // One byte more than allowed shows that the file is too long.
    let mut text = [0; FILE_BYTES_MAX + 1];
    let mut filled = 0;
    while filled < text.len() {
        let part = files
            .read(&file, filled as u64, text.len() - filled)
            .await?;
        if part.is_empty() {
            break;
        }
        text[filled..filled + part.len()].copy_from_slice(&part);
        filled += part.len();
    }
    Ok(Settings::parse(&text[..filled]).unwrap_or_else(|error| {
        println!("{error}");
        println!("opening an access point until the file is corrected and the board is restarted");
        Settings::default()
    }))
}
