//! Values of a card that are known from elsewhere, such as from a probe.

use cardiograph_sim_card::Profile;

/// Values that a fit keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Bytes that the card reads and programs together.
    pub page_bytes: Option<u64>,
    /// Bytes that the card erases and remaps together.
    pub unit_bytes: Option<u64>,
    /// Number of units that can be open at the same time.
    pub open_units: Option<u64>,
    /// Bytes of small rewrites that the log holds; one more of its blocks is being freed.
    pub log_bytes: Option<u64>,
    /// Bytes of the zone for the FAT.
    pub fat_zone_bytes: Option<u64>,
    /// True if the card collects garbage while it is idle.
    pub collects_while_idle: Option<bool>,
}

impl Known {
    /// Changes a profile to the known values. Values that depend on an unknown one stay.
    pub fn apply(&self, profile: &mut Profile) {
        let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let flash = &mut profile.flash;
        if let Some(page_bytes) = self.page_bytes {
            // A page on several planes looks like one large page.
            flash.page_bytes = narrow(page_bytes);
            flash.planes = 1;
        }
        let page_bytes = u64::from(flash.page_bytes) * u64::from(flash.planes);
        if let Some(unit_bytes) = self.unit_bytes {
            flash.pages_per_block = narrow(unit_bytes / page_bytes.max(1)).max(1);
        }
        let log_block_bytes = page_bytes * u64::from(profile.log_pages_per_block().max(1));
        let (flash, controller) = (&profile.flash, &mut profile.controller);
        let unit_bytes = page_bytes
            .saturating_mul(flash.pages_per_block.into())
            .max(1);
        if let Some(open_units) = self.open_units {
            controller.open_units = narrow(open_units);
        }
        if let Some(log_bytes) = self.log_bytes {
            controller.log_blocks =
                narrow(log_bytes.div_ceil(log_block_bytes.max(1))).saturating_add(1);
            controller.gc_log_blocks = controller.gc_log_blocks.min(controller.log_blocks);
            let log_pages = controller.log_blocks.saturating_mul(flash.pages_per_block);
            controller.log_used_pages = controller.log_used_pages.min(log_pages);
        }
        if let Some(fat_zone_bytes) = self.fat_zone_bytes {
            controller.fast_zone_units = narrow(fat_zone_bytes / unit_bytes);
        }
        match self.collects_while_idle {
            Some(true) => controller.idle_free_blocks = controller.idle_free_blocks.max(1),
            Some(false) => controller.idle_free_blocks = 0,
            None => (),
        }
        profile.capacity_bytes = (profile.capacity_bytes / unit_bytes)
            .max(1)
            .saturating_mul(unit_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_replace_those_of_a_profile() {
        let mut profile = Profile::named("team-8g-class10").unwrap();
        let known = Known {
            page_bytes: Some(4096),
            unit_bytes: Some(512 << 10),
            open_units: Some(7),
            log_bytes: Some(1 << 20),
            fat_zone_bytes: Some(2 << 20),
            collects_while_idle: Some(true),
        };
        known.apply(&mut profile);
        let (flash, controller) = (&profile.flash, profile.controller);
        assert_eq!(
            (flash.page_bytes, flash.planes, flash.pages_per_block),
            (4096, 1, 128)
        );
        assert_eq!((controller.open_units, controller.log_blocks), (7, 3));
        assert_eq!(
            (controller.fast_zone_units, controller.idle_free_blocks),
            (4, 1)
        );
        assert!(profile.check("known").is_ok());

        // Nonsense is for the check of the profile.
        for bytes in [0, 1, u64::MAX] {
            let known = Known {
                page_bytes: Some(bytes),
                unit_bytes: Some(u64::MAX - bytes),
                log_bytes: Some(bytes),
                ..known
            };
            known.apply(&mut profile);
            assert!(profile.check("known").is_err());
        }

        let before = Profile::named("kingston-8g").unwrap();
        let mut profile = before.clone();
        Known::default().apply(&mut profile);
        assert_eq!(profile, before);
    }
}
