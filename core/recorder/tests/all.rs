//! The integration tests in one program: as separate programs, each would compile the same generic code again.

mod fat_bad;
mod fat_borders;
mod fat_cuts;
mod fat_guests;
mod fat_many;
mod fat_moved;
mod fat_old;
mod fat_ops;
mod fat_order;
mod fat_rig;
mod fat_taken;
mod fat_walk;
mod logger;
mod logger_rig;
