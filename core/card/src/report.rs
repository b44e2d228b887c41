//! Reports through `log` or `defmt`, where the application has chosen one.

/// Reports a text with values that implement `Display`; evaluates to nothing if neither feature is enabled.
macro_rules! report {
    ($level:ident, $text:literal $(, $value:expr)*) => {{
        #[cfg(feature = "log")]
        log::$level!($text $(, $value)*);
        #[cfg(feature = "defmt")]
        defmt::$level!($text $(, defmt::Display2Format(&$value))*);
        #[cfg(not(any(feature = "log", feature = "defmt")))]
        {
            $(let _ = &$value;)*
        }
    }};
}

pub(crate) use report;
