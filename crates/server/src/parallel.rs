//! Work of one request, shared among the cores.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::LazyLock;
use std::thread;

use store::read_age::ReadAge;

/// The cores that this process may use. Asking the system reads files of its control group, for 50 us: more than a small query takes.
static CORES: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, NonZero::get));

/// What `map` makes of the parts of `items`, in their order: a part for each core, but none of less than `least` items.
pub fn map_parts<T: Sync, U: Send>(items: &[T], least: usize, map: impl Fn(&[T]) -> U + Sync) -> Vec<U> {
    let parts = (*CORES).min(items.len() / least.max(1)).max(1);
    let (first, rest) = items.split_at(items.len().div_ceil(parts));
    let begun = ReadAge::current();
    let map = &|part: &[T]| ReadAge::go_on(begun.as_ref(), || map(part));
    thread::scope(|scope| {
        let begin = |part| (part, thread::Builder::new().spawn_scoped(scope, move || map(part)));
        let running: Vec<_> = rest.chunks(first.len().max(1)).map(begin).collect();
        let mut all = vec![map(first)];
        for (part, thread) in running {
            all.push(match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // The system gives no more threads.
                Err(_) => map(part),
            });
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use store::read_age::{self, Age};

    use super::*;

    #[test]
    fn all_parts_are_read_for_one_request() {
        let age = ReadAge::default();
        let items: Vec<u64> = (0..100).collect();
        let note = |seconds: &u64| read_age::note(Age::AtMost(Duration::from_secs(*seconds)));
        age.during(|| map_parts(&items, 1, |part| part.iter().for_each(note)));
        assert_eq!(age.greatest(), Some(Age::AtMost(Duration::from_secs(99))));
    }

    #[test]
    fn parts_are_whole_and_in_order() {
        for count in [0, 1, 2, 3, 7, 100, 101] {
            let items: Vec<usize> = (0..count).collect();
            assert_eq!(map_parts(&items, 1, <[usize]>::to_vec).concat(), items);
            assert_eq!(map_parts(&items, 1000, |part| part.len()), [count]);
        }
    }
}
