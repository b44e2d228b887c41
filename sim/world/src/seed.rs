//! Seeds and random streams.
//!
//! ```text
//!   Seed ──child("link")──> Seed ──stream("there")──> Random
//!     └────stream("card")──> Random
//! ```
//!
//! A child is `mix(mix(seed) + fnv1a(name))`: `mix` is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014),
//! `fnv1a` the 64-bit FNV-1a hash of the name's UTF-8 bytes. A stream is SplitMix64 started at the child. Drawing from
//! one stream does not affect another, so adding a consumer changes nothing for the existing ones.

/// The increment ("gamma") of SplitMix64: 2^64 divided by the golden ratio, rounded to an odd number.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// A seed, which determines all random numbers in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    /// Creates a seed. Neighbouring numbers give unrelated seeds.
    pub fn new(seed: u64) -> Seed {
        Seed(seed)
    }

    /// Returns the number from which [`Seed::new`] creates this seed.
    pub fn number(self) -> u64 {
        self.0
    }

    /// Returns the seed of a component with several streams of its own.
    #[must_use]
    pub fn child(self, name: &str) -> Seed {
        Seed(mix(mix(self.0).wrapping_add(fnv1a(name))))
    }

    /// Returns the stream of one of many identical consumers, which have numbers instead of names.
    pub fn nth(self, number: u64) -> Random {
        Random {
            state: mix(self.0.wrapping_add(number.wrapping_mul(GAMMA))),
        }
    }

    /// Returns the stream of a consumer, from its start.
    pub fn stream(self, name: &str) -> Random {
        Random {
            state: self.child(name).0,
        }
    }
}

/// A stream of random numbers: SplitMix64. Not for cryptography.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Returns the state of the stream, from which [`Random::from_state`] continues.
    pub fn state(&self) -> u64 {
        self.state
    }

    /// Creates a stream that continues from a state.
    pub fn from_state(state: u64) -> Random {
        Random { state }
    }

    /// Returns the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// Returns a random number below `bound`, or 0 if `bound` is 0; takes exactly one draw.
    ///
    /// Uses multiplication (Lemire, 2019) without rejection: the bias is at most `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        (wide >> 64) as u64
    }

    /// Returns true with a probability of `ppm` per million; takes exactly one draw.
    pub fn chance_ppm(&mut self, ppm: u32) -> bool {
        self.below(1_000_000) < u64::from(ppm)
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn fnv1a(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the reference `splitmix64.c` (Vigna, 2015) from 1234567; also on Rosetta Code,
    /// "Pseudo-random numbers/Splitmix64".
    #[test]
    fn splitmix64_gives_the_published_numbers() {
        let mut random = Random { state: 1_234_567 };
        for published in [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ] {
            assert_eq!(random.next_u64(), published);
        }
    }

    /// Compares the hash with the test vectors of draft-eastlake-fnv.
    #[test]
    fn fnv1a_gives_the_published_numbers() {
        assert_eq!(fnv1a(""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(fnv1a("a"), 0xAF63_DC4C_8601_EC8C);
        assert_eq!(fnv1a("foobar"), 0x8594_4171_F739_67E8);
    }

    /// The expected numbers were computed from the formula in the module docs, in another language. If these
    /// numbers changed, so would the result of every recorded seed.
    #[test]
    fn a_stream_never_changes() {
        let mut random = Seed::new(1).stream("link");
        assert_eq!(random.next_u64(), 12_706_544_175_279_347_340);
        assert_eq!(random.next_u64(), 1_675_796_106_598_277_698);
    }

    #[test]
    fn streams_differ_by_name_seed_and_depth() {
        let first = |mut random: Random| random.next_u64();
        let seed = Seed::new(7);
        let firsts = [
            first(seed.stream("a")),
            first(seed.stream("b")),
            first(seed.child("a").stream("a")),
            first(Seed::new(8).stream("a")),
        ];
        for (index, number) in firsts.iter().enumerate() {
            assert!(!firsts[..index].contains(number));
        }
    }

    #[test]
    fn below_is_uniform_and_in_range() {
        let mut random = Seed::new(3).stream("below");
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        // Six standard deviations of a binomial distribution (n = 100,000, p = 0.1) are 570.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 570));
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
    }
}
