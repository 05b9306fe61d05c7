//! The real broker process on machines that fail: a disk that is full or broken, a clock that is
//! wrong. What fails is put between the process and the system by preloaded libraries, so the
//! program under test is the one that is shipped, without any switch for tests in it.

#[path = "../cluster/word.rs"]
mod word;
mod house;
mod preload;
mod disk;
mod full;
mod clock;
