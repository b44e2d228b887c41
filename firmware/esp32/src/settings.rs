//! Settings of the network, from the card.

use cardiograph_network::{FILE_BYTES_MAX, FILE_NAME, Router, Settings, SettingsError};
use cardiograph_recorder::{CardFiles, FileError, ReadDesk, ReadError};
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::signal::Signal;
use embassy_time::{Duration, Instant, Timer};
use esp_println::println;

/// Time in which the recorder mounts a card.
const CARD: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(200);

/// Says that the recorder has begun a file, possibly on a card that was not there before.
pub static FILE_BEGUN: Signal<CriticalSectionRawMutex, ()> = Signal::new();
/// Another router, or none, after the settings were read again.
pub static ROUTER_CHANGED: Signal<CriticalSectionRawMutex, Option<Router>> = Signal::new();

/// Reads the settings through the recorder. Without a card or a valid file, returns those of an access point.
pub async fn read(desk: &ReadDesk<'_>) -> Settings {
    let end = Instant::now() + CARD;
    loop {
        match parse(desk).await {
            Ok(Ok(settings)) => return settings,
            Ok(Err(error)) => println!("{error}; opening an access point"),
            Err(FileError::Read(ReadError::NoCard | ReadError::Closed)) if Instant::now() < end => {
                Timer::after(RETRY).await;
                continue;
            }
            Err(FileError::NotFound) => {
                println!("no {FILE_NAME} on the card: opening an access point");
            }
            Err(error) => println!("{FILE_NAME}: {error}; opening an access point"),
        }
        return Settings::default();
    }
}

/// Reads the settings again with each new file, and hands over the router if it is another one.
#[embassy_executor::task]
pub async fn follow_router(desk: &'static ReadDesk<'static>, mut router: Option<Router>) {
    loop {
        FILE_BEGUN.wait().await;
        // Without a valid file, the settings stay as they are.
        match parse(desk).await {
            Ok(Ok(settings)) if settings.router != router => {
                println!("{FILE_NAME} names another router, password, or none");
                router = settings.router;
                ROUTER_CHANGED.signal(router.clone());
            }
            Ok(Err(error)) => println!("{error}"),
            _ => (),
        }
    }
}

async fn parse(desk: &ReadDesk<'_>) -> Result<Result<Settings, SettingsError>, FileError> {
    let files = CardFiles::new(desk);
    let file = files.open_protected(FILE_NAME).await?;
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
    Ok(Settings::parse(&text[..filled]))
}
