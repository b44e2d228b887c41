//! Password of the access point: random at the first start, then kept in flash, so that a board keeps its password.
//!
//! It takes the last sector of the partition `nvs`, which no other part of this firmware uses.

use cardiograph_network::{PASSPHRASE_BYTES, Passphrase};
use esp_bootloader_esp_idf::partitions::{
    DataPartitionSubType, Error, FlashRegion, FlashStorage, PARTITION_TABLE_MAX_LEN, PartitionType,
    read_partition_table,
};
use esp_hal::peripherals::{ADC1, FLASH, RNG};
use esp_hal::rng::{Trng, TrngSource};
use esp_println::println;

const SECTOR_BYTES: u32 = FlashStorage::SECTOR_SIZE;

/// Returns the password of this board. Takes some 50 ms at the first start, during which no interrupt is handled.
pub fn load(flash: FLASH<'static>, rng: RNG<'static>, adc: ADC1<'static>) -> Passphrase {
    let mut flash = FlashStorage::new(flash);
    let kept = with_partition(&mut flash, |region, at| {
        let mut bytes = [0; PASSPHRASE_BYTES];
        region.read(at, &mut bytes)?;
        Ok(Passphrase::restore(&bytes))
    });
    if let Ok(Some(passphrase)) = kept {
        return passphrase;
    }
    let passphrase = generate(rng, adc);
    let written = with_partition(&mut flash, |region, at| {
        region.erase(at, at + SECTOR_BYTES)?;
        region.write(at, passphrase.as_str().as_bytes())
    });
    if let Err(error) = written {
        println!(
            "the password of the access point changes at every start, because flash failed: {error:?}"
        );
    }
    passphrase
}

/// Creates a password from the noise of the analogue converter, because the radio is still off.
fn generate(rng: RNG<'static>, adc: ADC1<'static>) -> Passphrase {
    let _noise = TrngSource::new(rng, adc);
    let random = Trng::try_new().expect("the source of noise exists");
    Passphrase::new(|| random.random())
}

/// Calls a function with the partition and the position of its last sector.
fn with_partition<T>(
    flash: &mut FlashStorage,
    run: impl FnOnce(&mut FlashRegion, u32) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut table = [0; PARTITION_TABLE_MAX_LEN];
    let table = read_partition_table(flash, &mut table)?;
    let found = table.find_partition(PartitionType::Data(DataPartitionSubType::Nvs))?;
    let mut region = found.ok_or(Error::Invalid)?.as_flash_region(flash);
    let last = (region.capacity() as u32).checked_sub(SECTOR_BYTES);
    run(&mut region, last.ok_or(Error::OutOfBounds)?)
}
